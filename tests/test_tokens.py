from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizes import in_time
from tertulia.messages import Author, Message, Place
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.tokens import (
    ESTIMATOR,
    Counter,
    Estimator,
    grown_tokens,
    layer_tokens,
    message_tokens,
    part_tokens,
    prompt_tokens,
    tool_tokens,
    turn_tokens,
)
from tertulia.turns import Layer, Prompt, ToolSpec, Turn, user

GEMMA_BOUND = 0.20  # of a single short text; the means are in docs/benchmarks.md
O200K_BOUND = 0.70  # it writes three digits as one token, Gemma one

# what is said, as counted by the tokenizers of Gemma 3 and of GPT-4o (o200k)
COUNTED = {
    "English": (
        "The train leaves at a quarter to nine, so please be at the station by half past "
        "eight and bring the book you mentioned.",
        26,
        26,
    ),
    "slang": (
        "lol idk why it broke again, gonna reboot & try w/ the older kernel... brb 5 min",
        22,
        23,
    ),
    "German": (
        "Könntest du mir bitte morgen früh die Unterlagen für die Besprechung schicken? "
        "Ich brauche sie spätestens um neun.",
        30,
        26,
    ),
    "French": (
        "Je ne sais pas encore si nous pourrons venir dimanche, mais je t'appelle dès que j'en saurai davantage.",
        26,
        24,
    ),
    "Polish": (
        "Wczoraj wieczorem długo rozmawialiśmy o wyjeździe w góry i wszyscy zgodzili "
        "się, że lepiej poczekać do wiosny.",
        34,
        39,
    ),
    "Ukrainian": (
        "Учора ввечері ми довго говорили про поїздку до Львова, і всі погодилися, що краще зачекати до весни.",
        34,
        35,
    ),
    "Russian": (
        "Вчера вечером мы долго говорили о поездке в горы, и все согласились, что лучше подождать до весны.",
        26,
        28,
    ),
    "Greek": (
        "Χθες το βράδυ μιλήσαμε πολύ για το ταξίδι και όλοι συμφώνησαν ότι είναι καλύτερα να περιμένουμε.",
        35,
        32,
    ),
    "Chinese": (
        "昨天晚上我们聊了很久关于去山里旅行的事，大家都同意最好等到春天再出发，因为现在路上还有很多雪。",
        28,
        35,
    ),
    "Japanese": (
        "昨日の夜、山への旅行について長い間話しました。みんな春まで待ったほうがいいということで意見が一致しました。",
        26,
        32,
    ),
    "Korean": (
        "어젯밤에 우리는 산으로 가는 여행에 대해 오래 이야기했고, 모두 봄까지 기다리는 것이 좋겠다고 했습니다.",
        26,
        30,
    ),
    "Hebrew": (
        "אתמול בערב דיברנו הרבה על הטיול להרים וכולם הסכימו שעדיף לחכות עד האביב.",
        32,
        30,
    ),
    "Arabic": (
        "تحدثنا مساء أمس طويلا عن الرحلة إلى الجبال واتفق الجميع على أنه من الأفضل الانتظار حتى الربيع.",
        29,
        28,
    ),
    "Hindi": (
        "कल रात हमने पहाड़ों की यात्रा के बारे में बहुत देर तक बात की और सब सहमत थे कि वसंत तक इंतज़ार करना बेहतर है।",
        28,
        33,
    ),
    "Thai": (
        "เมื่อคืนเราคุยกันนานเรื่องไปเที่ยวภูเขา และทุกคนเห็นด้วยว่ารอจนถึงฤดูใบไม้ผลิจะดีกว่า",
        29,
        34,
    ),
    "Python": (
        "def mean(values: list[float]) -> float:\n"
        "    if not values:\n"
        '        raise ValueError("no values")\n'
        "    return sum(values) / len(values)\n",
        39,
        33,
    ),
    "JavaScript": (
        "const byId = new Map(items.map((item) => [item.id, item]));\n"
        "if (!byId.has(wanted)) {\n"
        "  throw new Error(`no item ${wanted}`);\n"
        "}\n",
        45,
        38,
    ),
    "JSON": (
        '{"name": "search_messages", "args": {"query": "tickets", "limit": 20, "from": "2026-11-15T12:30:00Z"}}',
        49,
        40,
    ),
    "numbers": (
        "Invoice 2026-0815: 3 x 129.90 = 389.70, VAT 19 % = 74.04, total 463.74 by 30.11.2026, tel. 0301234567",
        78,
        52,
    ),
    "emoji": (
        "Great news 🎉🎉 see you tomorrow 😀👍 ❤️ don't forget the cake 🎂 and the kids 👨\u200d👩\u200d👧\u200d👦",
        29,
        32,
    ),
}


