"""The sample conversation in the types of each library, and the libraries' clients over a stub."""

import asyncio
import base64
import json
from typing import Any

from bench.common import GEMINI_MODEL, SCHEMA, SYSTEM, TOOL, TOOL_WORDS, Sample, Stub

from tertulia.models.gemini.client import Gemini
from tertulia.parts import Media, Part, Text, ToolCall, ToolResult
from tertulia.turns import ToolSpec, Turn


def turn_of(sample: Sample, model: str, *, signed: bool = True) -> Turn:
    signature = base64.b64encode(sample.signature).decode() if signed else None
    match sample.kind:
        case "call":
            call = ToolCall(name=TOOL, args={"query": sample.text}, id=sample.call_id, signature=signature)
            return Turn(role="model", parts=(call,), model=model)
        case "result":
            return Turn(role="user", parts=(ToolResult(name=TOOL, value={"found": sample.text}, id=sample.call_id),))
        case "model":
            return Turn(role="model", parts=(Text(text=sample.text),), model=model)
        case "user":
            parts: tuple[Part, ...] = (Text(text=sample.text),)
            if sample.image:
                image = Media(media_kind="photo", unique_id=sample.text, mime="image/jpeg", data=sample.image)
                parts = (*parts, image)
            return Turn(role="user", parts=parts)


def declared_tools() -> list[ToolSpec]:
    return [ToolSpec(name=TOOL, description=TOOL_WORDS, parameters=SCHEMA)]


def stubbed_gemini(stub: Stub, loop: asyncio.AbstractEventLoop) -> Gemini:
    model = Gemini(GEMINI_MODEL, key="k")
    model._http._client, model._http._loop = stub.async_client(), loop
    return model


# the peers'


def genai_client(stub: Stub) -> Any:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_client=stub.client(), httpx_async_client=stub.async_client())
    return genai.Client(api_key="k", http_options=options)


def genai_config() -> Any:
    from google.genai import types

    declaration = types.FunctionDeclaration(name=TOOL, description=TOOL_WORDS, parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[declaration])]
    return types.GenerateContentConfig(system_instruction=SYSTEM, tools=[*tools])


def genai_dict(sample: Sample) -> dict[str, Any]:
    match sample.kind:
        case "call":
            call = {"id": sample.call_id, "name": TOOL, "args": {"query": sample.text}}
            return {"role": "model", "parts": [{"function_call": call, "thought_signature": sample.signature}]}
        case "result":
            result = {"id": sample.call_id, "name": TOOL, "response": {"found": sample.text}}
            return {"role": "user", "parts": [{"function_response": result}]}
    parts: list[dict[str, Any]] = [{"text": sample.text}]
    if sample.image:
        parts.append({"inline_data": {"mime_type": "image/jpeg", "data": sample.image}})
    return {"role": sample.kind, "parts": parts}


def openai_dict(sample: Sample) -> dict[str, Any]:
    match sample.kind:
        case "call":
            function = {"name": TOOL, "arguments": json.dumps({"query": sample.text}, ensure_ascii=False)}
            calls = [{"id": sample.call_id, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case "result":
            found = json.dumps({"found": sample.text}, ensure_ascii=False)
            return {"role": "tool", "tool_call_id": sample.call_id, "content": found}
        case "model":
            return {"role": "assistant", "content": sample.text}
    if not sample.image:
        return {"role": "user", "content": sample.text}
    url = f"data:image/jpeg;base64,{base64.b64encode(sample.image).decode()}"
    image = {"type": "image_url", "image_url": {"url": url}}
    return {"role": "user", "content": [{"type": "text", "text": sample.text}, image]}


def pydantic_ai_google_model(stub: Stub) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(GEMINI_MODEL, provider=GoogleProvider(client=genai_client(stub)))


def pydantic_ai_message(sample: Sample, provider: str) -> Any:
    from pydantic_ai import messages

    match sample.kind:
        case "call":
            details = {"thought_signature": base64.b64encode(sample.signature).decode()}
            call = messages.ToolCallPart(TOOL, {"query": sample.text}, sample.call_id, provider_details=details)
            return messages.ModelResponse([call], provider_name=provider)
        case "result":
            result = messages.ToolReturnPart(TOOL, {"found": sample.text}, sample.call_id)
            return messages.ModelRequest([result], instructions=SYSTEM)
        case "model":
            return messages.ModelResponse([messages.TextPart(sample.text)], provider_name=provider)
    image = [messages.BinaryContent(sample.image, media_type="image/jpeg")] if sample.image else []
    prompt = messages.UserPromptPart([sample.text, *image] if image else sample.text)
    return messages.ModelRequest([prompt], instructions=SYSTEM)


def langchain_message(sample: Sample) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    match sample.kind:
        case "call":
            signatures = {sample.call_id: base64.b64encode(sample.signature).decode()}
            return AIMessage(
                "",
                tool_calls=[{"name": TOOL, "args": {"query": sample.text}, "id": sample.call_id}],
                additional_kwargs={"__gemini_function_call_thought_signatures__": signatures},
            )
        case "result":
            found = json.dumps({"found": sample.text}, ensure_ascii=False)
            return ToolMessage(found, tool_call_id=sample.call_id, name=TOOL)
        case "model":
            return AIMessage(sample.text)
    if not sample.image:
        return HumanMessage(sample.text)
    image = {"type": "image", "base64": base64.b64encode(sample.image).decode(), "mime_type": "image/jpeg"}
    return HumanMessage([{"type": "text", "text": sample.text}, image])


def agents_item(sample: Sample) -> dict[str, Any]:
    """Return the item as openai-agents has it in its history."""
    match sample.kind:
        case "call":
            arguments = json.dumps({"query": sample.text}, ensure_ascii=False)
            return {"type": "function_call", "call_id": sample.call_id, "name": TOOL, "arguments": arguments}
        case "result":
            found = json.dumps({"found": sample.text}, ensure_ascii=False)
            return {"type": "function_call_output", "call_id": sample.call_id, "output": found}
        case "model":
            words = {"type": "output_text", "text": sample.text, "annotations": [], "logprobs": []}
            answer = {"id": "__fake_id__", "type": "message", "role": "assistant", "status": "completed"}
            return {**answer, "content": [words]}
    if not sample.image:
        return {"role": "user", "content": sample.text}
    url = f"data:image/jpeg;base64,{base64.b64encode(sample.image).decode()}"
    image = {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"role": "user", "content": [{"type": "input_text", "text": sample.text}, image]}
