"""Profiles: named ways to lay a context out as a prompt, each with its sources. Pure."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from palaver.config import Config, ContextBlock
from palaver.context.gather import SourceList, block_sources, level_sources, window_sources, without_media
from palaver.context.media_budget import NEWEST_MEDIA_MARKS
from palaver.context.values import Context
from palaver.errors import InvalidValue
from palaver.formats.context_block import block
from palaver.formats.single import single
from palaver.prompt.profiles.headers import headers
from palaver.prompt.profiles.layered import layered
from palaver.prompt.profiles.native import native
from palaver.prompt.profiles.plain import plain
from palaver.prompt.profiles.tail import tail
from palaver.turns import Prompt

Build = Callable[[Context], Prompt]


class Profile(Struct, frozen=True, kw_only=True):
    """A function from a context to a prompt, and the sources of that context."""

    name: str
    build: Build
    sources: SourceList = window_sources


def _block(options: ContextBlock) -> Profile:
    return Profile(
        name="block",
        sources=partial(block_sources, most=options.max_messages),
        build=partial(block, max_messages=options.max_messages, include_meta=options.include_meta),
    )


_ALL = (
    Profile(name="layered", sources=partial(window_sources, media_marks=NEWEST_MEDIA_MARKS), build=layered),
    Profile(name="tail", build=tail),
    Profile(name="native", sources=level_sources, build=native),
    _block(ContextBlock()),
    Profile(name="headers", sources=lambda given: window_sources(without_media(given)), build=headers),
    Profile(name="single", build=single),
    Profile(name="plain", build=plain),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})


def profile_of(given: str | Profile | Build, config: Config) -> Profile:
    """Return the profile of that name as configured, or the one given; a function gets the sources of a window."""
    match given:
        case Profile():
            return given
        case str():
            return _by_name(given, config)
    if not callable(given):
        raise InvalidValue(f"a profile is a name, a Profile or a function from Context to Prompt, not {given!r}")
    return Profile(name=_name(given), build=given)


def _by_name(name: str, config: Config) -> Profile:
    """Return the profile of a name; `native` with the context block switched on is `block`."""
    if name not in PROFILES:
        raise InvalidValue(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    is_block = name == "block" or (name == "native" and config.block.enabled)
    return _block(config.block) if is_block else PROFILES[name]


def _name(function: object) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
