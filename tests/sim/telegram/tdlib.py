"""TDLib as the judge of the simulator: the library that the Bot API server reads texts with."""

import json
from typing import Any

from tertulia.sim.telegram.entities import Entity

NAMES = {
    "text_link": "TextUrl",
    "text_mention": "MentionName",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
    "expandable_blockquote": "ExpandableBlockQuote",
    "date_time": "DateTime",
    "email": "EmailAddress",
    "bot_command": "BotCommand",
    "bank_card_number": "BankCardNumber",
    "precode": "PreCode",
    **{name: name.capitalize() for name in "bold italic underline strikethrough spoiler code pre".split()},
    **{name: name.capitalize() for name in "mention hashtag cashtag url".split()},
}
TYPES = {f"textEntityType{name}": type for type, name in NAMES.items()}
FIELDS = {"url": "url", "user_id": "user", "language": "language", "custom_emoji_id": "custom_emoji_id"}

Read = tuple[str, list[Entity]] | str  # a text with entities, or why it is refused


def parse(text: str, mode: str) -> Read:
    """Return what a parse mode makes of a text."""
    version = {"markdown": 1, "markdownv2": 2}.get(mode)
    kind = {"@type": "textParseModeHTML"} if version is None else {"@type": "textParseModeMarkdown", "version": version}
    return _read(execute({"@type": "parseTextEntities", "text": text, "parse_mode": kind}))


def fix(text: str, entities: list[Entity]) -> Read:
    """Return what TDLib makes of a text without Markdown characters and its entities, untrimmed."""
    given = [
        {"@type": "textEntity", "offset": one.offset, "length": one.length, "type": _type(one)} for one in entities
    ]
    formatted = {"@type": "formattedText", "text": text, "entities": given}
    return _read(execute({"@type": "parseMarkdown", "text": formatted}))


def find(text: str) -> list[tuple[str, int, int]]:
    """Return the type, offset and length of the entities in a text."""
    found = execute({"@type": "getTextEntities", "text": text})["entities"]
    known = [one for one in found if one["type"]["@type"] in TYPES]  # media timestamps are for players
    return [(TYPES[one["type"]["@type"]], one["offset"], one["length"]) for one in known]


def execute(request: dict[str, Any]) -> dict[str, Any]:
    import tdjson  # 53 MB: for these tests alone

    tdjson.td_execute(b'{"@type": "setLogVerbosityLevel", "new_verbosity_level": 0}')
    answer = tdjson.td_execute(json.dumps(request).encode())
    assert answer is not None
    found: dict[str, Any] = json.loads(answer)
    return found


def _type(entity: Entity) -> dict[str, Any]:
    name = NAMES["precode" if entity.language else entity.type]
    fields = {ours: getattr(entity, theirs) for ours, theirs in FIELDS.items()}
    given = {name: value for name, value in fields.items() if value is not None}
    return {"@type": f"textEntityType{name}", **given, **({"unix_time": entity.unix_time} if entity.unix_time else {})}


def _read(answer: dict[str, Any]) -> Read:
    if answer["@type"] == "error":
        return str(answer["message"])
    return answer["text"], [_entity(one) for one in answer["entities"]]


def _entity(found: dict[str, Any]) -> Entity:
    kind = TYPES[found["type"]["@type"]]
    fields = {theirs: found["type"][ours] for ours, theirs in FIELDS.items() if ours in found["type"]}
    return Entity(
        type="pre" if kind == "precode" else kind,
        offset=found["offset"],
        length=found["length"],
        unix_time=found["type"].get("unix_time"),
        **fields,
    )
