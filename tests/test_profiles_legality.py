"""Every profile works with every model: whatever a chat holds, the request is legal and says everything once."""

import re
from collections import Counter
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats import Chat, chats
from people import GRYAG, a_context, a_message
from sizes import EXAMPLES, size
from strategies import GEMINI_MODELS, OPENAI_MODELS
from tertulia.context.values import Context
from tertulia.formats.context_block import block
from tertulia.messages import Message
from tertulia.models.gemini.encode import encode_request as to_gemini
from tertulia.models.openai.encode import encode_request as to_openai
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.profiles import PROFILES, Build
from tertulia.run.loop import append_turns
from tertulia.turns import Prompt, model, user
from tertulia.wire import lint
from tertulia.wire.lint import Violation
from tertulia.wire.repair import repair_prompt

pytestmark = pytest.mark.torture

EXCERPT = re.compile(r'reply_excerpt="(?:[^"\\]|\\")*"')  # words about a message, not the message

few = settings(max_examples=size(12, full=EXAMPLES))
each: dict[str, Build] = {name: profile.build for name, profile in PROFILES.items()} | {
    "block, no metadata": partial(block, include_meta=False)
}
profiles = st.sampled_from(sorted(each))
any_chat = st.one_of(chats(GEMINI_MODELS), chats(OPENAI_MODELS))
broken_chat = st.one_of(chats(GEMINI_MODELS, broken=True), chats(OPENAI_MODELS, broken=True))


def prompt_of(profile: str, chat: Chat) -> Prompt:
    """The prompt of a profile, and the steps of the run behind it."""
    prompt = each[profile](chat.context)
    return append_turns(prompt, *chat.steps) if chat.steps else prompt


def encoded(prompt: Prompt, asked: str) -> bytes:
    return to_openai(prompt, model=asked) if asked in OPENAI_MODELS else to_gemini(prompt, model=asked)


def sent(prompt: Prompt, asked: str) -> Prompt:
    return repair_prompt(prompt, asked, wire="openai" if asked in OPENAI_MODELS else "gemini")


def violations(body: bytes, asked: str, *, strict: bool) -> list[Violation]:
    return lint(body, model=asked, strict=strict)


def shown(profile: str, context: Context) -> tuple[Message, ...]:
    """The messages that a profile shows, in their order."""
    history = {
        "native": context.history,
        "block": context.history[-59:],
        "block, no metadata": context.history[-59:],
        "single": (),
    }.get(profile, context.window)
    return (*(one for one in history if not one.deleted), context.target)


def spoken(profile: str, prompt: Prompt) -> str:
    """What the prompt tells as messages: in `block` the lines of the block, elsewhere the turns."""
    if profile.startswith("block"):
        return EXCERPT.sub("", prompt.instruction.split("\n```\n", 1)[1])
    return "\n".join(part.text for turn in prompt.turns for part in turn.parts if isinstance(part, Text))


@few
@pytest.mark.parametrize("profile", sorted(each))
@given(chosen=broken_chat)
def test_what_is_sent_is_legal_for_every_model(profile: str, chosen: tuple[str, Chat]) -> None:
    asked, chat = chosen

    body = encoded(sent(prompt_of(profile, chat), asked), asked)

    assert violations(body, asked, strict=True) == []


@few
@pytest.mark.parametrize("profile", sorted(each))
@given(chosen=any_chat)
def test_what_is_built_of_good_turns_is_legal_as_it_stands(profile: str, chosen: tuple[str, Chat]) -> None:
    asked, chat = chosen

    body = encoded(prompt_of(profile, chat), asked)

    assert violations(body, asked, strict=False) == []


@few
@pytest.mark.parametrize("profile", sorted(each))
@given(chosen=any_chat)
def test_every_message_is_there_once_and_in_its_order(profile: str, chosen: tuple[str, Chat]) -> None:
    asked, chat = chosen
    expected = [chat.tokens[one.id] for one in shown(profile, chat.context) if one.id in chat.tokens]

    built = prompt_of(profile, chat)

    assert re.findall(r"word\d+word", spoken(profile, built)) == expected
    body = encoded(sent(built, asked), asked).decode()
    again = (
        [chat.tokens[chat.context.target.id]]
        if profile.startswith("block") and chat.context.target.id in chat.tokens
        else []
    )
    quoted = re.findall(r"word\d+word", " ".join(EXCERPT.findall(built.instruction)))
    assert Counter(re.findall(r"word\d+word", body)) == Counter(expected + again + quoted)


@few
@given(chosen=any_chat, profile=profiles)
def test_building_is_pure(chosen: tuple[str, Chat], profile: str) -> None:
    _, chat = chosen

    assert each[profile](chat.context) == each[profile](chat.context)


@pytest.mark.parametrize("profile", sorted(each))
def test_a_history_that_begins_with_the_agents_own_call_is_legal_as_it_stands(profile: str) -> None:
    own, other = a_message("Sunny.", id="1", author=GRYAG), a_message("thanks", id="2")
    call, result = ToolCall(name="weather", id="c1", signature="c2ln"), ToolResult(name="weather", id="c1", value=18)
    done = (model(call, by="gemini-3.8-flash"), user(result), model("Sunny.", by="gemini-3.8-flash"))
    context = a_context(a_message(id="3"), window=(own, other), immediate=(own, other), turns={"1": done})

    body = encoded(each[profile](context), "gemini-3.8-flash")

    assert violations(body, "gemini-3.8-flash", strict=True) == []
