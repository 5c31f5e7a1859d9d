"""Filters: JSON to the engine's form. They carry permissions, so they fail closed.

Left to itself the engine is lenient where that is dangerous (measured with 0.9): an empty filter inside a filter,
an empty `range`, `min_count: 0` and a `must` without conditions match every point, and of two tests in one field
condition either is enough. All of these are refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import qdrant_edge as edge

from mesh.embedded.qdrant.fields import Fields, Refused, malformed, one_or_many, wrong
from mesh.embedded.qdrant.points import point_id

CLAUSES = ("must", "should", "must_not", "min_should")
BOUNDS = ("gt", "gte", "lt", "lte")
MAX_DEPTH = 32


def optional_filter(value: object) -> edge.Filter | None:
    """Null and `{}` are no filter, as in Qdrant; whatever else is there must hold a condition."""
    return None if value is None or value == {} else _filter(value, 0)


def required_filter(value: object) -> edge.Filter:
    """For deleting and overwriting, where no filter would mean everything."""
    found = optional_filter(value)
    if found is None:
        raise wrong("an empty filter would select every point: refused")
    return found


def without(condition: edge.Filter | None, ids: list[edge.PointId]) -> edge.Filter | None:
    """The same filter, less these points."""
    if not ids:
        return condition
    return edge.Filter(must=[condition] if condition else None, must_not=[edge.HasIdCondition(set(ids))])


def _filter(value: object, depth: int) -> edge.Filter:
    if depth > MAX_DEPTH:
        raise wrong(f"a filter may be nested {MAX_DEPTH} deep at most")
    fields = Fields(value, "filter", *CLAUSES)
    must = _conditions(fields, "must", depth)
    should = _conditions(fields, "should", depth)
    must_not = _conditions(fields, "must_not", depth)
    min_should = _min_should(fields.get("min_should"), depth) if "min_should" in fields else None
    if not (must or should or must_not or min_should):
        raise wrong("a filter without conditions would match every point: refused")
    return edge.Filter(must=must, should=should, must_not=must_not, min_should=min_should)


def _conditions(fields: Fields, clause: str, depth: int) -> list[edge.ConditionType] | None:
    if clause not in fields:
        return None
    found = one_or_many(fields.get(clause))
    if not found and clause != "should":  # LlamaIndex sends an empty `should` next to other conditions
        raise wrong(f"`{clause}` is present but holds no condition: refused")
    return [_condition(item, depth) for item in found] or None


def _min_should(value: object, depth: int) -> edge.MinShould:
    fields = Fields(value, "`min_should`", "conditions", "min_count")
    conditions = [_condition(item, depth) for item in fields.items("conditions")]
    if not conditions:
        raise wrong("`min_should` holds no condition: refused")
    return edge.MinShould(conditions, fields.whole("min_count", least=1))


def _condition(value: object, depth: int) -> edge.ConditionType:
    if not isinstance(value, dict):
        raise malformed("a filter condition must be an object")
    if "key" in value:
        return _field(value)
    for name, build in _WHOLE_POINT.items():
        if name in value:
            return build(Fields(value, f"`{name}` condition", name))
    if "nested" in value:
        return _nested(Fields(value, "`nested` condition", "nested"), depth)
    if value.keys() <= set(CLAUSES):
        return _filter(value, depth + 1)
    raise malformed(f"unknown filter condition with the fields {sorted(value)}")


def _nested(fields: Fields, depth: int) -> edge.NestedCondition:
    inner = Fields(fields.need("nested"), "`nested`", "key", "filter")
    return edge.NestedCondition(inner.text("key"), _filter(inner.need("filter"), depth + 1))


def _has_id(fields: Fields) -> edge.HasIdCondition:
    return edge.HasIdCondition({point_id(item) for item in fields.items("has_id")})


def _has_vector(fields: Fields) -> edge.HasVectorCondition:
    return edge.HasVectorCondition(fields.text("has_vector"))


def _is_empty(fields: Fields) -> edge.IsEmptyCondition:
    return edge.IsEmptyCondition(Fields(fields.need("is_empty"), "`is_empty`", "key").text("key"))


def _is_null(fields: Fields) -> edge.IsNullCondition:
    return edge.IsNullCondition(Fields(fields.need("is_null"), "`is_null`", "key").text("key"))


_WHOLE_POINT: dict[str, Callable[[Fields], edge.ConditionType]] = {
    "has_id": _has_id,
    "has_vector": _has_vector,
    "is_empty": _is_empty,
    "is_null": _is_null,
}


def _field(value: dict[str, object]) -> edge.FieldCondition:
    fields = Fields(value, "field condition", "key", *_FIELD_TESTS)
    tests = [name for name in _FIELD_TESTS if name in fields]
    if len(tests) != 1:
        raise wrong(f"the condition on `{fields.text('key')}` must hold exactly one test, not {len(tests)}")
    return _FIELD_TESTS[tests[0]](fields.text("key"), fields)


def _match(key: str, fields: Fields) -> edge.FieldCondition:
    match = Fields(fields.get("match"), f"`match` on `{key}`", *_MATCHES)
    kinds = [name for name in _MATCHES if name in match]
    if len(kinds) != 1:
        raise wrong(f"`match` on `{key}` must hold exactly one kind, not {len(kinds)}")
    return edge.FieldCondition(key, match=_MATCHES[kinds[0]](match))


class bool_:  # noqa: N801  # the name is the point
    """A boolean that the engine's binding takes for one.

    Python's own is read as the integer that it also is (measured with 0.9: `True` finds 1, and never true). The
    binding knows numpy's by the name of module and class, and asks it for its truth.
    """

    __module__ = "numpy"

    def __init__(self, value: bool) -> None:
        self._value = value

    def __bool__(self) -> bool:
        return self._value


def _match_value(match: Fields) -> edge.MatchValue:
    value = match.need("value")
    if not isinstance(value, str | int):
        raise wrong(f"{match.where} can only be a string, a whole number or a boolean")
    made = edge.MatchValue(cast("bool", bool_(value)) if isinstance(value, bool) else value)
    if type(made.value) is not type(value) or made.value != value:
        raise Refused(500, f"Service internal error: the engine misread {match.where}")
    return made


def _choices(match: Fields, kind: str) -> list[str] | list[int]:
    found = match.items(kind)
    texts = [item for item in found if isinstance(item, str)]
    wholes = [item for item in found if isinstance(item, int) and not isinstance(item, bool)]
    if len(texts) == len(found):
        return texts
    if len(wholes) == len(found):
        return wholes
    raise wrong(f"{match.where} must list strings only or whole numbers only")


_MATCHES: dict[str, Callable[[Fields], edge.MatchType]] = {
    "value": _match_value,
    "any": lambda match: edge.MatchAny(_choices(match, "any")),
    "except": lambda match: edge.MatchExcept(_choices(match, "except")),
    "text": lambda match: edge.MatchText(match.text("text")),
    "text_any": lambda match: edge.MatchTextAny(match.text("text_any")),
    "phrase": lambda match: edge.MatchPhrase(match.text("phrase")),
    "prefix": lambda match: edge.MatchPrefix(match.text("prefix")),
    "substring": lambda match: edge.MatchSubstring(match.text("substring")),
}


def _bounds(key: str, fields: Fields, test: str) -> Fields:
    bounds = Fields(fields.get(test), f"`{test}` on `{key}`", *BOUNDS)
    if not any(name in bounds for name in BOUNDS):
        raise wrong(f"`{test}` on `{key}` holds no bound, so it would match every point: refused")
    return bounds


def _range(key: str, fields: Fields) -> edge.FieldCondition:
    bounds = _bounds(key, fields, "range")
    if any(isinstance(bounds.get(name), str) for name in BOUNDS):
        dates = {name: bounds.some_text(name) for name in BOUNDS}
        return edge.FieldCondition(key, range=edge.RangeDateTime(**dates))
    numbers = {name: bounds.some_number(name) for name in BOUNDS}
    return edge.FieldCondition(key, range=edge.RangeFloat(**numbers))


def _values_count(key: str, fields: Fields) -> edge.FieldCondition:
    bounds = _bounds(key, fields, "values_count")
    counts = {name: bounds.some_whole(name) for name in BOUNDS}
    return edge.FieldCondition(key, values_count=edge.ValuesCount(**counts))


def _geo_point(value: object) -> edge.GeoPoint:
    point = Fields(value, "geo point", "lon", "lat")
    return edge.GeoPoint(point.number("lon"), point.number("lat"))


def _geo_line(value: object) -> list[edge.GeoPoint]:
    return [_geo_point(item) for item in Fields(value, "geo line", "points").items("points")]


def _geo_box(key: str, fields: Fields) -> edge.FieldCondition:
    box = Fields(fields.get("geo_bounding_box"), "`geo_bounding_box`", "top_left", "bottom_right")
    corners = _geo_point(box.need("top_left")), _geo_point(box.need("bottom_right"))
    return edge.FieldCondition(key, geo_bounding_box=edge.GeoBoundingBox(*corners))


def _geo_radius(key: str, fields: Fields) -> edge.FieldCondition:
    circle = Fields(fields.get("geo_radius"), "`geo_radius`", "center", "radius")
    return edge.FieldCondition(
        key, geo_radius=edge.GeoRadius(_geo_point(circle.need("center")), circle.number("radius"))
    )


def _geo_polygon(key: str, fields: Fields) -> edge.FieldCondition:
    shape = Fields(fields.get("geo_polygon"), "`geo_polygon`", "exterior", "interiors")
    holes = [_geo_line(item) for item in shape.items("interiors")] if "interiors" in shape else None
    return edge.FieldCondition(key, geo_polygon=edge.GeoPolygon(_geo_line(shape.need("exterior")), holes))


_FIELD_TESTS: dict[str, Callable[[str, Fields], edge.FieldCondition]] = {
    "match": _match,
    "range": _range,
    "values_count": _values_count,
    "geo_bounding_box": _geo_box,
    "geo_radius": _geo_radius,
    "geo_polygon": _geo_polygon,
    "is_empty": lambda key, fields: edge.FieldCondition(key, is_empty=fields.flag("is_empty")),
    "is_null": lambda key, fields: edge.FieldCondition(key, is_null=fields.flag("is_null")),
}
