"""The conversation in the types of each library that holds it, and the libraries' clients with a stub behind them."""

import asyncio
import base64
import json
from typing import Any

from bench.common import GEMINI_MODEL, SCHEMA, SYSTEM, TOOL, TOOL_WORDS, Said, Stub

from palaver.models.gemini.client import Gemini
from palaver.parts import Media, Part, Text, ToolCall, ToolResult
from palaver.turns import ToolSpec, Turn


def turn_of(said: Said, model: str, *, signed: bool = True) -> Turn:
    signature = base64.b64encode(said.signature).decode() if signed else None
    match said.kind:
        case "call":
            call = ToolCall(name=TOOL, args={"query": said.text}, id=said.call_id, signature=signature)
            return Turn(role="model", parts=(call,), model=model)
        case "result":
            return Turn(role="user", parts=(ToolResult(name=TOOL, value={"found": said.text}, id=said.call_id),))
        case "model":
            return Turn(role="model", parts=(Text(text=said.text),), model=model)
        case "user":
            parts: tuple[Part, ...] = (Text(text=said.text),)
            if said.image:
                image = Media(media_kind="photo", unique_id=said.text, mime="image/jpeg", data=said.image)
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


def genai_dict(said: Said) -> dict[str, Any]:
    match said.kind:
        case "call":
            call = {"id": said.call_id, "name": TOOL, "args": {"query": said.text}}
            return {"role": "model", "parts": [{"function_call": call, "thought_signature": said.signature}]}
        case "result":
            result = {"id": said.call_id, "name": TOOL, "response": {"found": said.text}}
            return {"role": "user", "parts": [{"function_response": result}]}
    parts: list[dict[str, Any]] = [{"text": said.text}]
    if said.image:
        parts.append({"inline_data": {"mime_type": "image/jpeg", "data": said.image}})
    return {"role": said.kind, "parts": parts}


def openai_dict(said: Said) -> dict[str, Any]:
    match said.kind:
        case "call":
            function = {"name": TOOL, "arguments": json.dumps({"query": said.text}, ensure_ascii=False)}
            calls = [{"id": said.call_id, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case "result":
            found = json.dumps({"found": said.text}, ensure_ascii=False)
            return {"role": "tool", "tool_call_id": said.call_id, "content": found}
        case "model":
            return {"role": "assistant", "content": said.text}
    if not said.image:
        return {"role": "user", "content": said.text}
    url = f"data:image/jpeg;base64,{base64.b64encode(said.image).decode()}"
    image = {"type": "image_url", "image_url": {"url": url}}
    return {"role": "user", "content": [{"type": "text", "text": said.text}, image]}


def pydantic_ai_google_model(stub: Stub) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(GEMINI_MODEL, provider=GoogleProvider(client=genai_client(stub)))


def pydantic_ai_message(said: Said, provider: str) -> Any:
    from pydantic_ai import messages

    match said.kind:
        case "call":
            details = {"thought_signature": base64.b64encode(said.signature).decode()}
            call = messages.ToolCallPart(TOOL, {"query": said.text}, said.call_id, provider_details=details)
            return messages.ModelResponse([call], provider_name=provider)
        case "result":
            result = messages.ToolReturnPart(TOOL, {"found": said.text}, said.call_id)
            return messages.ModelRequest([result], instructions=SYSTEM)
        case "model":
            return messages.ModelResponse([messages.TextPart(said.text)], provider_name=provider)
    image = [messages.BinaryContent(said.image, media_type="image/jpeg")] if said.image else []
    prompt = messages.UserPromptPart([said.text, *image] if image else said.text)
    return messages.ModelRequest([prompt], instructions=SYSTEM)


def langchain_message(said: Said) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    match said.kind:
        case "call":
            signatures = {said.call_id: base64.b64encode(said.signature).decode()}
            return AIMessage(
                "",
                tool_calls=[{"name": TOOL, "args": {"query": said.text}, "id": said.call_id}],
                additional_kwargs={"__gemini_function_call_thought_signatures__": signatures},
            )
        case "result":
            found = json.dumps({"found": said.text}, ensure_ascii=False)
            return ToolMessage(found, tool_call_id=said.call_id, name=TOOL)
        case "model":
            return AIMessage(said.text)
    if not said.image:
        return HumanMessage(said.text)
    image = {"type": "image", "base64": base64.b64encode(said.image).decode(), "mime_type": "image/jpeg"}
    return HumanMessage([{"type": "text", "text": said.text}, image])


def agents_item(said: Said) -> dict[str, Any]:
    """As openai-agents gives its history back, to be sent again."""
    match said.kind:
        case "call":
            arguments = json.dumps({"query": said.text}, ensure_ascii=False)
            return {"type": "function_call", "call_id": said.call_id, "name": TOOL, "arguments": arguments}
        case "result":
            found = json.dumps({"found": said.text}, ensure_ascii=False)
            return {"type": "function_call_output", "call_id": said.call_id, "output": found}
        case "model":
            words = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
            answer = {"id": "__fake_id__", "type": "message", "role": "assistant", "status": "completed"}
            return {**answer, "content": [words]}
    if not said.image:
        return {"role": "user", "content": said.text}
    url = f"data:image/jpeg;base64,{base64.b64encode(said.image).decode()}"
    image = {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"role": "user", "content": [{"type": "input_text", "text": said.text}, image]}
