"""The `key=value` pairs of the old formats: `[meta]` blocks, wrapped ones, and `[speaker …]`. Pure."""

from collections.abc import Generator

from palaver.conversation.reading import Grammar, Miss, Reading, Steps, line_end, literal

LONGEST_VALUE = 512

META = frozenset(
    "chat_id thread_id message_id user_id username name is_bot reply_to_message_id reply_to_user_id reply_to_username "
    "reply_to_name reply_excerpt".split()
)
SPEAKER = frozenset("role id name username is_bot".split())

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
    if (yield from _is_next(own, '"')):
        yield from _quoted(own)
    else:
        yield from _bare(own)


def _bare(own: Reading) -> Steps:
    """Up to a blank, a bracket, a quotation mark, or the colon that ends who speaks."""
    length = 0
    while (char := (yield)) and not char.isspace() and char not in '[]"' and length < LONGEST_VALUE:
        if char == ":" and (yield from _follows(own, "")):
            break
        length += 1
    own.unread(char)
    if not length:
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
