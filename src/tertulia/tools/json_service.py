"""A client of JSON services on the web; its errors name the service, but not its address."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from tertulia import errors
from tertulia.jsonio import loads, object_or_empty
from tertulia.models.http import Http, ResponseTooLarge

T = TypeVar("T")

MAX_ANSWER = 2 * 2**20  # bytes, decompressed
HEADERS = {"accept": "application/json", "user-agent": "tertulia"}


class JsonService:
    """A service that is asked by GET. Errors name it *name*, never its address: a model may repeat them to people."""

    def __init__(self, name: str, base_url: str, *, timeout: float) -> None:
        self.name = name
        self._timeout = timeout  # for the whole exchange
        self._http = Http(base_url, headers=HEADERS.copy, decode_error=self._refusal, limit=MAX_ANSWER)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, params: Mapping[str, str], answer: type[T]) -> T:
        """Ask the service, and decode what it answers as an *answer*."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._http.send("GET", f"{path}?{urlencode(params, errors='replace')}")
            return msgspec.convert(loads(response.content), answer)
        except (TimeoutError, errors.TimedOut) as error:
            raise errors.TimedOut(f"{self.name} did not answer in time") from error
        except errors.ConnectionLost as error:
            raise errors.ConnectionLost(f"{self.name} cannot be reached") from error
        except ResponseTooLarge as error:
            raise errors.ResponseUnreadable(f"{self.name} sent more than can be read") from error
        except (errors.ResponseUnreadable, msgspec.ValidationError) as error:
            raise errors.ResponseUnreadable(f"{self.name} sent an answer that cannot be read") from error
        except errors.InvalidValue as error:
            raise errors.OperatorMustAct(f"the address of {self.name} is not one that can be called") from error

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str], _: str) -> errors.TertuliaError:
        if status == 429:
            wait = headers.get("retry-after", "")
            return errors.RateLimited(
                f"{self.name} has had too many requests just now",
                retry_after=float(wait) if wait.isascii() and wait.isdigit() else None,
            )
        if status >= 500:
            return errors.ServiceFault(f"{self.name} failed (HTTP {status})")
        if status < 400 or status in (401, 403, 404):
            return errors.OperatorMustAct(f"{self.name} does not let us in at its address (HTTP {status})")
        return errors.RequestRefused(f"{self.name} refused the request (HTTP {status}){_reason(body)}")


def _reason(body: bytes) -> str:
    try:
        reason = object_or_empty(loads(body)).get("reason")
    except errors.ResponseUnreadable:
        return ""
    return f": {' '.join(reason.split())[:200]}" if isinstance(reason, str) else ""
