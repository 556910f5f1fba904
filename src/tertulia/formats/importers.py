"""Import of conversations that other programs stored: the format is detected, and read into turns or messages. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime
from json import JSONDecodeError
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.context.values import Context, Persona
from tertulia.errors import InvalidValue, ResponseUnreadable
from tertulia.formats.compact import author_of, is_compact, read_compact, unknown_author
from tertulia.formats.lists import TurnList, count_tool_parts, message_parts, read_genai, read_openai
from tertulia.formats.meta import AGENT, has_headers, read_meta
from tertulia.jsonio import loads
from tertulia.messages import Author, Message, Place, Quote
from tertulia.prompt.render import turns_of
from tertulia.turns import Turn

Form = Literal["genai", "openai", "compact", "meta"]
FORMS: tuple[Form, ...] = get_args(Form)

_AT_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)  # these formats have no times of messages


class ImportedConversation(Struct, frozen=True, kw_only=True):
    """A conversation as read: turns of a list, or messages of a log; `as_turns` and `as_messages` convert."""

    form: Form
    turns: tuple[Turn, ...] = ()
    messages: tuple[Message, ...] = ()
    system: str = ""
    names: dict[int, str] = {}  # authors by the numbers of turns, where the source has them
    agent: str | None = None  # the agent's name, if known
    left_out: tuple[str, ...] = ()  # unknown fields
    unsaid: int = 0  # thoughts, calls and results beside the messages


def import_conversation(
    data: bytes, *, form: str | None = None, agent: str | None = None, model: str | None = None
) -> ImportedConversation:
    """Read the conversation in *data*; raise `InvalidValue` with one line that says where it is wrong."""
    text = _text(data)
    match _check_form(form) or _form_of_text(text):
        case "compact":
            messages = read_compact(text, agent=agent)
            return ImportedConversation(form="compact", messages=messages, agent=_agent_of(messages) or agent)
        case "openai":
            return _from_list("openai", read_openai(_json(text), model=model), agent)
        case "genai":
            return _from_list("genai", read_genai(_json(text), model=model), agent)
        case "meta":
            return _from_meta(read_genai(_json(text), model=model), agent)
        case None:
            return _guess_form(_json(text), agent, model)


def as_turns(found: ImportedConversation) -> tuple[Turn, ...]:
    """Return the conversation as turns; among several people each message has a header."""
    if not found.messages:
        return found.turns
    place = found.messages[-1].place
    context = Context(target=found.messages[-1], now=_AT_NO_TIME, place=place, persona=Persona(name=found.agent or ""))
    return tuple(turns_of(found.messages, context, "headed" if place.kind == "group" else "direct"))


def as_messages(found: ImportedConversation) -> tuple[Message, ...]:
    """Return the conversation as messages of people and the agent."""
    if not found.turns:
        return found.messages
    people = {_speaker(found, number).id for number, turn in enumerate(found.turns) if turn.role == "user"}
    place = Place(platform="", id="", kind="group" if len(people) > 1 else "direct")
    messages = (
        Message(id=str(number + 1), place=place, author=_speaker(found, number), parts=message_parts(turn.parts))
        for number, turn in enumerate(found.turns)
    )
    return tuple(message for message in messages if message.parts)


def as_document(found: ImportedConversation, *, now: datetime) -> dict[str, Any]:
    """Return the conversation as a document for `tertulia render`; *now* is used where no message has a time."""
    messages = as_messages(found)
    document: dict[str, Any] = {"persona": found.system} if found.system else {}
    if found.agent:
        document["agent"] = found.agent
    return {
        **document,
        "now": max((message.sent_at for message in messages if message.sent_at), default=now).isoformat(),
        "timezone": "UTC",
        "chat": msgspec.to_builtins(_one_place(messages)),
        "messages": _entries(messages),
    }


def _entries(messages: Iterable[Message]) -> list[dict[str, Any]]:
    known: dict[str, Message] = {}
    entries = []
    for message in messages:
        known[message.id] = message
        entry = msgspec.to_builtins(message)
        del entry["place"]
        if message.reply_to and _is_whole(message.reply_to, known):
            entry["reply_to"] = message.reply_to.message_id
        entries.append(entry)
    return entries


def _is_whole(quote: Quote, known: dict[str, Message]) -> bool:
    """Return whether the id alone says all of a quote."""
    message = known.get(quote.message_id)
    return message is not None and quote == Quote(message_id=message.id).update_from(message)


def _one_place(messages: Iterable[Message]) -> Place:
    """Return the place of all messages; with a thread only where it is the same for all."""
    places = list(dict.fromkeys(message.place for message in messages))
    chats = list(dict.fromkeys(place.id for place in places))
    if len(chats) > 1:
        raise InvalidValue(f"messages of several chats ({', '.join(chats[:5])}); a conversation is of one")
    if not places:
        return Place(platform="", id="", kind="direct")
    return places[0] if len(places) == 1 else replace(places[0], thread=None)


def _speaker(found: ImportedConversation, number: int) -> Author:
    name = found.names.get(number)
    if found.turns[number].role == "model":
        persona = found.agent or AGENT
        return Author(id=persona, name=name or persona, persona=persona)
    return author_of(identity=None, name=name) if name and not is_blank(name) else unknown_author(found.names.values())


def _check_form(form: str | None) -> Form | None:
    found = next((one for one in FORMS if one == form), None)
    if form is not None and found is None:
        raise InvalidValue(f"{form[:40]!r} is no format we read: {', '.join(FORMS)}")
    return found


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidValue(f"line {line}: the text is not UTF-8") from error
    if not text.strip():
        raise InvalidValue("there is nothing to read: the input is empty")
    return text


def _form_of_text(text: str) -> Form | None:
    """Return `compact` for text that is no JSON; None for JSON, whose format is seen when it is read."""
    if text.lstrip().startswith(("{", "[")):
        return None
    if is_compact(text):
        return "compact"
    raise InvalidValue("line 1: neither JSON nor lines such as `Name#number: text`")


def _json(text: str) -> Any:
    try:
        return loads(text)
    except ResponseUnreadable as error:
        why = error.__cause__
        if isinstance(why, JSONDecodeError):
            raise InvalidValue(f"line {why.lineno}: no JSON: {why.msg} at column {why.colno}") from error
        if isinstance(why, RecursionError):
            raise InvalidValue("the JSON is nested too deeply") from error
        raise InvalidValue(f"no JSON that we read: {str(why).partition(':')[0]}") from error


def _guess_form(found: Any, agent: str | None, model: str | None) -> ImportedConversation:
    """Read JSON in the format that its fields show."""
    if _is_list_of(found, "messages", "content"):
        return _from_list("openai", read_openai(found, model=model), agent)
    if not _is_list_of(found, "contents", "parts") and found != []:
        raise InvalidValue("the JSON is neither a list of contents (`parts`) nor of messages (`content`)")
    listed = read_genai(found, model=model)
    return _from_meta(listed, agent) if has_headers(listed.turns) else _from_list("genai", listed, agent)


def _is_list_of(found: Any, list_key: str, item_key: str) -> bool:
    """Return whether the JSON is an object with one of the keys, or a list with an item that has *item_key*."""
    if isinstance(found, dict):
        return list_key in found or item_key in found
    return isinstance(found, list) and any(isinstance(item, dict) and item_key in item for item in found)


def _from_list(form: Form, listed: TurnList, agent: str | None) -> ImportedConversation:
    return ImportedConversation(
        form=form,
        turns=listed.turns,
        system=listed.system,
        names=listed.names,
        agent=agent or _agent_in(listed),
        left_out=listed.left_out,
        unsaid=count_tool_parts(listed.turns),
    )


def _agent_in(listed: TurnList) -> str | None:
    own = [number for number, turn in enumerate(listed.turns) if turn.role == "model"]
    named = (listed.names[number] for number in own if number in listed.names)
    return next(named, AGENT if own else None)


def _from_meta(listed: TurnList, agent: str | None) -> ImportedConversation:
    messages = read_meta(listed.turns, agent=agent)
    plain = _from_list("meta", listed, agent)
    return replace(plain, turns=(), messages=messages, agent=agent or _agent_of(messages))


def _agent_of(messages: Iterable[Message]) -> str | None:
    return next((message.author.persona for message in messages if message.author.persona), None)