class Letters:
    """A counter that is easy to check: a token a character."""

    def text(self, text: str) -> int:
        return len(text)


LETTERS: Counter = Letters()
any_text = st.text(st.characters(exclude_categories=()), max_size=60)


def a_message(*parts: Part) -> Message:
    place = Place(platform="telegram", id="1", kind="direct")
    author = Author(id="7", name="Olena")
    return Message(id="42", place=place, author=author, sent_at=datetime(2026, 11, 15, tzinfo=UTC), parts=parts)


def media(**fields: Any) -> Media:
    return Media(**{"media_kind": "photo", "unique_id": "u1", **fields})


@pytest.mark.parametrize(("text", "gemma", "o200k"), COUNTED.values(), ids=COUNTED)
def test_estimate_is_near_what_real_tokenizers_count(text: str, gemma: int, o200k: int) -> None:
    assert ESTIMATOR.text(text) == pytest.approx(gemma, rel=GEMMA_BOUND)
    assert ESTIMATOR.text(text) == pytest.approx(o200k, rel=O200K_BOUND)


def test_errors_of_single_texts_even_out() -> None:
    real = sum(gemma for _, gemma, _ in COUNTED.values())

    assert sum(ESTIMATOR.text(text) for text, _, _ in COUNTED.values()) == pytest.approx(real, rel=0.05)


@given(any_text, any_text)
def test_more_text_never_counts_less(text: str, more: str) -> None:
    alone = ESTIMATOR.text(text)

    assert ESTIMATOR.text(text + more) >= alone
    assert ESTIMATOR.text(more + text) >= alone


@given(any_text, any_text)
def test_two_texts_are_about_their_sum(one: str, other: str) -> None:
    together = ESTIMATOR.text(one + other)

    assert together <= ESTIMATOR.text(one) + ESTIMATOR.text(other) + 3


@given(any_text)
def test_only_the_empty_text_has_no_tokens(text: str) -> None:
    assert (ESTIMATOR.text(text) == 0) == (text == "")


@pytest.mark.parametrize("text", ["a", "z", " ", "\n", "\0", "ok", "і", "好", "\ud83d", "\U0010ffff", "\u0301"])
def test_a_character_or_two_are_a_token_or_two(text: str) -> None:
    assert ESTIMATOR.text(text) in (1, 2)


@in_time
@pytest.mark.parametrize(
    "unit", ["a", "A", "0", " ", "\n", "\0", ".", "z", "і", "好", "😀", "\ud800", "́", ". ", "aA0. і好"]
)
def test_hostile_text_is_counted_in_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))

    assert 50_000 <= ESTIMATOR.text(text) <= 1_500_000


IMAGE, PAGE, SECOND, FRAME = 1120, 560, 32, 295

