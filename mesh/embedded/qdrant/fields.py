"""Reading JSON strictly: a field that nobody knows is an error, so that nothing a caller meant is ever dropped."""

from __future__ import annotations

import json


class Refused(Exception):
    """An answer in Qdrant's error form."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def wrong(text: str) -> Refused:
    return Refused(400, f"Wrong input: {text}")


def malformed(text: str) -> Refused:
    return Refused(400, f"Format error in JSON body: {text}")


def parse(body: bytes) -> object:
    """Raises `Refused` for what Python's parser would let pass: NaN, infinities, a key given twice."""
    if not body:
        return None
    try:
        return json.loads(body, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("the same key is given twice in one object")
    return made


class Fields:
    """The known fields of a JSON object. A null is an absent field, as in Qdrant."""

    def __init__(self, value: object, where: str, *known: str) -> None:
        if not isinstance(value, dict):
            raise malformed(f"{where} must be an object, not {_kind(value)}")
        unknown = sorted(value.keys() - set(known))
        if unknown:
            raise malformed(f"unknown field `{unknown[0]}` in {where}, expected one of {_quoted(known)}")
        self.where = where
        self._values: dict[str, object] = {key: item for key, item in value.items() if item is not None}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> object:
        return self._values.get(key)

    def need(self, key: str) -> object:
        if key not in self._values:
            raise malformed(f"missing field `{key}` in {self.where}")
        return self._values[key]

    def unsupported(self, *keys: str) -> None:
        for key in keys:
            if key in self._values:
                raise wrong(f"`{key}` in {self.where} is not supported by the embedded Qdrant")

    def text(self, key: str) -> str:
        value = self.need(key)
        if not isinstance(value, str):
            raise malformed(f"`{key}` in {self.where} must be a string, not {_kind(value)}")
        return value

    def some_text(self, key: str) -> str | None:
        return self.text(key) if key in self else None

    def whole(self, key: str, least: int = 0) -> int:
        value = self.need(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise malformed(f"`{key}` in {self.where} must be a whole number from {least}")
        return value

    def some_whole(self, key: str, least: int = 0) -> int | None:
        return self.whole(key, least) if key in self else None

    def number(self, key: str) -> float:
        value = self.need(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise malformed(f"`{key}` in {self.where} must be a number, not {_kind(value)}")
        return value

    def some_number(self, key: str) -> float | None:
        return self.number(key) if key in self else None

    def flag(self, key: str) -> bool:
        value = self.need(key)
        if not isinstance(value, bool):
            raise malformed(f"`{key}` in {self.where} must be true or false, not {_kind(value)}")
        return value

    def some_flag(self, key: str) -> bool | None:
        return self.flag(key) if key in self else None

    def items(self, key: str) -> list[object]:
        value = self.need(key)
        if not isinstance(value, list):
            raise malformed(f"`{key}` in {self.where} must be a list, not {_kind(value)}")
        return value

    def texts(self, key: str) -> list[str]:
        return texts_of(self.need(key), f"`{key}` in {self.where}")


def texts_of(value: object, where: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise malformed(f"{where} must be a list of strings")


def object_of(value: object, where: str) -> dict[str, object]:
    """Null is an empty object."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise malformed(f"{where} must be an object, not {_kind(value)}")


def one_or_many(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
