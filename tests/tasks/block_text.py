"""Task blocks written as a model writes them: the inverse of `parse`."""

from collections.abc import Mapping
from typing import assert_never

from tertulia.errors import InvalidValue
from tertulia.tasks import task
from tertulia.tasks.blocks import ParsedText, heading_line, parse
from tertulia.tasks.kinds import KINDS, Body, Kind


def format_text(parsed: ParsedText, *, kinds: Mapping[str, Kind] = KINDS) -> str:
    """Return a text that `parse` reads as *parsed*; raise `InvalidValue` where there is none."""
    pieces = [f"{parsed.text}\n"] if parsed.text else []
    for block in parsed.blocks:
        body = body_of(block)
        pieces.append(f"{heading_line(task.kind_of(block), body.id)}\n" + (f"{body.text}\n" if body.text else ""))
    text = "".join(pieces)
    if parse(text, kinds=kinds) != ParsedText(text=parsed.text, blocks=parsed.blocks):
        raise InvalidValue("these blocks cannot be written so that they are read again as they are")
    return text


def body_of(block: task.TaskBlock) -> Body:
    """Write *block* as the body below its heading."""
    match block:
        case task.Send():
            return Body(text=block.text, id=block.reply_to)
        case task.Wait():
            return Body(text=f"delay: {block.seconds}")
        case task.SendSticker():
            return Body(text=_body_lines(block.set, block.name), id=block.reply_to)
        case task.Remember():
            return Body(text=_body_lines(*block.facts))
        case task.Think():
            return Body(text=block.text)
        case task.BlockAuthor() | task.UnblockAuthor() | task.ClearConversation():
            return Body(text="")
        case task.Custom():
            return Body(text=block.body, id=block.id)
        case _:
            assert_never(block)


def _body_lines(*lines: str) -> str:
    """Join lines. One that looks like a heading is indented by four blanks, which the parser removes."""
    return "\n".join(f"    {line}" if line.lstrip("\ufeff").startswith("#") else line for line in lines)
