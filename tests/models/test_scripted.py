"""A scripted model gives its lines in order, and keeps what it was asked."""

import pytest

from tertulia.errors import RateLimited, ScriptEnded
from tertulia.models import Finish, Model, Response, Scripted, Usage
from tertulia.models.scripted import Line
from tertulia.parts import Media, Part, Text, Thought, ToolCall
from tertulia.turns import Prompt, Turn, model

CALL = ToolCall(name="look", args={"place": "Lviv"}, id="a")
WHOLE = Response(turn=model("as it is", by="other"), usage=Usage(input=3), finish=Finish(outcome="cut", reason="x"))


def a_response(*parts: Part, outcome: str = "complete") -> Response:
    finish = Finish(outcome="complete" if outcome == "complete" else "empty", reason="SCRIPT")
    return Response(turn=Turn(role="model", parts=parts, model="scripted"), finish=finish)


async def streamed(scripted: Model) -> list[Part | Response]:
    return [piece async for piece in scripted.stream(Prompt.of("hi"))]


@pytest.mark.parametrize(
    ("line", "response"),
    [
        ("Hello.", a_response(Text(text="Hello."))),
        (CALL, a_response(CALL)),
        (["Look:", CALL], a_response(Text(text="Look:"), CALL)),
        ((part for part in [Thought(text="hm"), "Yes."]), a_response(Thought(text="hm"), Text(text="Yes."))),
        ([], a_response(outcome="empty")),
        (WHOLE, WHOLE),
    ],
)
async def test_a_line_of_the_script_is_an_answer(line: Line, response: Response) -> None:
    assert await Scripted(line).respond(Prompt.of("hi")) == response


async def test_lines_come_in_order_and_prompts_are_kept() -> None:
    scripted = Scripted("one", "two", name="m")
    prompts = [Prompt.of("a"), Prompt.of("b")]

    answers = [await scripted.respond(prompt) for prompt in prompts]

    assert [answer.turn for answer in answers] == [model("one", by="m"), model("two", by="m")]
    assert scripted.prompts == prompts


async def test_an_error_in_the_script_is_raised() -> None:
    scripted = Scripted(RateLimited("slow down", retry_after=2.0), "yes")

    with pytest.raises(RateLimited, match="slow down") as caught:
        await scripted.respond(Prompt.of("hi"))

    assert caught.value.retry_after == 2.0
    assert (await scripted.respond(Prompt.of("hi"))).text == "yes"


async def test_a_script_ends() -> None:
    scripted = Scripted("only", name="m")
    await scripted.respond(Prompt.of("hi"))

    with pytest.raises(ScriptEnded, match="'m' has no answer for request 2"):
        await scripted.respond(Prompt.of("more"))


async def test_a_stream_gives_words_then_the_whole() -> None:
    photo = Media(media_kind="photo", unique_id="u")
    signed = Text(text="signed and whole", signature="c2ln")

    pieces = await streamed(Scripted([Thought(text="let me see"), "Two  words\nnext ", CALL, photo, signed]))

    assert pieces[:-1] == [
        *[Thought(text=word) for word in ("let ", "me ", "see")],
        *[Text(text=word) for word in ("Two ", " ", "words\n", "next ")],
        CALL,
        photo,
        signed,
    ]
    assert pieces[-1] == a_response(Thought(text="let me see"), Text(text="Two  words\nnext "), CALL, photo, signed)


async def test_a_stream_raises_the_error_of_its_line() -> None:
    with pytest.raises(RateLimited):
        await streamed(Scripted(RateLimited("slow down")))
