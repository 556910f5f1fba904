"""From a prompt in plain words to the request llama.cpp takes. Pure."""

from msgspec.structs import replace

from palaver.models.json import dumps
from palaver.models.local.schema import answer_schema, grammar, offered
from palaver.models.local.words import results_in
from palaver.models.openai import encode as openai
from palaver.models.openai.vendors import Vendor
from palaver.turns import Prompt, Settings

LLAMA = Vendor(name="llama.cpp", top_k=True)
TEMPERATURE = 0.2  # small models wander off sooner than large ones
REPEAT_PENALTY = 1.1  # … and repeat themselves
MAX_TOKENS = 512


def encode_request(prompt: Prompt, told: Prompt, *, model: str) -> bytes:
    """The body of a request for the answer to *prompt*, which was *told* in words; it comes as a stream."""
    schema = answer_schema(prompt)
    body = openai.encode_request(
        replace(told, tools=(), settings=_settings(prompt)), model=model, vendor=LLAMA
    ).removesuffix(b"}")
    body += b',"stream":true,"stream_options":{"include_usage":true}'
    body += b',"return_progress":true'  # so that we are called, and may stop it, while it still reads
    if schema is not None:
        return body + b',"grammar":%b}' % dumps(grammar(schema))
    if results_in(prompt.turns[-1:]):
        return body + b"}"  # what a tool has answered is to be repeated
    return body + b',"repeat_penalty":%b}' % dumps(REPEAT_PENALTY)


def reserve(settings: Settings, *, context: int) -> int:
    """The tokens to keep free for the answer."""
    return min(settings.max_tokens or MAX_TOKENS, context // 2)


def _settings(prompt: Prompt) -> Settings:
    asked = prompt.settings
    stop = tuple(dumps(text)[1:-1].decode() for text in asked.stop) if offered(prompt) else asked.stop
    return replace(
        asked,
        temperature=TEMPERATURE if asked.temperature is None else asked.temperature,
        max_tokens=asked.max_tokens or MAX_TOKENS,
        stop=stop,
        answer=None,
        tool_choice=None,
    )
