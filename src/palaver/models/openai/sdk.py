"""Sending through the user's own openai client."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from palaver import errors
from palaver.models.json import loads
from palaver.models.openai.decode import decode_error, in_band_error


class SdkClient:
    """An `AsyncOpenAI`, asked with requests that we have encoded."""

    def __init__(self, client: Any) -> None:
        if not isinstance(client, openai.AsyncOpenAI):
            raise errors.InvalidValue("client= takes an openai.AsyncOpenAI")
        self._completions = client.chat.completions

    async def complete(self, body: bytes) -> Any:
        fields = loads(body)
        with _our_errors(fields["model"]):
            raw = await self._completions.with_raw_response.create(**_arguments(fields))
        return loads(raw.http_response.content)

    async def stream(self, body: bytes) -> AsyncGenerator[dict[str, Any], None]:
        fields = loads(body)
        with _our_errors(fields["model"]):
            async for chunk in await self._completions.create(stream=True, **_arguments(fields)):
                if not isinstance(chunk, openai.BaseModel):
                    raise errors.ResponseUnreadable(f"an event of the stream is no object: {chunk!r:.200}")
                yield chunk.model_dump(mode="json", exclude_unset=True)


def _arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """A request's body as the SDK's arguments; what it has no argument for goes in as it is."""
    rest = {name: value for name, value in fields.items() if name not in {"model", "messages", "stream"}}
    return {"model": fields["model"], "messages": fields["messages"], "extra_body": rest}


@contextmanager
def _our_errors(model: str) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as error:
        raise decode_error(error.status_code, error.response.content, error.response.headers, about=model) from error
    except openai.APITimeoutError as error:
        raise errors.TimedOut(f"no answer in time from {model}") from error
    except openai.APIConnectionError as error:
        raise errors.ConnectionLost(f"no connection for {model}, or it broke off: {error}") from error
    except openai.APIError as error:
        raise in_band_error({"error": error.body or str(error)}, about=model) from error
    except ValueError as error:
        raise errors.ResponseUnreadable(f"the SDK could not read the answer of {model}: {error}") from error
