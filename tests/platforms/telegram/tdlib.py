"""TDLib as the judge of what we send: the library of Telegram's own apps, and of its Bot API server."""

import json
from typing import Any

from tertulia.platforms.telegram.markdown import Entity, FormattedText

TYPES = {
    "bold": "textEntityTypeBold",
    "italic": "textEntityTypeItalic",
    "strikethrough": "textEntityTypeStrikethrough",
    "code": "textEntityTypeCode",
    "pre": "textEntityTypePre",
    "blockquote": "textEntityTypeBlockQuote",
    "text_link": "textEntityTypeTextUrl",
}


def refusal(formatted: FormattedText) -> str | None:
    """Return why TDLib refuses a text with its entities; None if it takes them."""
    answer = _execute("getMarkdownText", formatted)
    return str(answer["message"]) if answer["@type"] == "error" else None


def accepted(formatted: FormattedText) -> FormattedText:
    """Return what TDLib makes of a text without Markdown characters and its entities."""
    answer = _execute("parseMarkdown", formatted)
    names = {name: type for type, name in TYPES.items()}
    entities = tuple(
        Entity(
            type=names.get(entity["type"]["@type"], "pre"),
            offset=entity["offset"],
            length=entity["length"],
            url=entity["type"].get("url"),
            language=entity["type"].get("language"),
        )
        for entity in answer["entities"]
    )
    return FormattedText(text=answer["text"], entities=entities)


def styles(formatted: FormattedText) -> list[set[str]]:
    """Return how each UTF-16 unit of a text is shown that is no blank. TDLib divides entities where others begin."""
    encoded = formatted.text.encode("utf-16-le")
    units: list[set[str]] = [set() for _ in range(len(encoded) // 2)]
    for entity in formatted.entities:
        for unit in units[entity.offset : entity.offset + entity.length]:
            unit.add(f"{entity.type} {entity.language}")
    codes = [int.from_bytes(encoded[at : at + 2], "little") for at in range(0, len(encoded), 2)]
    return [unit for unit, code in zip(units, codes, strict=True) if not chr(code).isspace()]


def _execute(method: str, formatted: FormattedText) -> dict[str, Any]:
    import tdjson  # 53 MB: for these tests alone

    tdjson.td_execute(b'{"@type": "setLogVerbosityLevel", "new_verbosity_level": 0}')
    entities = [
        {"@type": "textEntity", "offset": entity.offset, "length": entity.length, "type": _type(entity)}
        for entity in formatted.entities
    ]
    text = {"@type": "formattedText", "text": formatted.text, "entities": entities}
    answer = tdjson.td_execute(json.dumps({"@type": method, "text": text}).encode())
    assert answer is not None
    found: dict[str, Any] = json.loads(answer)
    return found


def _type(entity: Entity) -> dict[str, str]:
    if entity.language:
        return {"@type": "textEntityTypePreCode", "language": entity.language}
    if entity.url is not None:
        return {"@type": TYPES[entity.type], "url": entity.url}
    return {"@type": TYPES[entity.type]}
