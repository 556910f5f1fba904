"""Grammars of `[meta]`, `[speaker …]` and context block lines: the cleaner removes them from replies. Pure."""

from collections.abc import Generator

from tertulia.grammar import Candidate, Grammar, Miss, Steps, line_end, literal, token

LONGEST_VALUE = 512
MOST_INDENT = 64  # blanks before a block

META = frozenset(
    "chat_id thread_id message_id user_id username name is_bot reply_to_message_id reply_to_user_id reply_to_username "
    "reply_to_name reply_excerpt".split()
)
SPEAKER = frozenset("role id name username is_bot".split())

_WORDS = {
    "is_bot": frozenset("0 1 true false".split()),
    "role": frozenset("user model assistant bot system".split()),
}
_BEGINNINGS = {keys: frozenset(key[:end] for key in keys for end in range(len(key) + 1)) for keys in (META, SPEAKER)}


def square_meta(own: Candidate) -> Steps:
    """`[meta] user_id=5 name="Alice"` or `[meta user_id=5]`, with the gap after it; in backticks it is text.

    A model may write it from memory: `[metadata: chat_id=1, user_id=5]`. That is metadata if it holds an id.
    """
    yield from _block_name(own, "[meta")
    loose = yield from _is_metadata(own)
    loose |= yield from _is_next(own, ":")
    if (yield from _is_next(own, "]")):
        yield from _is_next(own, ":")
        yield from _open_block(own, loose=loose)
        return
    keys = yield from _bracketed_pairs(own, META)
    if loose and not any(key.endswith("id") for key in keys):
        raise Miss
    yield from _block_end(own)


def round_meta(own: Candidate) -> Steps:
    """`(meta: chat_id=1 user_id=5)`, as a model may write it from memory; metadata only if it holds an id."""
    yield from _block_name(own, "(meta")
    yield from _is_metadata(own)
    yield from _is_next(own, ":")
    if not any(key.endswith("id") for key in (yield from _bracketed_pairs(own, META, end=")"))):
        raise Miss
    yield from _block_end(own)


def _is_metadata(own: Candidate) -> Generator[None, str, bool]:
    """Return whether the name goes on as `metadata`."""
    char = yield
    if char not in ("d", "D"):
        own.unread(char)
        return False
    for expected in "ata":
        if (yield) not in (expected, expected.upper()):
            raise Miss
    return True


def square_speaker(own: Candidate) -> Steps:
    """`[speaker role=user id=1 name="…" is_bot=0]`, with the gap after it; in backticks it is text."""
    yield from _block_name(own, "[speaker")
    yield from _bracketed_pairs(own, SPEAKER)
    yield from _block_end(own)


def round_speaker(own: Candidate) -> Steps:
    """`(speaker role=user id=1)`, as a model may write it from memory; metadata only if it holds a role or an id."""
    yield from _block_name(own, "(speaker")
    if not {"role", "id"}.intersection((yield from _bracketed_pairs(own, SPEAKER, end=")"))):
        raise Miss
    yield from _block_end(own)


def at_line_end(grammar: Grammar) -> Grammar:
    """Return the grammar after a blank, where nothing else follows in the line: the blank goes too."""

    def ending(own: Candidate) -> Steps:
        yield from literal(" ")
        at_end = False
        try:
            yield from grammar(own)
            at_end = (yield) in ("", "\r", "\n")
        finally:
            own.taken = own.taken if at_end else 0

    return ending


def indented(grammar: Grammar) -> Grammar:
    """Return the grammar after the blanks that begin a line."""

    def after_blanks(own: Candidate) -> Steps:
        for _ in range(MOST_INDENT):
            char = yield
            if char not in (" ", "\t"):
                own.unread(char)
                break
        yield from grammar(own)

    return after_blanks


