"""Health of models and platforms, as the engine's process alone knows it. Pure."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from tertulia.platform import Trouble


class Health(Struct, frozen=True, kw_only=True):
    """The models and platforms of an engine."""

    models: Mapping[str, datetime | None]  # those in use, with when one that failed is or was asked again
    platforms: Mapping[str, Trouble | None]  # by their names