PARTS: list[tuple[Part, int]] = [
    (Text(text="hello"), 5),
    (Text(text="hello", signature="s" * 80), 15),
    (Text(text=""), 0),
    (Thought(text="hm", signature="s" * 9), 4),
    (ToolCall(name="find", args={"q": 1}), 6 + 4 + 7),
    (ToolCall(name="find", broken="{"), 6 + 4 + 1),
    (ToolCall(name="find", args={}, signature="s" * 8), 6 + 4 + 2 + 1),
    (ToolResult(name="find", value=None), 6 + 4 + 4),
    (ToolResult(name="find", value="x", media=(media(data=b"\xff\xd8"),)), 6 + 4 + 3 + IMAGE),
    (Opaque(raw={"a": 1}), 7),
    (media(), len("[photo]")),
    (media(rendered_text="a cat"), 24),
    (media(data=b"", rendered_text="a cat"), 24),
    (media(data=b"x" * 5_000_000, mime="image/png"), IMAGE),
    (media(uri="https://files/1", mime="IMAGE/JPEG"), IMAGE),
    (media(media_kind="voice", data=b"x" * 40_000), 10 * SECOND),
    (media(media_kind="audio", data=b"x" * 32_001, mime="audio/mpeg"), 3 * SECOND),
    (media(media_kind="audio", uri="https://files/1"), 60 * SECOND),
    (media(media_kind="video", data=b"x"), FRAME),
    (media(media_kind="youtube", uri="https://youtu.be/1"), 60 * FRAME),
    (media(media_kind="document", data=b"x" * 10, mime="application/pdf"), PAGE),
    (media(media_kind="document", data=b"x" * 300_000, mime="application/pdf"), 3 * PAGE),
    (media(media_kind="document", data="ночь\n".encode(), mime="text/plain"), 5),
    (media(media_kind="document", data=b"\xff{}", mime="application/json"), 3),
    (media(media_kind="document", uri="https://files/1", mime="text/csv"), 1000),
    (media(media_kind="document", data=b"x", mime="application/zip"), len("[document]")),
    (media(media_kind="dice", data=b"x"), len("[dice]")),
]


@pytest.mark.parametrize(("part", "tokens"), PARTS)
def test_parts_count_as_services_count_them(part: Part, tokens: int) -> None:
    assert part_tokens(part, LETTERS) == tokens


def test_a_turn_and_a_message_are_their_parts_and_a_little() -> None:
    parts = (Text(text="hello"), Text(text="you"))

    assert turn_tokens(Turn(role="user", parts=parts), LETTERS) == 4 + 5 + 3
    assert message_tokens(a_message(*parts), LETTERS) == 4 + 5 + 3


def test_a_prompt_is_its_layers_and_tools() -> None:
    tool = ToolSpec(name="find", description="finds", parameters={"type": "object"})
    static = Layer(name="static", instruction="Be kind.")
    buffered = Layer(name="buffered", turns=(user("hello"), user("you")))

    assert tool_tokens(tool, LETTERS) == 6 + 4 + 5 + len('{"type":"object"}')
    assert layer_tokens(static, LETTERS) == 8
    assert layer_tokens(buffered, LETTERS) == 4 + 5 + 4 + 3
    assert prompt_tokens(Prompt(layers=(static, buffered), tools=(tool,)), LETTERS) == 8 + 16 + 32


def test_only_the_count_of_the_default_counter_is_cached() -> None:
    turn, message, tool = user("hello there"), a_message(Text(text="hello there")), ToolSpec(name="find")

    others = turn_tokens(turn, LETTERS), message_tokens(message, LETTERS), tool_tokens(tool, Estimator())
    before = [dict(owner.__dict__) for owner in (turn, message, tool)]
    ours = turn_tokens(turn), message_tokens(message), tool_tokens(tool)

    assert others == (15, 15, ours[2])
    assert before == [{}, {}, {}]
    assert tuple(owner.__dict__["tokens"] for owner in (turn, message, tool)) == ours
    assert (turn_tokens(turn), message_tokens(message), tool_tokens(tool)) == ours
    assert turn == user("hello there")


def _deep(levels: int) -> list[Any]:
    value: list[Any] = ["end"]
    for _ in range(levels):
        value = [value]
    return value


def _round() -> dict[str, Any]:
    value: dict[str, Any] = {"word": "x"}
    value["again"] = value
    return value


UNSAYABLE = {
    "deep": _deep(100_000),
    "round": _round(),
    "huge": 10**10_000,
    "not a number": float("nan"),
    "half a character": "\ud800",
    "sets": {1: {2, 3}},
    "an object": object(),
    "bytes": b"\xff",
}


@pytest.mark.parametrize("value", UNSAYABLE.values(), ids=UNSAYABLE)
def test_results_that_no_json_can_say_are_counted_too(value: Any) -> None:
    assert part_tokens(ToolResult(name="find", value=value)) > 7


def test_a_turn_that_grew_counts_as_one_that_is_new() -> None:
    start = user("Who?", "The train leaves at a quarter to nine.")
    grown = user(*start.parts, "О котрій?", "x" * 300)

    known = grown_tokens(grown, start)

    assert known == turn_tokens(start)
    assert turn_tokens(grown) == turn_tokens(user(*grown.parts))
