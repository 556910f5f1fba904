"""Values made to fit a schema do fit it."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from tertulia.sim.examples import example

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 0},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["name", "next"],
        }
    },
    "$ref": "#/$defs/node",
}

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "STRING", "enum": ["a", "b"]},
    {"type": "string", "minLength": 20, "maxLength": 25},
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": "^[A-Z]{3}-\\d{2,4}$"},
    {"type": "string", "pattern": "^(?:GET|POST) /[a-z0-9_/]*$"},
    {"type": "string", "pattern": "^[^@\\s]+@[a-z]+\\.(com|org)$"},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 5},
    {"type": "integer"},
    {"type": "integer", "minimum": 5, "maximum": 6},
    {"type": "integer", "minimum": -20, "maximum": -10, "multipleOf": 5},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    {"type": "integer", "maximum": -3},
    {"type": "INTEGER", "minimum": 1000},
    {"type": "number", "minimum": 0.5, "maximum": 0.75},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "minimum": 0.1, "multipleOf": 0.25},
    {"minimum": 3, "maximum": 4},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["null", "integer"], "minimum": 1},
    {"const": {"kind": "x"}},
    {"enum": [1, "two", None]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 4},
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    {"type": "array", "maxItems": 0},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["b", "c"]},
    {"properties": {"in": {"properties": {"deep": {"type": "array", "items": {"type": "boolean"}}}}}},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}]},
    {"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"type": "object", "required": ["b"]}]},
    TREE,
]


def fits(value: Any, schema: Any, root: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if "$ref" in schema:
        return fits(value, root["$defs"]["node"], root)
    return (
        all(fits(value, part, root) for part in schema.get("allOf", ()))
        and any(fits(value, option, root) for option in schema.get("anyOf", schema.get("oneOf", [True])))
        and ("const" not in schema or value == schema["const"])
        and ("enum" not in schema or value in schema["enum"])
        and fits_type(value, schema.get("type"))
        and fits_bounds(value, schema)
        and fits_members(value, schema, root)
    )


def fits_type(value: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, list) else [kind]
    names: dict[type, list[str]] = {
        str: ["string"],
        bool: ["boolean"],
        int: ["integer", "number"],
        float: ["number"],
        dict: ["object"],
        list: ["array"],
        type(None): ["null"],
    }
    return kind is None or any(str(each).lower() in names[type(value)] for each in kinds)


def fits_bounds(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, str):
        length = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 9999)
        return bool(length and re.search(schema.get("pattern", ""), value))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return True
    multiple = value / schema.get("multipleOf", value or 1)
    return bool(
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and schema.get("exclusiveMinimum", value - 1) < value < schema.get("exclusiveMaximum", value + 1)
        and multiple == int(multiple)
    )


def fits_members(value: Any, schema: Mapping[str, Any], root: Any) -> bool:
    if isinstance(value, list):
        firsts = schema.get("prefixItems", [])
        unique = not schema.get("uniqueItems") or len(set(value)) == len(value)
        length = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 9999)
        schemas = [*firsts, *[schema.get("items", True)] * (len(value) - len(firsts))]
        return unique and length and all(map(lambda v, s: fits(v, s, root), value, schemas))
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        complete = set(schema.get("required", ())) <= set(value) and len(value) >= schema.get("minProperties", 0)
        return complete and all(fits(each, properties.get(name, others), root) for name, each in value.items())
    return True


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_is_made_fits(schema: dict[str, Any]) -> None:
    for seed in range(30):
        value = example(schema, str(seed))

        assert fits(value, schema, schema), value


def test_the_same_seed_makes_the_same_value_and_another_another() -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]}

    assert example(schema, "a") == example(schema, "a")
    assert len({str(example(schema, str(seed))) for seed in range(20)}) > 10


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"$ref": "#/nowhere"}, {"anyOf": []}, {"pattern": "(?=x)[", "type": "string"}]
)
def test_odd_schemas_still_make_something(schema: dict[str, Any]) -> None:
    example(schema, "a")


@pytest.mark.parametrize("seed", range(20))
def test_values_fit_their_schema(seed: int) -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "name": {"type": "STRING", "min_length": 12, "maxLength": 20},
            "age": {"type": "INTEGER", "minimum": 18, "maximum": 19},
            "ratio": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
            "even": {"type": "integer", "multipleOf": 2, "minimum": 3, "maximum": 9},
            "kind": {"anyOf": [{"const": "a"}, {"enum": ["b"]}]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 3},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["name", "age", "ratio", "even", "kind", "tags", "when"],
        "$defs": {"tag": {"type": "boolean"}},
    }

    value = example(schema, str(seed))

    assert 12 <= len(value["name"]) <= 20
    assert value["age"] in (18, 19)
    assert 0 < value["ratio"] <= 1
    assert value["even"] in (4, 6, 8)
    assert value["kind"] in ("a", "b")
    assert 1 <= len(value["tags"]) <= 3
    assert all(isinstance(tag, bool) for tag in value["tags"])
    assert date.fromisoformat(value["when"])


@pytest.mark.parametrize("seed", range(20))
def test_a_schema_that_holds_itself_ends(seed: int) -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}}}

    assert isinstance(example(tree, str(seed)), dict)
