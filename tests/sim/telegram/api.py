"""A client that does nothing but call."""

from collections.abc import Mapping
from typing import Any

import httpx2
import orjson


class Api:
    """`await api("sendMessage", chat_id=1, text="hi")` is the body of the answer, whatever its status."""

    def __init__(self, client: httpx2.AsyncClient, token: str) -> None:
        self.client = client
        self.token = token

    async def __call__(self, method: str, **params: Any) -> Any:
        response = await self.client.post(f"/bot{self.token}/{method}", json=params)
        assert response.status_code == response.json().get("error_code", 200)
        return response.json()

    async def upload(self, method: str, files: Mapping[str, tuple[str, bytes, str]], **params: Any) -> Any:
        fields = {
            name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in params.items()
        }
        response = await self.client.post(f"/bot{self.token}/{method}", data=fields, files=files)
        return response.json()

    async def result(self, method: str, **params: Any) -> Any:
        """Return the result of a call that succeeds."""
        answer = await self(method, **params)
        assert answer["ok"], answer
        return answer["result"]

    async def refusal(self, method: str, **params: Any) -> str:
        """Return the description of a call that is refused."""
        answer = await self(method, **params)
        assert not answer["ok"], answer
        return f"{answer['error_code']} {answer['description']}"

    async def updates(self, **params: Any) -> list[Any]:
        """Return the ids that `getUpdates` gives, counted from 1."""
        return [update["update_id"] - 100_000_000 for update in await self.result("getUpdates", **params)]
