"""The `single` profile: the target and what it replies to as one message, for OpenAI-compatible services. Pure."""

from collections.abc import Iterable

from palaver.context.values import Context
from palaver.messages import Author, Quote
from palaver.parts import Media, Part, Text, cut, cut_parts
from palaver.prompt import sections
from palaver.prompt.layers import run_layer
from palaver.prompt.quoting import (
    Quoted,
    Voice,
    agent_name,
    attached,
    clean,
    guarded,
    joined,
    kind_of,
    shown,
    tidy,
    worded,
)
from palaver.turns import Layer, Prompt, user


def single(context: Context) -> Prompt:
    """One turn: the words of the target and of its quote first, then the media of both."""
    text, media, quoted = _said(context)
    words = Text(text=text) if quoted is None else in_list(text)
    turn = user(words, *media, *(quoted.media if quoted else ()))
    layers = (
        Layer(name="static", instruction=_instruction(context)),
        Layer(name="trigger", turns=(turn,)),
    )
    return Prompt(layers=layers + run_layer(context))


def in_list(text: str) -> Text:
    """A text that goes as a list of one element, as a message with a reference does."""
    return Text(text=text, raw={"type": "text", "text": text})


def _said(context: Context) -> tuple[str, tuple[Media, ...], Quoted | None]:
    """The text of the one message, which is all of the batch, its media, and what it replies to."""
    text = "\n".join(filter(None, (_text(message.parts) for message in context.batch)))
    media = tuple(one for message in context.batch for one in _media(message.parts))
    quoted = _quoted(context)
    return worded(text, quoted, [kind_of(one) for one in media]), media, quoted


def _quoted(context: Context) -> Quoted | None:
    """What is replied to; None where nothing is known of it."""
    quote = context.quote
    if quote is None:
        return None
    text, media = _quoted_text(quote), attached(_media(quote.parts))
    if quote.author is None and not text and not media:
        return None
    voice = _voice(quote.author, context)
    return Quoted(voice=voice, name=_name(quote.author, voice), text=text, media=media)


def _quoted_text(quote: Quote) -> str:
    return clean(cut(quote.excerpt)) if quote.excerpt else _text(quote.parts)


def _voice(author: Author | None, context: Context) -> Voice:
    if author is None:
        return "person"
    if author.id and author.id == context.target.author.id:
        return "self"
    if context.is_me(author):
        return "own"
    return "person" if author.persona is None else "agent"


def _name(author: Author | None, voice: Voice) -> str:
    if author is None:
        return ""
    return agent_name(author.name, author.persona) if voice == "agent" else shown(author.name)


def _text(parts: Iterable[Part]) -> str:
    return joined(part.text for part in cut_parts(tuple(parts)) if isinstance(part, Text))


def _media(parts: Iterable[Part]) -> tuple[Media, ...]:
    return tuple(tidy(part) for part in cut_parts(tuple(parts)) if isinstance(part, Media))


def _instruction(context: Context) -> str:
    persona = context.persona
    words = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    remembered = guarded(clean(sections.remembered(context)))
    return "\n\n".join([*(clean(word) for word in words if word), *([remembered] if remembered else [])])
