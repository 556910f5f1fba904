"""Requests through the user's own openai client."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from tertulia import errors
from tertulia.jsonio import dumps, loads
from tertulia.models.key_mask import Mask, mask_for, secrets_in
from tertulia.models.openai.decode import decode_error, in_band_error


class OpenAISdkClient:
    """Sends our encoded requests through an `AsyncOpenAI`."""

    def __init__(self, client: Any) -> None:
        if not isinstance(client, openai.AsyncOpenAI):
            raise errors.InvalidValue("client= takes an openai.AsyncOpenAI")
        self._completions = client.chat.completions
        headers = {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
        keys = (client.api_key, *secrets_in(headers, str(client.base_url)))
        self.mask = mask_for(tuple(key for key in keys if isinstance(key, str)))

    async def complete(self, body: bytes) -> Any:
        fields = loads(body)
        with as_our_errors(fields["model"], self.mask):
            raw = await self._completions.with_raw_response.create(**_arguments(fields))
        return loads(self.mask(raw.http_response.content))

    async def stream(self, body: bytes) -> AsyncGenerator[dict[str, Any], None]:
        fields = loads(body)
        with as_our_errors(fields["model"], self.mask):
            async for chunk in await self._completions.create(stream=True, **_arguments(fields)):
                if not isinstance(chunk, openai.BaseModel):
                    raise errors.ResponseUnreadable(f"an event of the stream is no object: {chunk!r:.200}")
                yield loads(self.mask(dumps(chunk.model_dump(mode="json", exclude_unset=True))))


def _arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request as arguments of the SDK; other fields go into `extra_body`."""
    rest = {name: value for name, value in fields.items() if name not in {"model", "messages", "stream"}}
    return {"model": fields["model"], "messages": fields["messages"], "extra_body": rest}


@contextmanager
def as_our_errors(model: str, mask: Mask) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as error:
        answer = mask(error.response.content)
        mask.error(error)  # it is shown as the cause of ours
        raise decode_error(error.status_code, answer, error.response.headers, about=model) from error
    except openai.APITimeoutError as error:
        raise errors.TimedOut(f"no answer in time from {model}") from error
    except openai.APIConnectionError as error:
        raise errors.ConnectionLost(f"no connection for {model}, or it broke off: {mask.error(error)}") from error
    except openai.APIError as error:
        said = loads(mask(dumps({"error": error.body or str(error)})))
        raise in_band_error(said, about=model) from mask.error(error)
    except ValueError as error:
        raise errors.ResponseUnreadable(f"the SDK could not read the answer of {model}: {mask.error(error)}") from error
