"""Profiles: named ways to lay a context out as a prompt, each with its sources. Pure.

Each profile is one function from a `Context` to a `Prompt`; those of other programs' formats are in `formats`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.budget import buffer_cut
from tertulia.context.gather import (
    ContextBlock,
    ContextOptions,
    SourceList,
    block_sources,
    level_sources,
    window_sources,
    worded_sources,
)
from tertulia.context.stable_prefix import BUFFER, BufferMarks
from tertulia.context.values import Context, Persona
from tertulia.errors import InvalidValue
from tertulia.formats.context_block import block
from tertulia.formats.single import single
from tertulia.prompt import escape, sections
from tertulia.prompt.layers import batch_turns, dynamic, history_turns, past_turns, place_style, static, trigger_turns
from tertulia.prompt.render import Style, delimiter_mark, doubt_lines, turns_of, turns_without_opening_call
from tertulia.turns import Layer, Prompt, user

Build = Callable[[Context], Prompt]


class Profile(Struct, frozen=True, kw_only=True):
    """A function from a context to a prompt, and the sources of that context."""

    name: str
    build: Build
    sources: SourceList = window_sources
    joined: Callable[[Context], Style] = place_style  # of messages that join a run in progress


def layered(context: Context, *, buffer: BufferMarks = BUFFER) -> Prompt:
    """Lay out as static, dynamic, buffered, trigger.

    Old messages move from the buffer to the static layer in chunks, each once, so that the prefix stays stable. The
    chunks are those of `BufferMarks`: a function of the numbers of messages and of their tokens.
    """
    style = place_style(context)
    window = context.window
    promoted, _ = buffer_cut(window, context.window_start, context.turns, buffer)
    instructed = static(context)
    quotes = context.unshown_quotes(window)
    old = history_turns(context.window_with_notices(0, promoted), context, quotes)
    trigger = trigger_turns(context, style, window)
    recent = turns_of(context.window_with_notices(promoted), context, style, quotes)
    layers = (
        replace(instructed, turns=past_turns(context) + old),
        dynamic(context),
        Layer(name="buffered", turns=recent),
        Layer(name="trigger", turns=trigger),
    )
    return Prompt(layers=layers)


def tail(context: Context) -> Prompt:
    """Lay out as static, buffered, dynamic, trigger: the longest stable prefix."""
    style = place_style(context)
    quotes = context.unshown_quotes(context.window)
    layers = (
        static(context),
        Layer(
            name="buffered",
            turns=past_turns(context)
            + turns_without_opening_call(context.window_with_notices(), context, style, quotes),
        ),
        dynamic(context),
        Layer(name="trigger", turns=trigger_turns(context, style, context.window)),
    )
    return Prompt(layers=layers)


def native(context: Context) -> Prompt:
    """Lay out as a Markdown instruction and bare turns: what people wrote, without authors, quotes and notices."""
    context = context.as_now()
    shown = context.history
    instruction = escape.without_delimiter(sections.instruction(sections.NATIVE_SECTIONS, context), context.delimiter)
    layers = (
        Layer(name="static", instruction="\n\n".join(filter(None, (instruction, doubt_lines(context))))),
        Layer(name="buffered", turns=turns_without_opening_call(shown, context, "bare")),
        Layer(name="trigger", turns=batch_turns(context, "bare", shown)),
    )
    return Prompt(layers=layers)


def headers(context: Context) -> Prompt:
    """Lay out with a header before each message of others, and markers for media; the trigger is last, with media."""
    known = escape.without_delimiter(sections.instruction(sections.HEADERS_SECTIONS, context), context.delimiter)
    told = (known, sections.changes(context), sections.memory_sections(context))
    instruction = "\n\n".join(filter(None, told))
    quotes = context.unshown_quotes(context.window)
    layers = (
        Layer(name="static", instruction=instruction),
        Layer(
            name="buffered",
            turns=past_turns(context)
            + turns_without_opening_call(context.window_with_notices(), context, "worded", quotes),
        ),
        Layer(name="trigger", turns=trigger_turns(context, "attached", context.window)),
    )
    return Prompt(layers=layers)


def plain(context: Context) -> Prompt:
    """Lay out for one person and any model, small ones too: no markup but a delimiter mark."""
    quotes = context.unshown_quotes(context.window)
    said = turns_without_opening_call(context.window_with_notices(), context, "verbatim", quotes)
    layers = (
        Layer(name="static", instruction=_persona_text(context.persona)),
        Layer(name="buffered", turns=past_turns(context) + said),
        *_memory_layer(context),
        Layer(name="trigger", turns=trigger_turns(context, "verbatim", context.window)),
    )
    return Prompt(layers=layers)


def _memory_layer(context: Context) -> tuple[Layer, ...]:
    """Return a layer with quote and memory behind the history, so that they do not change the stable prefix."""
    quote = context.quote
    told = quote is not None and bool(
        quote.excerpt or (quote.parts and all(one.deleted or one.id != quote.message_id for one in context.window))
    )
    replied = escape.without_delimiter(sections.reply_context(context), context.delimiter) if told else ""
    words = "\n\n".join(filter(None, (replied, sections.memory_sections(context))))
    return (
        (Layer(name="dynamic", turns=(user(f"{delimiter_mark(context.delimiter)} {words}".lstrip()),)),)
        if words
        else ()
    )


def _persona_text(persona: Persona) -> str:
    """Return all texts of the persona, without headings."""
    written = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    return "\n\n".join(filter(None, written))


def _verbatim(_: Context) -> Style:
    return "verbatim"


def _block(options: ContextBlock) -> Profile:
    return Profile(
        name="block",
        sources=partial(block_sources, most=options.max_messages),
        build=partial(block, max_messages=options.max_messages, include_meta=options.include_meta),
        joined=_verbatim,
    )


_ALL = (
    Profile(
        name="layered",
        sources=partial(window_sources, buffer=BUFFER),
        build=layered,
    ),
    Profile(name="tail", build=tail),
    Profile(name="native", sources=level_sources, build=native, joined=_verbatim),
    _block(ContextBlock()),
    Profile(name="headers", sources=worded_sources, build=headers),
    Profile(name="single", sources=worded_sources, build=single),
    Profile(name="plain", build=plain),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})


def profile_of(given: str | Profile | Build, options: ContextOptions) -> Profile:
    """Return the profile of that name as configured, or the one given; a function gets the sources of a window."""
    match given:
        case Profile():
            return given
        case str():
            return _by_name(given, options)
    if not callable(given):
        raise InvalidValue(f"a profile is a name, a Profile or a function from Context to Prompt, not {given!r}")
    return Profile(name=_name(given), build=given)


def _by_name(name: str, options: ContextOptions) -> Profile:
    """Return the profile of a name; `native` with the context block switched on is `block`."""
    if name not in PROFILES:
        raise InvalidValue(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    is_block = name == "block" or (name == "native" and options.block.enabled)
    return _block(options.block) if is_block else PROFILES[name]


def _name(function: object) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
