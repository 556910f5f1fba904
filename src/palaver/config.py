"""Config: the settings, and how they are read from the environment. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from palaver.errors import InvalidValue

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off"}


class ContextBlock(Struct, frozen=True, kw_only=True):
    """The system context block of the `block` profile."""

    enabled: bool = False
    max_messages: int = 60  # from 10 to 200
    include_meta: bool = True


class Config(Struct, frozen=True, kw_only=True):
    profile: str = "layered"
    block: ContextBlock = ContextBlock()
    levels: bool = True  # context in levels (immediate to episodic); else only the window
    history_size: int = 500  # messages at most; 0: none
    memory: bool = True  # whether facts, summaries and episodes are learned and recalled


def from_environment(environment: Mapping[str, str]) -> Config:
    """Read the settings from environment variables; the others have their defaults."""
    default = Config()
    return Config(
        profile=environment.get("PALAVER_PROFILE") or default.profile,
        block=ContextBlock(
            enabled=_switch(environment, "ENABLE_SYSTEM_CONTEXT_BLOCK", default.block.enabled),
            max_messages=_number(environment, "SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", default.block.max_messages, 10, 200),
            include_meta=_switch(environment, "SYSTEM_CONTEXT_BLOCK_INCLUDE_META", default.block.include_meta),
        ),
        levels=_switch(environment, "ENABLE_MULTI_LEVEL_CONTEXT", default.levels),
        history_size=_number(environment, "HISTORY_SIZE", default.history_size, 0, 100_000),
        memory=_switch(environment, "PALAVER_MEMORY", default.memory),
    )


def _switch(environment: Mapping[str, str], name: str, default: bool) -> bool:
    value = environment.get(name, "").strip().casefold()
    if not value:
        return default
    if value not in _YES | _NO:
        raise InvalidValue(f"{name} must be on or off, not {environment[name]!r}")
    return value in _YES


def _number(environment: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    value = environment.get(name, "").strip()
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or len(value) > 9 or not low <= int(value) <= high:
        raise InvalidValue(f"{name} must be a number from {low} to {high}, not {environment[name]!r}")
    return int(value)
