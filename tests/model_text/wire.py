"""What the services and the embedded model are sent in place of what they cannot take, and the services' own words."""

import json
from typing import Any

from msgspec.structs import replace

from model_text.rich_context import BROKEN, LOOK, SEEN, STEPS, a_rich_context, every_media
from model_text.shown import a_section, in_json, shown_prompt, shown_turns
from people import a_photo
from tertulia.models.gemini import encode as gemini
from tertulia.models.local.encode import encode_request as encode_local
from tertulia.models.local.encode import text_prompt, with_one_call
from tertulia.models.openai import encode as openai
from tertulia.parts import Media, Opaque, ToolCall, ToolResult
from tertulia.profiles import PROFILES
from tertulia.run.loop import append_turns
from tertulia.turns import Prompt, Settings, ToolSpec, Turn, model, user
from tertulia.wire.lint import lint
from tertulia.wire.repair import repair, repair_prompt
from tertulia.wire.rules import GEMINI_RULES, OPENAI_RULES, PLACEHOLDER_SIGNATURE
from tertulia.wire.turn_repair import media_as_words as parts_in_words

GEMINI, GEMMA, GPT, MISTRAL = "gemini-3.8-flash", "gemma-3-27b-it", "gpt-5.6", "mistral-large-latest"
TOOL = ToolSpec(
    name="look",
    description="Look at a place.",
    parameters={
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Where"},
            "how": {"enum": ["near", "far"]},
            "deep": {"type": "INTEGER"},
            "any": {},
        },
        "required": ["place"],
    },
)


def rules() -> str:
    """The words of each rule, and how they are filled in."""
    requests: list[dict[str, Any] | str] = [
        "[]",
        {},
        {"contents": [{"role": "user", "parts": []}], "unknown": 1},
        {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "look"}}]}]},
        {"contents": [{"role": "user", "parts": [{"text": "a", "unknown": 1}]}]},
        {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "tools": json.loads("[" * 120 + "]" * 120)},
        {"messages": []},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}], "temperature": 3},
    ]
    services = {"Gemini": GEMINI_RULES, "OpenAI": OPENAI_RULES}
    told = [
        f"{service} {key} ({rule.name}): {rule.message}"
        for service, its_rules in services.items()
        for key, rule in its_rules.items()
    ]
    for request in requests:
        for name in (GEMINI, GPT):
            told += [f"{one.rule} at {one.where}: {one.message}" for one in lint(request, model=name, strict=True)]
    return "\n".join([*told, PLACEHOLDER_SIGNATURE]) + "\n"


def repairs() -> str:
    """What repair puts where something is missing."""
    histories: dict[str, tuple[Turn, ...]] = {
        "a call without a result": (user("a"), model(LOOK, by=GEMINI)),
        "a call first": (model(LOOK, by=GEMINI), user(SEEN)),
        "the model last": (user("a"), model("b", by=GEMINI)),
        "two calls with one id": (user("a"), model(LOOK, LOOK, by=GEMINI), user(SEEN)),
        "a call without a name": (user("a"), model(ToolCall(name="", id="x"), by=GEMINI), user("b")),
        "a name that is not legal": (user("a"), model(ToolCall(name="look at.it", id="x"), by=GEMINI), user("b")),
        "a result without a call": (user("a"), user(SEEN), user("b")),
    }
    sections = []
    for title, turns in histories.items():
        for name in (GEMINI, GPT):
            sections.append(a_section(f"{title}, {name}", shown_turns(repair(turns, name)[0])))
    large = (
        a_photo(rendered_text="a cat"),
        ToolResult(name="look", id="a", media=(a_photo(),)),
        Opaque(raw={"inlineData": {"data": "eA=="}}),
    )
    sections.append(a_section("media beyond the size of a request", shown_turns([user(*parts_in_words(large))])))
    return "\n".join(sections)


def requests() -> str:
    """Whole requests to services that take some of the media, tools and results, or none."""
    prompt = replace(append_turns(PROFILES["layered"].build(a_rich_context()), *STEPS), tools=(TOOL,))
    media = Prompt.of(user(*every_media()), model(LOOK), user(replace(BROKEN, media=every_media()[:6])), "and?")
    sections = []
    for title, asked in {"the layered profile": prompt, "media": media}.items():
        for name in (GEMINI, GEMMA):
            body = gemini.encode_request(repair_prompt(asked, name, wire="gemini"), model=name)
            sections.append(a_section(f"{title}, {name}", in_json(json.loads(body))))
        for name in (GPT, MISTRAL):
            body = openai.encode_request(repair_prompt(asked, name, wire="openai"), model=name)
            sections.append(a_section(f"{title}, {name}", in_json(json.loads(body))))
    return "\n".join(sections)


def embedded() -> str:
    """What the embedded model is told: tools, calls and results in words, and the request that is made of them."""
    tools = (TOOL, ToolSpec(name="stop"))
    talk = (
        user("Hi!"),
        model("Hello."),
        user("Look!", a_photo(), Media(media_kind="voice", unique_id="v", rendered_text="a song")),
        model(LOOK),
        user(SEEN),
        model("It rains."),
        user("Again?"),
        model(LOOK),
        user(BROKEN),
        model(LOOK),
        user(replace(SEEN, media=(a_photo(rendered_text="rain"),))),
    )
    answer = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    prompts = {
        "tools": Prompt.of(*talk, tools=tools, system="Be kind."),
        "no instruction": Prompt.of("Hi!", tools=tools),
        "no tools": Prompt.of(*talk),
        "the model last": Prompt.of("Hi!", model("Hello.")),
        "tools switched off": Prompt.of(*talk, tools=tools, settings=Settings(tool_choice="none")),
        "a tool wanted": Prompt.of("Look!", tools=tools, settings=Settings(tool_choice="any")),
        "an answer of a type": Prompt.of("Hi!", settings=Settings(answer=answer)),
        "tools and an answer of a type": Prompt.of("Hi!", tools=tools, settings=Settings(answer=answer)),
    }
    sections = []
    for title, prompt in prompts.items():
        for one_call in (False, True):
            asked = with_one_call(prompt) if one_call else prompt
            words = text_prompt(asked, room=10_000)
            body = json.loads(encode_local(asked, words, model="qwen"))
            title_here = f"{title}, one call" if one_call else title
            sections.append(a_section(title_here, f"{shown_prompt(words)}\n{in_json(body)}"))
    short = text_prompt(Prompt.of(*talk, tools=tools, system="Be kind. " * 20), room=300)
    sections.append(a_section("little room", shown_prompt(short)))
    return "\n".join(sections)
