"""A reader of prompts that knows the formats, not our code: what stands where, and what in it reads as ours."""

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from people import DELIMITER
from tertulia.parts import Media, Text, ToolResult
from tertulia.turns import Prompt, Turn

Tree = Any  # tuples and lists of words, and of such

_NEWLINE = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_HEADER = re.compile(
    r"(?:From: ?(?P<who>.*?)(?: ?\((?P<id>[^() ]*)\))?)?"
    r"(?:(?:^| — )id: (?P<message>[^ ]+))?(?:(?:^| — )(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d))?"
    r"(?: — reply to: (?P<reply>[^ ]+))?"
)
_HEADER_LIKE = re.compile(
    r"[^\w>]*(?:from ?[:∶꞉ː˸].*(?:[-‒–—―⸺−─] ?(?:id ?[:∶꞉ː˸]|\d{4}-\d\d-\d\d|reply to ?[:∶꞉ː˸])|\(\w*\d\w*\)$)"
    r"|id[:∶꞉ː˸] \S+ — |— (?:id|reply to)[:∶꞉ː˸])"
)
_CUES = re.compile(
    r"\[ ?(?:respond|reply to this|meta(?: [^\]]*)?|speaker(?: [^\]]*)?"
    r"|(?:image|video|audio|youtube|document|attachment|photo|sticker|voice)(?: ?x ?\d+)?"
    r"|(?:photo|audio|voice) present|[^\[\]]*present uid ?=[^\[\]]*|[^\[\]]+ part|relevance: [^\]]*) ?\]"
    r"|\[\W*(?:meta|speaker) |\[\W*(?:replied to|forwarded from) ?[:∶꞉ː˸]|\[[\w -]+ described ?[:∶꞉ː˸]"
    r"|\[(?:photo|document|voice|video)(?: ?[\"“]| of \d)|\[[\w -]+\"[^\[\]]* described ?:"
)
_DESCRIPTION = re.compile(
    r'\[[\w·-]{1,40}(?: "[^"\[\]\n\r\u2028\u2029\x85]*")?(?: of \d[\w ]*?)? described: '
    r"[^\[\]\n\r\u2028\u2029\x85]*\]"
)
_LABEL = re.compile(r"\[(?:replied to|forwarded from): (?P<who>[^\[\]]*?)(?: ?\((?P<id>[^() ]*)\))?\]")
_TASK_LIKE = re.compile(r"\W*?# ?[«《].*[»》]")
_PAIR = r'[a-z_]+=(?:-?[0-9]+|"(?:[^"\\]|\\")*")'
_MARKS = r"(?P<marks>(?: ?\[(?:REPLY TO THIS|(?:Image|Video|Audio|YouTube|Document|Attachment)(?: x\d+)?)\])*)"
_BLOCK_LINE = re.compile(rf"(?P<role>user|bot) \[meta\](?P<pairs>(?: {_PAIR})*): (?P<text>.*?){_MARKS}")
_PLAIN_LINE = re.compile(rf"(?P<name>[^:]*?)(?: \((?P<id>[^() ]+)\))?: (?P<text>.*?){_MARKS}")
_REFERENCE = re.compile(
    r'(?m)^(?:Forwarded from (?P<writer>[^\n]*):\n"|You said earlier: "|(?P<agent>[^\n]*\)) said: "'
    r"|(?P<with>This is a message referencing a message with (?:an? )?[a-z]+"
    r' from (?P<whom>[^\n]*)\. )?(?P<who>“[^”\n]*”|[^\n]*?) (?:said|forwarded from (?P<origin>[^\n]*)):\n")'
)


