"""Splits a message into the sentences that its author states: no quotes, code, songs or lines of others. Pure."""

import re

from msgspec import Struct

from tertulia.messages import Message

MAX_MESSAGE_LENGTH = 4000  # characters; the rest is not read
_WORD = re.compile(r"[^\W_]+(?:['&-][^\W_]+)*")
_GONE = " \ufffc "  # takes the place of removed text

_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*[”\"]|„[^„“”\"\n]*[“”\"]|«[^«»\n]*»|「[^「」\n]*」|(?<!\w)'[^'\n]{3,300}'(?!\w)|"
    r"(?<!\w)‘[^‘’\n]{3,300}’"
)
_UNCLOSED = re.compile(r"[\"“„«][^\n]*")
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+|[^\s@]{1,64}@\S{1,64}\.\w+")
_ACTED = re.compile(r"(?<!\*)\*[^*\s][^*\n]*\*(?!\*)")
_SPACES = re.compile(r"[^\S\n]+")
_TALK = re.compile(r"(?:^|[.!?…:])[^\S\n]*[-–—] ", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|~~")
_LINE_OF_ANOTHER = re.compile(
    r"\s*(?:>|\||#|[–—]\s|\$ |\[[^\]\n]{1,40}\]|(?:[-*•]\s+)?@?[^\W\d_][\w .'-]{0,30}(?:\s*\([^)\n]*\))?:\s+\S)"
)
_OWN_LABEL = re.compile(
    r"\s*(?:pronouns|my pronouns|ps|p\.s|fun fact|upd|update|edit|fyi|note|remember|займенники|мої займенники|моє ім'я|"
    r"запам'ятай|p\.p\.s)\s*:",
    re.I,
)
_SUNG = re.compile("[♪♫♬🎵🎶🎤]|\\(c\\)|©|\\b(?:chorus|приспів)\\b", re.IGNORECASE)
_PROGRAM = re.compile(
    r"^(?>.*?\b(?:SELECT|INSERT|UPDATE|DELETE)\b).*\b(?:FROM|INTO|SET)\b|[{};]\s*$|\w\(\)|[=!]=|=>|->|^\s*(?:--|//)"
)
_PICTURE = "\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d"
_PICTURES = re.compile(rf"[{_PICTURE}][{_PICTURE}\s]*")
_APOSTROPHES = str.maketrans("’ʼ`´‘", "'''''")
_ENDS = re.compile(r"(?<=[.!?…])[)\"]*\s+(?!(?:said|says|сказа|каже)\w*\b)|\n+|;\s")
_LAUGHTER = re.compile(
    r"[😂🤣💀😆😹☠🙄🙃😏]|\b(?:lol|lmao|lmfao|rofl|haha\w*|hehe\w*|jk|xd+|ахах\w*|хаха\w*|хех\w*|лол|кек|obviously|"
    r"apparently|supposedly|oh sure|очевидно|звісно|типу)\b|\bха-ха",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\W*(?:(?:lol|haha\w*|nah|no|ok|wait|i'm|im|i am|i was|it's|that's|that was|it was|was|just|only|totally|"
    r"obviously|ні|"
    r"та|я|це|просто|то|був|була|насправді)\W+)*"
    r"(?:kidding|joking|jk|j/k|a joke|joke|not really|psych|(?:messing|playing) with you|pulling your leg|trolling|"
    r"joked|"
    r"жартую|жарт|пожартува\w+|прикол|шучу|шутка|прикалуюс\w)\b",
    re.IGNORECASE,
)


class Sentence(Struct, frozen=True, kw_only=True):
    text: str
    laughing: bool = False
    asks: bool = False


def spoken_text(message: Message) -> str:
    """Return the text of a message; empty for deleted and forwarded messages, and those of an agent."""
    if message.deleted or message.author.persona is not None or message.forwarded_from is not None:
        return ""
    return message.text[:MAX_MESSAGE_LENGTH]


def own_words(text: str) -> str:
    """Remove code, quotes, addresses, songs and lines that somebody else wrote."""
    is_dialogue = len(_TALK.findall(text)) > 1
    if text.lstrip().startswith(("/", "!")) or is_dialogue:
        return ""
    text = _EMPHASIS.sub("", _ACTED.sub(_GONE, _CODE.sub(_GONE, _FENCE.sub(_GONE, text))))
    text = _UNCLOSED.sub(_GONE, _QUOTED.sub(_GONE, _ADDRESS.sub(_GONE, _SPACES.sub(" ", text))))
    lines = [line for line in text.splitlines() if line.strip() and not _is_anothers(line)]
    return re.sub(r"(?<!\s)\s*+[–—][\s–—]*+", " — ", "\n".join(lines).translate(_APOSTROPHES))


def _is_anothers(line: str) -> bool:
    if _SUNG.search(line) or _PROGRAM.search(line):
        return True
    named = _LINE_OF_ANOTHER.match(line)
    if named is None or _OWN_LABEL.match(line):
        return False
    label = named[0].partition(":")[0].strip("-*• ")
    return ":" not in named[0] or line.lstrip()[:1] in ">|#[@" or label[:1].isupper() or " " not in label


def own_sentences(text: str) -> list[Sentence]:
    """Split `own_words` into sentences. "Just kidding" removes the sentences before it; emoji are removed."""
    found: list[Sentence] = []
    for piece in _ENDS.split(own_words(text)):
        plain = _PICTURES.sub(" , ", piece).strip()
        if _TAKEN_BACK.match(plain):
            found.clear()
        elif plain:
            asks = "?" in plain[-6:]
            found.append(Sentence(text=plain, laughing=bool(_LAUGHTER.search(piece)), asks=asks))
    return found


def words_in(text: str) -> list[str]:
    """Return the words of *text* in lower case."""
    return _WORD.findall(text.casefold())
