"""Settings as an OpenAI-compatible service takes them, and those that are left out or changed, with reasons. Pure."""

from typing import Any

from msgspec import Struct

from tertulia.jsonio import lower_types
from tertulia.models.openai.vendors import Vendor
from tertulia.turns import Prompt, Settings, ToolSpec
from tertulia.wire.generations import family, nearest_effort, reasoning_of, refused_settings

_NOT_KNOWN = "the service is not known to take it"


class SentSettings(Struct, frozen=True, kw_only=True):
    tools: tuple[ToolSpec, ...]
    fields: dict[str, Any]  # of the request
    notes: tuple[str, ...]  # what was left out or changed, and why


def sent_settings(prompt: Prompt, model: str, vendor: Vendor) -> SentSettings:
    """Return the tools and settings of a prompt as they are sent, with a note about each that is not sent as given."""
    settings, notes = prompt.settings, list[str]()
    tools = _sent_tools(prompt, model, vendor, notes)
    effort = _sent_effort(settings, model, vendor, notes, beside_tools=bool(tools))
    choices = {"auto": "auto", "any": vendor.any_tool, "none": "none"}
    schema = {"name": "answer", "schema": lower_types(settings.answer)} if settings.answer is not None else None
    written = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k if vendor.top_k else None,
        vendor.limit_field: settings.max_tokens,
        "stop": list(settings.stop) or None,
        "seed": settings.seed,
        "reasoning_effort": effort,
        "response_format": {"type": "json_schema", "json_schema": schema} if schema else None,
        "tool_choice": choices[settings.tool_choice] if tools and settings.tool_choice else None,
    }
    refused = refused_settings(model, effort)
    notes += [
        f"{name} is left out: {_why_refused(model, effort)}" for name in sorted(refused) if _matters(written[name])
    ]
    others = {
        "top_k": None if vendor.top_k else settings.top_k,
        "thoughts": settings.thoughts,
        "safety": settings.safety,
    }
    notes += [f"{name} is left out: {_NOT_KNOWN}" for name, value in others.items() if value]
    fields = {name: value for name, value in written.items() if value is not None and name not in refused}
    return SentSettings(tools=tools, fields=fields, notes=tuple(notes))


def _sent_tools(prompt: Prompt, model: str, vendor: Vendor, notes: list[str]) -> tuple[ToolSpec, ...]:
    if prompt.settings.tool_choice == "none" and not vendor.tool_choice:
        return ()
    if prompt.tools and _is_openais(model, vendor) and not reasoning_of(model).beside_tools:
        notes.append("tools are left out: the model takes none in chat completions")
        return ()
    return prompt.tools


def _sent_effort(settings: Settings, model: str, vendor: Vendor, notes: list[str], *, beside_tools: bool) -> str | None:
    """Return the effort that is sent: the nearest to the wanted one that the model takes, also beside tools."""
    reasoning = reasoning_of(model) if _is_openais(model, vendor) else None
    taken = reasoning.efforts if reasoning else vendor.efforts
    asked = "none" if settings.thinking == 0 else settings.thinking
    wanted = asked if isinstance(asked, str) and taken else None
    if asked is not None and wanted is None and (taken or asked != "none"):
        unknown = "the model does not think" if reasoning else _NOT_KNOWN
        why = 'the service takes an effort such as "low", no number of tokens' if taken else unknown
        notes.append(f"thinking is left out: {why}")
    allowed = reasoning.beside_tools if reasoning and beside_tools else taken
    usual = (
        reasoning.default if reasoning and beside_tools else None
    )  # beside tools the model may refuse its own default
    if (wanted or usual) is None or (wanted or usual) in allowed:
        return wanted
    found = nearest_effort(str(wanted or usual), allowed)
    where = " beside tools" if allowed != taken else ""
    quoted = ", ".join(f'"{one}"' for one in allowed)
    notes += [f'thinking is "{found}", not "{wanted}": the model takes {quoted}{where}'] if wanted else []
    return found


def _is_openais(model: str, vendor: Vendor) -> bool:
    return bool(vendor.efforts) and family(model) == "openai"


def _matters(value: Any) -> bool:
    """Return whether a setting has another value than the services' own default."""
    return value is not None and value != 1


def _why_refused(model: str, effort: str | None) -> str:
    reasoning = reasoning_of(model.removeprefix("openai/"))
    if (effort or reasoning.default) == "none":
        return "the model may refuse it" if reasoning.efforts else "the model refuses it"
    hint = ', thinking="none" allows it' if "none" in reasoning.efforts else ""
    return f"the model refuses it while it thinks{hint}"