def speaker_line(role: str) -> Grammar:
    """Return the grammar of the beginning of a context block line: `user [meta] user_id=5: `."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(f"{role} [meta")
        if (yield from _is_next(own, "]")):
            yield from _pair(own, META)
            while not (yield from _is_next(own, ":")):
                yield from _pair(own, META)
        else:
            yield from _bracketed_pairs(own, META)
            yield from literal(":")
        if not (yield from _is_next(own, " ")) and not (yield from line_end(own)):
            raise Miss
        own.take()

    return grammar


def _open_block(own: Candidate, *, loose: bool) -> Steps:
    """Read pairs up to the last one, which ends the block. A block with a *loose* name must begin with an id.

    A comma goes with the pair before it where another pair follows, or where the block begins a line.
    """
    first = True
    while True:
        key = yield from _pair(own, META, sure=not first, listed=True)
        if loose and first and not key.endswith("id"):
            raise Miss
        first = False
        own.take()
        listed = yield from _is_listed(own)
        if listed:
            yield
            if own.fresh:
                own.take()
        if not (yield from _is_next(own, " ")):
            yield from gap(own)
            return
        if not _needs_gap(own) and (own.fresh or not listed):
            own.take()
        own.unread(" ")


def _bracketed_pairs(own: Candidate, keys: frozenset[str], *, end: str = "]") -> Generator[None, str, list[str]]:
    """Read pairs up to the bracket, with or without commas between them; return their keys."""
    found = [(yield from _pair(own, keys, after=","))]
    while not (yield from _is_next(own, end)):
        yield from _is_next(own, ",")
        found.append((yield from _pair(own, keys, after=",")))
    return found


def _block_end(own: Candidate) -> Steps:
    """Take a block in brackets, the colon of what it introduces, and the gap after it."""
    if own.fresh:
        yield from _is_next(own, ":")
    own.take()
    yield from gap(own)


def gap(own: Candidate) -> Steps:
    """Take the blank after a piece where none is needed, or the end of a line that holds nothing else."""
    ended = own.fresh and (yield from line_end(own))
    if ended or (not _needs_gap(own) and (yield from _is_next(own, " "))):
        own.take()


def _needs_gap(own: Candidate) -> bool:
    """Return whether a blank after the piece must stay between what is before and after it."""
    return own.reopened or (not own.fresh and not own.before.isspace() and own.before not in "*_~(")


def _block_name(own: Candidate, name: str) -> Steps:
    """Read the name of a block, in upper or lower case."""
    for expected in name:
        if (yield) not in (expected, expected.upper()):
            raise Miss
    if own.before == "`":
        raise Miss


def _pair(
    own: Candidate, keys: frozenset[str], *, sure: bool = False, after: str = "", listed: bool = False
) -> Generator[None, str, str]:
    """Read a space, a key and its value; return the key. Characters that may stand *after* the value are not read.

    If it is *sure* that this is metadata, any character but a letter or a digit ends the value. If pairs may be
    *listed*, a comma before a blank ends an id too.
    """
    yield from literal(" ")
    key = ""
    while (char := (yield)) != "=":
        key += char.lower()
        if not char or key not in _BEGINNINGS[keys]:
            raise Miss
    if key not in keys:
        raise Miss
    if key in _WORDS:
        yield from _word(own, _WORDS[key], sure=sure, after=after)
    elif (yield from _is_next(own, '"')):
        yield from _quoted_value(own, after="," if listed and (sure or key.endswith("id")) else after)
    elif key.endswith("id"):
        yield from _number(own, sure=sure, after=after, listed=listed)
    else:
        raise Miss
    return key


def _word(own: Candidate, words: frozenset[str], *, sure: bool, after: str) -> Steps:
    if (yield from token(own, str.isalnum, most=LONGEST_VALUE)).lower() not in words:
        raise Miss
    yield from _bare_end(own, sure=sure, after=after)


def _number(own: Candidate, *, sure: bool, after: str, listed: bool) -> Steps:
    yield from _is_next(own, "-")
    yield from token(own, "0123456789".__contains__, most=LONGEST_VALUE)
    if not (listed and (yield from _is_listed(own))):
        yield from _bare_end(own, sure=sure, after=after)


def _bare_end(own: Candidate, *, sure: bool, after: str) -> Steps:
    """Match the character that ends an unquoted value, without reading it: a blank, a bracket, emphasis or a colon."""
    char = yield
    ended = not char or char.isspace() or char in f"[])*_~{after}" or (char == ":" and (yield from _follows(own, "")))
    ended = ended or (sure and not char.isalnum())
    own.unread(char)
    if not ended:
        raise Miss


def _quoted_value(own: Candidate, *, after: str) -> Steps:
    """Read up to the quotation mark that ends the value.

    A backslash itself is written as it is. So `"C:\\"` is a whole value too, where nothing else could end it.
    """
    since: list[str] | None = None  # what was read since a mark that ends the value only if no other does
    previous = ""
    for _ in range(LONGEST_VALUE):
        char = yield
        if since is not None:
            since.append(char)
        if char in ("", "\n"):
            break
        if char == '"' and (yield from _follows(own, f":[])*_~{after}")):
            if previous != "\\":
                return
            since = []
        elif char == '"' and previous != "\\":
            break
        previous = char
    if since is None:
        raise Miss
    own.unread(*since)


def _is_listed(own: Candidate) -> Generator[None, str, bool]:
    """Return whether a comma and a blank follow, without reading them."""
    comma = yield
    if comma != ",":
        own.unread(comma)
        return False
    blank = yield
    own.unread(comma, blank)
    return blank == " "


def _follows(own: Candidate, also: str) -> Generator[None, str, bool]:
    """Return whether a blank, the end, or one of these characters follows, without reading it."""
    char = yield
    own.unread(char)
    return not char or char.isspace() or char in also


def _is_next(own: Candidate, expected: str) -> Generator[None, str, bool]:
    char = yield
    if char != expected:
        own.unread(char)
    return char == expected
