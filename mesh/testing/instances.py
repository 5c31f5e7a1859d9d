"""The smallest value that fits a JSON schema: what a model that was told nothing answers."""

from __future__ import annotations

from typing import Any

DEEPEST = 24
_TEXTS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "a@example.org",
    "uri": "http://example.org/",
}


def instance(schema: object) -> Any:
    """Of what pydantic writes as a schema: a text is "ok", a number as near to 0 as it may be, a list as short, and
    an object has what it must have. Patterns are not looked at."""
    return _of(schema, schema if isinstance(schema, dict) else {}, 0)


def _of(schema: object, root: dict[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    for choice in ("const", "default"):
        if choice in schema:
            return schema[choice]
    if schema.get("enum"):
        return schema["enum"][0]
    if "$ref" in schema:
        return _of(_target(schema["$ref"], root), root, depth + 1)
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return _of(schema[choice][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "null")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            known = schema.get("properties", {})
            return {name: _of(known.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
        case "array":
            first = [_of(each, root, depth + 1) for each in schema.get("prefixItems", ())]
            missing = max(schema.get("minItems", 0) - len(first), 0)
            return first + [_of(schema.get("items", {}), root, depth + 1)] * missing
        case "string":
            text = _TEXTS.get(schema.get("format", ""), "ok")
            return text.ljust(schema.get("minLength", 0), "k")[: schema.get("maxLength")]
        case "integer" | "number" as number:
            return _number(schema, 1 if number == "integer" else 0.5)
        case "boolean":
            return False
    return None


def _number(schema: dict[str, Any], step: float) -> Any:
    least = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else 0)
    most = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else 0)
    return max(least, 0) if least > 0 else min(most, 0)


def _target(reference: str, root: dict[str, Any]) -> object:
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found
