"""Texts with task blocks, written as a model writes them: the inverse of `parse`."""

from collections.abc import Mapping

from tertulia.errors import InvalidValue
from tertulia.tasks.blocks import ParsedText, block_text, parse
from tertulia.tasks.kinds import KINDS, Kind


def format_text(parsed: ParsedText, *, kinds: Mapping[str, Kind] = KINDS) -> str:
    """Return a text that `parse` reads as *parsed*; raise `InvalidValue` where there is none."""
    pieces = [*([parsed.text] if parsed.text else []), *map(block_text, parsed.blocks)]
    text = "".join(f"{piece}\n" for piece in pieces)
    if parse(text, kinds=kinds) != ParsedText(text=parsed.text, blocks=parsed.blocks):
        raise InvalidValue("these blocks cannot be written so that they are read again as they are")
    return text
