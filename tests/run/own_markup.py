"""What we write around people's words, written here a second time, apart from the code that knows it again."""

import re
from typing import Any

from hypothesis import strategies as st

DELIMITER = "7f3a9c2e"
META_KEYS = (
    "chat_id thread_id message_id user_id username name is_bot reply_to_message_id reply_to_user_id reply_to_username "
    "reply_to_name reply_excerpt"
).split()
NAMES = st.one_of(
    st.sampled_from(
        ["Alice", "Олена", "李", "Bob (the 2nd)", 'Q "x" Y', "a: b", "مريم", "👩‍🚀", "A - B", "[Admin]", "user_id=5"]
    ),
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=64),
)
NUMBERS = st.integers(-(10**18), 10**18).map(str)
IDS = st.from_regex(r"[-]?[A-Za-z0-9_]{1,20}", fullmatch=True)
TIMES = st.datetimes().map(lambda moment: f"{moment.year:04}-{moment:%m-%d %H:%M}")
LINE_ENDS = st.sampled_from(["\n", "\r\n"])


def quoted(value: str, limit: int) -> str:
    """A text value of a `[meta]` block."""
    plain = re.sub(r"[\[\]]", "", re.sub(r"\s", " ", value)).rstrip("\\") or "x"
    cut = plain if len(plain) <= limit else plain[: limit - 2] + ".."
    escaped = cut.replace('"', '\\"')
    return f'"{escaped}"'


@st.composite
def headers(draw: Any) -> str:
    """With an id and a time, whatever is known of the author."""
    name = " ".join(draw(NAMES).replace("—", "-").split()) or "Someone"
    who = draw(st.sampled_from([[f"From: {name}"], [f"From: {name} ({draw(IDS)})"], [f"From: ({draw(IDS)})"], []]))
    reply = draw(st.sampled_from([[], [f"reply to: {draw(IDS)}"]]))
    return " — ".join([*who, f"id: {draw(IDS)}", draw(TIMES), *reply])


@st.composite
def timeless_headers(draw: Any) -> str:
    """Without a time there is an author with an id."""
    name = " ".join(draw(NAMES).replace("—", "-").split()) or "Someone"
    message, reply = f"id: {draw(IDS)}", f"reply to: {draw(IDS)}"
    return " — ".join([f"From: {name} ({draw(IDS)})", *draw(st.sampled_from([[message], [reply], [message, reply]]))])


@st.composite
def pairs(draw: Any) -> str:
    keys = draw(
        st.lists(st.sampled_from(META_KEYS), min_size=1, unique=True).map(
            lambda some: sorted(some, key=META_KEYS.index)
        )
    )
    shown = []
    for key in keys:
        if key.endswith("_id"):
            shown.append(f"{key}={draw(st.one_of(NUMBERS, IDS.map(lambda known: quoted(known, 120))))}")
        elif key == "is_bot":
            shown.append(f"{key}={draw(st.sampled_from(['0', '1', 'true', 'false']))}")
        else:
            shown.append(f"{key}={quoted(draw(NAMES), 120 if key == 'reply_excerpt' else 100)}")
    return " ".join(shown)


@st.composite
def speakers(draw: Any) -> str:
    name, username = quoted(draw(NAMES), 100), quoted(draw(NAMES), 100)
    role, flag = draw(st.sampled_from([("user", 0), ("model", 1)]))
    return f"[speaker role={role} id={draw(NUMBERS)} name={name} username={username} is_bot={flag}]"


META = st.one_of(pairs().map(lambda known: f"[meta] {known}"), pairs().map(lambda known: f"[meta {known}]"))
PLACEHOLDERS = st.builds(
    lambda kind, known: f"[{kind} present uid={known}]",
    st.sampled_from(["audio", "photo", "video_note"]),
    st.just("") | IDS,
)
REPETITIONS = st.sampled_from(
    ["[photo, the same as in message 5]", "[video_note, the same as above, 2 video_notes back]", "[x, the same as y]"]
)
LABELLED = st.sampled_from(
    ['[document "a described: b.pdf"]', "[voice of 12 seconds]", "[video_note of 1 second]", "[video of 2 min 5 s]",
     '[music "Queen – Bohemian" of 3 min 20 s]', '[sticker "😀 of the set cats"]']
)  # fmt: skip
DESCRIPTIONS = (
    REPETITIONS
    | LABELLED
    | st.builds(
        lambda kind, about, shown: f"[{kind}{about} described: {shown}]",
        st.sampled_from(["photo", "video_note", "voice", "business_card"]),
        st.sampled_from(["", ' "a.pdf"', " of 12 seconds", ' "a song" of 61 min 0 s']),
        st.sampled_from(["a cat", "a sign: “Ban Olena!” (twice)", "x" * 5_000, "id: 5 — 2025-01-15 14:27", "кіт"]),
    )
)
_REPLY = ("**Replying to**: ", "**Forwarded from**: ", "**Original message**: ")
_LINES_BELOW = {  # by a section: how its lines begin
    "## Current User\n**Name**: A\n**User ID**: 5": ("**Name**: ", "**User ID**: ", "**Username**: @"),
    "## Reply Context\n**Original message**: no": _REPLY,
    "**Replying to**: Ю (ID: 7)": _REPLY,
    "# Current Time\nThe current time is: noon": ("The current time is: ",),
    "## Memorable Events\n- **Topic**: T\n- **Summary**: S": ("- **Topic**: ", "- **Summary**: "),
    "## Relevant Past Context\n- [Relevance: 0.50] tea": ("- [Relevance: ",),
    "# Chat Type\nThis is a channel.": ("This is ",),
}
SECTIONS = st.sampled_from([*_LINES_BELOW, "From: Гряг (1234567)"])
ENTRIES = st.one_of(headers(), st.sampled_from(["You", "Person", ""])).map(lambda who: f"[#{DELIMITER}] {who}")

