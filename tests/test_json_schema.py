"""What checks whether a value fits a JSON schema."""

from typing import Any

import pytest

from tertulia.errors import InvalidValue
from tertulia.json_schema import validator


def test_a_schema_that_is_too_deep_is_invalid() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema}}

    with pytest.raises(InvalidValue, match="the schema of the answer cannot be read"):
        validator(schema)
