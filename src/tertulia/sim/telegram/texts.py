"""The text of a call: by entities or by a parse mode, within its limit."""

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.entities import AUTOMATIC, KNOWN, Entity, fixed, wire_entities
from tertulia.sim.telegram.html import parse_html
from tertulia.sim.telegram.links import checked_url, linked_user
from tertulia.sim.telegram.markdown import parse_markdown, parse_markdown_v2
from tertulia.sim.telegram.markup import MarkupError
from tertulia.sim.telegram.refusals import Refused, refused
from tertulia.sim.telegram.world import World

TEXT_LIMIT = 4096  # code points, after parsing
CAPTION_LIMIT = 1024
TEXT_BYTES = 1 << 15
MOST_ENTITIES = 100  # Telegram ignores the rest

Formatted = tuple[str, list[Entity]]


def parsed(world: World, text: str, parse_mode: str, entities: Any) -> Formatted:
    """Return a text with its entities as the server reads them, before TDLib checks them."""
    if len(text.encode(errors="surrogatepass")) > TEXT_BYTES:
        raise refused("text-bytes")
    mode = parse_mode.lower()
    if text and mode not in ("", "none"):
        return _known_people(world, *_marked_up(text, mode))
    if not isinstance(entities, list):
        return text, []
    read = (_entity(entity) for entity in entities)
    return _known_people(world, text, [entity for entity in read if entity is not None])


def _marked_up(text: str, mode: str) -> Formatted:
    if mode not in PARSERS:
        raise refused("parse-mode")
    try:
        return PARSERS[mode](text)
    except MarkupError as error:
        raise refused("entities", why=error) from None


def _known_people(world: World, text: str, entities: list[Entity]) -> Formatted:
    """Leave out mentions of people whom nobody knows."""
    return text, [entity for entity in entities if entity.type != "text_mention" or entity.user in world.accounts]


def entities_given(arguments: Arguments, name: str) -> Any:
    """Return the entities of a call; what is no JSON is read as none."""
    try:
        return arguments.json(name, "body")
    except Refused:
        return None


def message_text(world: World, arguments: Arguments) -> Formatted:
    """Return the text of `sendMessage` and `editMessageText`; its length is checked later."""
    if not arguments.text("text"):
        raise refused("text-empty")
    entities = entities_given(arguments, "entities")
    return parsed(world, arguments.text("text"), arguments.text("parse_mode"), entities)


def caption(world: World, arguments: Arguments) -> Formatted:
    """Return the caption of a call."""
    entities = entities_given(arguments, "caption_entities")
    return parsed(world, arguments.text("caption"), arguments.text("parse_mode"), entities)


def text_content(world: World, formatted: Formatted) -> Wire:
    """Return what a message with this text holds; refuse one that is too long."""
    text, entities = fixed(*formatted)
    if len(text) > TEXT_LIMIT:
        raise refused("text-long")
    return with_entities(world, {"text": text}, "entities", entities)


def caption_content(world: World, formatted: Formatted) -> Wire:
    """Return the caption of a message, nothing without one; refuse one that is too long."""
    text, entities = fixed(*formatted, allow_empty=True)
    if len(text) > CAPTION_LIMIT:
        raise refused("caption-long")
    return with_entities(world, {"caption": text}, "caption_entities", entities) if text else {}


def with_entities(world: World, content: Wire, name: str, entities: list[Entity]) -> Wire:
    """Add entities to what a message holds, if there are any."""
    users = {number: account.user() for number, account in world.accounts.items()}
    return content | {name: wire_entities(entities[:MOST_ENTITIES], users)} if entities else content


def _entity(given: Any) -> Entity | None:
    """Read an entity; None for those that only the service makes."""
    if not isinstance(given, dict):
        raise refused("entity-object", why="expected an Object")
    offset, length = _integer(given, "offset"), _integer(given, "length")
    kind = given.get("type")
    if not isinstance(kind, str):
        raise refused("entity-object", why='Can\'t find field "type"')
    if kind in AUTOMATIC:
        return None
    if kind not in KNOWN:
        raise refused("entity-object", why="Unsupported type specified")
    entity = Entity(type=kind, offset=offset, length=length)
    match kind:
        case "pre":
            return replace(entity, language=str(given.get("language") or "") or None)
        case "text_link":
            return _text_link(entity, given)
        case "text_mention":
            user = given.get("user")
            if not isinstance(user, dict):
                raise refused("entity-object", why='Can\'t find field "user"')
            return replace(entity, user=_integer(user, "id"))
        case "custom_emoji":
            number = _integer(given, "custom_emoji_id")
            if not number:
                raise refused("entity", why="invalid custom emoji identifier specified")
            return replace(entity, custom_emoji_id=str(number))
        case "date_time":
            form = str(given.get("date_time_format") or "")
            return replace(entity, unix_time=_integer(given, "unix_time"), date_time_format=form)
        case _:
            return entity


def _integer(given: Wire, name: str) -> int:
    """Return a field that must be a number; the server takes digits too."""
    value = given.get(name)
    if value is None:
        raise refused("entity-object", why=f'Can\'t find field "{name}"')
    digits = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", digits):
        raise refused("entity-object", why=f'Field "{name}" must be a valid Number')
    return int(digits)


def _text_link(entity: Entity, given: Wire) -> Entity:
    url = given.get("url")
    if not isinstance(url, str):
        raise refused("entity-object", why='Can\'t find field "url"')
    user = linked_user(url)
    if user is not None:
        return replace(entity, type="text_mention", user=user)
    try:
        return replace(entity, url=checked_url(url))
    except ValueError as error:
        raise refused("entity", why=f"entity URL '{url}' is invalid: {error}") from None


PARSERS: dict[str, Callable[[str], Formatted]] = {
    "html": parse_html,
    "markdown": parse_markdown,
    "markdownv2": parse_markdown_v2,
}