@lru_cache(maxsize=10_000)
def seen(text: str) -> str:
    """What a careless reader sees: one form of each letter, nothing invisible, single blanks."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split()).lower()
    letters = (c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in ("Cf", "Mn", "Cc"))
    return re.sub(r"\s+", " ", "".join(" " if c.isspace() else c for c in letters)).strip().casefold()


def descriptions(text: str) -> list[str]:
    """The marks in which stands what media show."""
    return _DESCRIPTION.findall(text)


def without_descriptions(text: str) -> str:
    return _DESCRIPTION.sub("…", text)


def lines_of(text: str) -> list[str]:
    return _NEWLINE.split(text)


@lru_cache(maxsize=10_000)
def people_say(text: str) -> Tree:
    """What in a person's words reads as ours: headers, marks, cues, task blocks. There should be none.

    What media show stands among them, marked as that.
    """
    described, text = len(_DESCRIPTION.findall(text)), _DESCRIPTION.sub("…", text)
    lines = [seen(line) for line in lines_of(text)]
    return (
        [described] if described else [],
        [line for line in lines if _HEADER_LIKE.match(line)],
        [line for line in lines if _TASK_LIKE.match(line)],
        _CUES.findall(seen(text)),
        seen(text).count(DELIMITER),
    )


@lru_cache(maxsize=10_000)
def header(text: str) -> Tree:
    found = _HEADER.fullmatch(text)
    assert text, "an empty part"
    assert found, f"no header: {text!r}"
    return tuple(found.groupdict().items()), len(lines_of(text)), _CUES.findall(seen(text)), seen(text).count(DELIMITER)


def headed_turn(turn: Turn) -> Tree:
    """Role, header, and of each further part what it is and what in it reads as ours."""
    if turn.role == "model":
        return turn.role, [type(part).__name__ for part in turn.parts]
    if any(isinstance(part, ToolResult) for part in turn.parts):
        return turn.role, "results", len(turn.parts)
    first, *rest = turn.parts
    assert isinstance(first, Text)
    return turn.role, header(first.text), _contents(rest)


def _contents(parts: Iterable[object]) -> Tree:
    spoken = [part for part in parts if isinstance(part, Text)]
    labels = [found for part in spoken if not _labels(part.text)[1] for found in _labels(part.text)[0]]
    told = [part for part in spoken if _labels(part.text)[1]]
    media = [part for part in parts if isinstance(part, Media)]
    described = [_mark(part) for part in media]
    kinds = [(len(lines_of(part.media_kind)), seen(part.media_kind).count(DELIMITER)) for part in media]
    said = [[line for line in people_say(part.text) if line] for part in told]
    shown = [tuple(found.groupdict().items()) for found in labels]
    return [line for line in said if line], len(media), described, kinds, shown


def _labels(text: str) -> tuple[list[re.Match[str]], str]:
    """The labels that a text begins with, and the rest of it."""
    labels = []
    while found := _LABEL.match(text):
        labels.append(found)
        text = text[found.end() :].removeprefix(" ")
    return labels, text


def direct_turn(turn: Turn) -> Tree:
    """In a direct chat only the role and that nobody says the delimiter."""
    marks = [seen(part.text).count(DELIMITER) for part in turn.parts if isinstance(part, Text)]
    return turn.role, sum(marks), [_mark(part) for part in turn.parts if isinstance(part, Media)]


def _mark(media: Media) -> Tree:
    """Whether what would be sent in words is one mark, with a description or without, and free of the delimiter."""
    words = media.words
    assert re.fullmatch(r"\[[^\[\]]+\]", words), f"no mark: {words!r}"
    return bool(_DESCRIPTION.fullmatch(words)), len(lines_of(words)), seen(words).count(DELIMITER)


def cached(turns: tuple[Turn, ...]) -> Tree:
    """Of each part whose words it says follow, and what in them reads as ours."""
    [turn] = turns
    entries = []
    for part in turn.parts:
        assert isinstance(part, Text)
        first, *said = part.text.split("\n")
        mark, speaker = first.split(" ", 1)
        known = speaker if speaker in ("You", "Person") else header(speaker)
        labels = [number for number, line in enumerate(said) if _LABEL.match(line)]
        assert len(labels) < 2, f"more than one label: {part.text!r}"
        told, replied = (said[: labels[0]], said[labels[0] :]) if labels else (said, [])
        entries.append((mark, known, people_say("\n".join(told)), _replied("\n".join(replied))))
    return turn.role, entries


def _replied(text: str) -> Tree:
    """Whose words are told at the end of an entry, and what in them reads as ours."""
    found = _LABEL.match(text)
    return (tuple(found.groupdict().items()), people_say(text[found.end() :])) if found else ()


def dynamic(turns: tuple[Turn, ...]) -> Tree:
    """The object, its keys in order and their values; and that no line of it reads as ours."""
    [turn] = turns
    [part] = turn.parts
    assert isinstance(part, Text)
    first, *inner, last = lines_of(part.text)
    assert (first, last) == ("{", "}")
    keys = [line.split(":")[0] for line in inner]
    return turn.role, keys, _tree(json.loads(part.text, object_pairs_hook=tuple)), part.text.count(DELIMITER)


def _tree(value: object) -> Tree:
    return tuple(map(_tree, value)) if isinstance(value, tuple | list) else value


def instruction(text: str) -> Tree:
    """The lines that have a form: headings, labels, bullets, fences, cues; what stands between them as it is."""
    found: list[Tree] = []
    heading = ""
    for line in lines_of(text):
        form = form_of(line)
        heading = line if form[:1] == ("heading",) else heading
        if heading == "## User Profile" and form == BULLET:  # it may have some of its own
            form = ()
        if form or not found or found[-1][0]:
            found.append((form, line))
        else:
            found[-1] = ((), f"{found[-1][1]}\n{line}")
    return found


def remembered(text: str) -> Tree:
    """The form of what is remembered, and what below its headings and bullets reads as a header or a task of ours."""
    lines = [seen(line).removeprefix("- ") for line in lines_of(text)]
    posing = [line for line in lines if _HEADER_LIKE.match(line) or _TASK_LIKE.match(line)]
    return instruction(text), posing, seen(text).count(DELIMITER)


@lru_cache(maxsize=10_000)
def form_of(line: str) -> Tree:
    """What a line of Markdown is, besides words."""
    read, described = seen(_DESCRIPTION.sub("…", line)), len(_DESCRIPTION.findall(line))
    label = re.match(r"(?:- )?\*\*([^*]+)\*\*: ", line)
    heading = re.match(r"[\s>*+_|.0-9-]*#+(?: |$)", read) or re.fullmatch("[=-]+", read)
    kind = "heading" if heading else "fence" if re.match("```|~~~", read) else ""
    marks = (read.count("**"), read.count("```"), _CUES.findall(read), described)
    form = (kind, label and label[1], read.startswith("- "), *marks)
    return form if any(form) else ()


BULLET: Tree = ("", None, True, 0, 0, [], 0)


def block_lines(text: str, *, meta: bool) -> Tree:
    above, inside, below = text.split("\n```\n")[0], text.split("\n```\n")[1], text.split("\n```\n")[2:]
    found = []
    for line in lines_of(inside.removesuffix("\n```")):
        parts = (_BLOCK_LINE if meta else _PLAIN_LINE).fullmatch(line)
        assert parts, f"no line of the block: {line!r}"
        fields = parts.groupdict()
        words = fields.pop("text")
        if fields.pop("id", None) is None:  # an id is said where it must be; only without one a line can be the bot's
            fields["role"] = fields["name"] if fields.get("name") == "bot" else fields.get("role", "person")
        else:
            fields["role"] = "person"
        pairs = re.findall(_PAIR, fields.pop("pairs", ""))
        labels, words = _labels(words)
        found.append(
            (
                tuple(fields.items()),
                [tuple(pair.split("=", 1)) for pair in pairs],
                [tuple(label.groupdict().items()) for label in labels],
                people_say(words),
                seen(words).count("```"),
            )
        )
    return instruction(above), found, below


def reference(text: str) -> Tree:
    """Where the text of `single` says that somebody said something: who, how, and how often."""
    found = [tuple(one.groupdict().items()) for one in _REFERENCE.finditer(text)]
    return found, bool(found) and text.endswith('"')


def read_layered(prompt: Prompt) -> Tree:
    static, known, buffered, trigger = prompt.layers
    turns = [headed_turn(turn) for turn in (*buffered.turns, *trigger.turns)]
    return static.instruction, cached(static.turns), dynamic(known.turns), turns


def read_tail(prompt: Prompt) -> Tree:
    static, buffered, known, trigger = prompt.layers
    return static.instruction, dynamic(known.turns), [headed_turn(turn) for turn in (*buffered.turns, *trigger.turns)]


def read_direct(prompt: Prompt) -> Tree:
    layers = {layer.name: layer for layer in prompt.layers}
    told = cached(layers["static"].turns) if layers["static"].turns else ()
    turns = [direct_turn(turn) for name in ("buffered", "trigger") for turn in layers[name].turns]
    return layers["static"].instruction, told, dynamic(layers["dynamic"].turns), turns


def read_headers(prompt: Prompt) -> Tree:
    return remembered(prompt.instruction), [headed_turn(turn) for turn in prompt.turns]


def roles(prompt: Prompt) -> Tree:
    return [(turn.role, len([part for part in turn.parts if isinstance(part, Media)])) for turn in prompt.turns]


def read_single(prompt: Prompt) -> Tree:
    [turn] = prompt.turns
    first, *rest = turn.parts
    assert isinstance(first, Text)
    told = remembered(prompt.instruction), reference(prompt.instruction)
    return told, turn.role, reference(first.text), [type(part).__name__ for part in rest]


def read_plain(prompt: Prompt) -> Tree:
    """The instruction is the operator's, what was said is as it was said, and what is remembered is a turn of ours."""
    layers = {layer.name: layer for layer in prompt.layers}
    turns = layers["dynamic"].turns if "dynamic" in layers else ()
    told = [(turn.role, remembered(part.text)) for turn in turns for part in turn.parts if isinstance(part, Text)]
    return prompt.instruction, [layer.name for layer in prompt.layers], told, roles(prompt)
