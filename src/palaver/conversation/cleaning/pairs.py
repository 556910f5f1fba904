"""The `key=value` pairs of the old formats: `[meta]` blocks, wrapped ones, and `[speaker …]`. Pure."""

from collections.abc import Generator

from palaver.conversation.cleaning.reading import Grammar, Miss, Reading, Steps, line_end, literal, token

LONGEST_VALUE = 512

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


def meta(own: Reading) -> Steps:
    """`[meta] user_id=5 name="Alice"` or `[meta user_id=5]`, and the newline or the space after it."""
    yield from literal("[meta")
    if (yield from _is_next(own, "]")):
        yield from _open_block(own)
        return
    yield from _wrapped(own, META)
    own.take()
    yield from _gap(own)


def speaker(own: Reading) -> Steps:
    """`[speaker role=user id=1 name="…" is_bot=0]`, and the newline or the space after it."""
    yield from literal("[speaker")
    yield from _wrapped(own, SPEAKER)
    own.take()
    yield from _gap(own)


def spoken_by(role: str) -> Grammar:
    """What begins a line of the context block: `user [meta] user_id=5: `."""

    def grammar(own: Reading) -> Steps:
        yield from literal(f"{role} [meta")
        if (yield from _is_next(own, "]")):
            yield from _pair(own, META)
            while not (yield from _is_next(own, ":")):
                yield from _pair(own, META)
        else:
            yield from _wrapped(own, META)
            yield from literal(":")
        if not (yield from _is_next(own, " ")) and not (yield from line_end(own)):
            raise Miss
        own.take()

    return grammar


def _open_block(own: Reading) -> Steps:
    """Pairs up to the last one; then the block has ended."""
    while True:
        yield from _pair(own, META)
        own.take()
        if not (yield from _is_next(own, " ")):
            yield from _gap(own)
            return
        own.take()
        own.unread(" ")


def _wrapped(own: Reading, keys: frozenset[str]) -> Steps:
    yield from _pair(own, keys)
    while not (yield from _is_next(own, "]")):
        yield from _pair(own, keys)


def _gap(own: Reading) -> Steps:
    if (yield from _is_next(own, " ")) or (yield from line_end(own)):
        own.take()


def _pair(own: Reading, keys: frozenset[str]) -> Steps:
    """A space, a key and its value."""
    yield from literal(" ")
    key = ""
    while (char := (yield)) != "=":
        key += char
        if not char or key not in _BEGINNINGS[keys]:
            raise Miss
    if key not in keys:
        raise Miss
    if key in _WORDS:
        yield from _word(own, _WORDS[key])
    elif (yield from _is_next(own, '"')):
        yield from _quoted(own)
    elif key.endswith("id"):
        yield from _number(own)
    else:
        raise Miss


def _word(own: Reading, words: frozenset[str]) -> Steps:
    if (yield from token(own, str.isalnum, most=LONGEST_VALUE)) not in words:
        raise Miss
    yield from _bare_end(own)


def _number(own: Reading) -> Steps:
    yield from _is_next(own, "-")
    yield from token(own, "0123456789".__contains__, most=LONGEST_VALUE)
    yield from _bare_end(own)


def _bare_end(own: Reading) -> Steps:
    """A blank, a bracket, or the colon that ends who speaks, which is not yet read."""
    char = yield
    ended = not char or char.isspace() or char in "[]" or (char == ":" and (yield from _follows(own, "")))
    own.unread(char)
    if not ended:
        raise Miss


def _quoted(own: Reading) -> Steps:
    """Up to the quotation mark that ends it.

    A backslash itself is written as it is. So `"C:\\"` is a whole value too, where nothing else could end it.
    """
    after: list[str] | None = None  # what was read since a mark that ends the value only if no other does
    previous = ""
    for _ in range(LONGEST_VALUE):
        char = yield
        if after is not None:
            after.append(char)
        if char in ("", "\n"):
            break
        if char == '"' and (yield from _follows(own, "]:")):
            if previous != "\\":
                return
            after = []
        elif char == '"' and previous != "\\":
            break
        previous = char
    if after is None:
        raise Miss
    own.unread(*after)


def _follows(own: Reading, also: str) -> Generator[None, str, bool]:
    """Whether a blank, the end, or one of these characters follows, which is not yet read."""
    char = yield
    own.unread(char)
    return not char or char.isspace() or char in also


def _is_next(own: Reading, expected: str) -> Generator[None, str, bool]:
    char = yield
    if char != expected:
        own.unread(char)
    return char == expected