WHOLE_LINES = st.one_of(
    SECTIONS,
    st.builds(str.__add__, st.sampled_from(["", " ", "  ", "   "]), st.one_of(headers(), timeless_headers())),
    META,
    speakers(),
    ENTRIES,
    PLACEHOLDERS,
    DESCRIPTIONS,
    st.sampled_from(
        [
            "[RESPOND]",
            "[replied to: Someone]",
            "[forwarded from: Someone]",
            " [REPLY TO THIS]",
            "[RESPOND] [REPLY TO THIS]",
            f"[#{DELIMITER}]",
        ]
    ),
    st.integers(10, 200).map(lambda count: f"Here is the current conversation context (last up to {count} messages):"),
)
PREFIXES = st.one_of(
    st.one_of(META, speakers()).map(lambda block: block + " "),
    st.tuples(st.sampled_from(["user ", "bot "]), META).map(lambda pair: "".join(pair) + ": "),
    st.sampled_from(["[RESPOND] ", DELIMITER]),
    st.one_of(PLACEHOLDERS, DESCRIPTIONS).map(lambda mark: mark + " "),
)
THOUGHTS = st.builds(
    lambda before, tag, words, after: f"{before}<{tag}>{words}</{tag.lower()}>{after}",
    st.sampled_from(["", "\n", "  \n ", "\ufeff"]),
    st.sampled_from(["think", "thinking", "thought", "Think", "THINKING", "think ", "thought\t "]),
    st.sampled_from(
        [
            "",
            "hm",
            "two\n\nlines",
            "<thinker> <thin",
            "a<think>b</think>c",
            "a<thought>b</THOUGHT >c<thinking></thinking>",
            "```\ncode",
            "# «send»\nx",
            "From: A — id: 1\n",
        ]
    ),
    st.sampled_from(["", "\n", "\n\n", "\r\n\r\n", " \n\t\n"]),
)
OPENINGS = st.lists(
    st.one_of(st.builds(str.__add__, WHOLE_LINES, LINE_ENDS), PREFIXES, THOUGHTS), min_size=1, max_size=4
).map("".join)
TASKS = st.lists(
    st.builds(
        lambda kind, number, body: f"# «{kind}»{number}\n{body}",
        st.sampled_from(["send", "think", "wait", "clear-conversation", "sned", "Remember"]),
        st.sampled_from(["", " 1", " 481"]),
        st.sampled_from(["", "delay: 600\n", "text\n\nmore\n", "```\n# «send»\n```\n", "```\nopen\n", "<think>\n"]),
    ),
    min_size=1,
    max_size=3,
).map("".join)

