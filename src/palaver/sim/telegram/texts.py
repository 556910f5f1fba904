"""The text of a call: by entities or by a parse mode, within its limit."""

from typing import Any

from palaver.sim.errors import Wire
from palaver.sim.telegram.arguments import Arguments
from palaver.sim.telegram.entities import KNOWN, Entity, checked_url, fixed, wire_entities
from palaver.sim.telegram.refusals import refused
from palaver.sim.telegram.world import World

TEXT_LIMIT = 4096  # code points, after parsing
CAPTION_LIMIT = 1024
TEXT_BYTES = 1 << 15

Formatted = tuple[str, list[Entity]]


def parsed(world: World, text: str, parse_mode: str, entities: Any) -> Formatted:
    """Return a text with its entities as the server reads them, before TDLib checks them."""
    if len(text.encode(errors="surrogatepass")) > TEXT_BYTES:
        raise refused("text-bytes")
    mode = parse_mode.lower()
    if text and mode not in ("", "none"):
        raise refused("parse-mode")
    if not isinstance(entities, list):
        return text, []
    read = (_entity(world, entity) for entity in entities)
    return text, [entity for entity in read if entity is not None]


def message_text(world: World, arguments: Arguments) -> Formatted:
    """Return the text of `sendMessage` and `editMessageText`; its length is checked later."""
    if not arguments.text("text"):
        raise refused("text-empty")
    entities = arguments.json("entities", "entity-json")
    return parsed(world, arguments.text("text"), arguments.text("parse_mode"), entities)


def caption(world: World, arguments: Arguments) -> Formatted:
    """Return the caption of a call."""
    entities = arguments.json("caption_entities", "entity-json")
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
    return content | {name: wire_entities(entities, users)} if entities else content


def _entity(world: World, given: Any) -> Entity | None:
    """Read an entity; None for those that only the service makes, and for kinds that it does not know."""
    if not isinstance(given, dict):
        raise refused("entity-object", why="expected an Object")
    offset, length, kind = given.get("offset"), given.get("length"), given.get("type")
    for name, value in (("offset", offset), ("length", length)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise refused("entity-object", why=f'field "{name}" must be a valid Number')
    if not isinstance(kind, str):
        raise refused("entity-object", why='can\'t find field "type"')
    if kind not in KNOWN:
        return None
    user = given.get("user") if isinstance(given.get("user"), dict) else None
    entity = Entity(
        type=kind,
        offset=int(offset or 0),
        length=int(length or 0),
        url=_url(given) if kind == "text_link" else None,
        user=int(user.get("id", 0)) if kind == "text_mention" and user else None,
        language=str(given.get("language") or "") if kind == "pre" else None,
        custom_emoji_id=str(given.get("custom_emoji_id", "")) if kind == "custom_emoji" else None,
        unix_time=int(given.get("unix_time", 0)) if kind == "date_time" else None,
        date_time_format=str(given.get("date_time_format", "")) if kind == "date_time" else None,
    )
    return None if kind == "text_mention" and entity.user not in world.accounts else entity


def _url(given: Wire) -> str:
    url = str(given.get("url", ""))
    try:
        return checked_url(url)
    except ValueError as error:
        raise refused("entity", why=f"entity URL '{url}' is invalid: {error}") from None