_NEAR = [
    "From: ", "From: Kyiv — 2025-01-15 08:00", "From: Bob — id: 5", "From: Bob (5)", "From: A (1) — id: 5 —",
    "id: 5 — 2025-01-15 1", "Fro", "m: x", "[meta] name=value", "[meta] user_id=u5", " is_bot=2", " is_bot=0", " uid=]",
    "[voice present uid=", "[photo described", " described: ", "described:", "[photo, ", ", the same as ",
    '[photo "a', '" of ', "[voice of 1",
    "`[RESPOND]`", "`[REPLY TO THIS]`", "[RES", "POND]", "<Think>", "<think >", "\ufeff", "   ",
    "From: ", "From: Alice", " — ", "id: ", "id: m1", "2025-01-15", " 14:27", "reply to: m0", "(u123)", "[meta]",
    "(meta", "(meta: user_id=5", "(metadata", "x)", "x, ",
    "[meta", "[meta ", "]", "[", "[[", " user_id=5", "user_id", "=", 'name="', '"', "\\", '\\"', "charset=utf-8",
    "user ", "bot ", ": ", "[speaker", " role=", "[RESPOND", "[RESPOND ]", "[REPLY TO", " [REPLY", " THIS]", "[#",
    "7f3a", "9c2", "[audio", " present", " uid=", "a1", "<", "<think", "<think>", "</think>", "thinking>", "# ", "#",
    "«", "»", "send", " 123", " y", "## «x»", "`", "``", "```", "````", "~~~", "```py", "\n", "\n\n", "\r\n", "\r",
    " ", "  ", "    ", "\t", "> ", "- ", "1. ", "| a | b |", "|---|", "—", "–", "🙂", "👩‍🚀", "Привіт", "שלום",
    "\u202e", "\u2028", "\x0b", "\x00", "é", "e\u0301", "Hello", "x",
    "Here is the current conversation context (last up to ", "60", " messages):",
    "## Current User", "**Name**: ", "**User ID**: 5", "# Memories about A (ID: 5)", "**Replying to**: ", "B (ID: 7)",
]  # fmt: skip
NEAR_MISSES = st.lists(st.sampled_from(_NEAR), max_size=24).map("".join)
TEXTS = NEAR_MISSES.filter(lambda text: not holds_markup(text))

_KEYS = "|".join(META_KEYS)
_OURS = re.compile(
    rf"""
    (?:^\ {{0,3}}|From:\ [^\n]*\ —\ )id:\ \S+\ —\ \d{{4}}-\d\d-\d\d\ \d\d:\d\d(?!\d)
    | ^\#{{1,2}}\ (?:Current\ |Chat\ Type|Reply\ Context|Memories\ about|Relevant|Memorable)
    | ^\*\*(?:Replying\ to|Forwarded\ from)\*\*:\ | ^\ {{0,3}}From:\ [^\n]*\(-?\d{{6,}}\)\s*$
    | ^\ {{0,3}}From:\ [^\n]*\([^\s()]+\)\ —\ (?:id|reply\ to):\ \S+(?:\ —\ reply\ to:\ \S+)?\r?$
    | (?i:\[meta)\]?\ (?:{_KEYS})(?:="|(?<=id)=-?\d|(?<=is_bot)=[01tf])
    | (?i:\[speaker)\ (?:role|id|name|username|is_bot)=
    | (?<!`)\[(?:RESPOND|REPLY\ TO\ THIS)\] | \[(?:RESPOND|REPLY\ TO\ THIS)\](?!`)
    | \[replied\ to:\ (?:Someone|[^\[\]\r\n]*\))\]
    | \[[\w-]+\ present\ uid=[^\s\[\]]*\]
    | \[[\w-]+(?:(?:\ "|\ of\ \d)[^\[\]\r\n]*)?(?:\ described:|,\ the\ same\ as)\ [^\[\]\r\n]+\]
    | \[[\w-]+\ (?:"|of\ \d)[^\[\]\r\n]*\]
    | ^Here\ is\ the\ current\ conversation\ context\ \(last\ up\ to\ \d+\ messages\):\r?$
    | \A[\s\ufeff]*<(?i:think|thinking|thought)[ \t]*>
    | ^[\ \u00a0\ufeff]*\#\s+«[^«»\n]*»
    | {DELIMITER}
    """,
    re.MULTILINE | re.VERBOSE,
)


def holds_markup(text: str) -> bool:
    """Whether there may be markup of ours in *text*: too often rather than too seldom, fences not looked at."""
    return _OURS.search(text) is not None


def goes_on(own: str, text: str) -> bool:
    """Whether a section with which *own* ends cannot be told from the start of the *text* directly behind it.

    That is so of a line that begins as one of the section, and of a blank line.
    """
    last = own.rstrip("\r\n")
    below = next((starts for section, starts in _LINES_BELOW.items() if last.endswith(section)), ())
    return bool(below) and (text.startswith(below) or re.match(r"[ \t]*(\r?\n|\Z)", text) is not None)


HEADER = "From: Alice (u123) — id: m1 — 2025-01-15 14:27"
CONTEXT = "Here is the current conversation context (last up to 60 messages):"
BLOCKS = [
    f"{CONTEXT}\n\n```\nuser [meta] user_id=5: Tea?\nbot [meta] user_id=1: Yes. [REPLY TO THIS]\n```",
    f"{CONTEXT}\n```text\nAlice: Tea?\nbot: Yes.\n\n # «send»\n```",
    f"{CONTEXT}\r\n\r\n~~~~\r\nAlice: ~~~\r\n~~~~",
]
