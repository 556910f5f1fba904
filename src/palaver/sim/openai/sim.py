"""The OpenAI-compatible simulator: a local server that the real clients can talk to."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from palaver.sim.openai.app import App, Received, Settings
from palaver.sim.openai.behaviours import Actor, Behaviour
from palaver.sim.openai.faults import Fault
from palaver.sim.server import Served

MODELS = (
    "gpt-6-sol",
    "gpt-5.6",
    "gpt-5.6-mini",
    "gpt-4o",
    "gpt-4o-mini",
    "o1-mini",
    "o3-mini",
    "gemini-3.8-flash",
    "gemini-2.5-flash",
    "mistral-large-latest",
    "voxtral-small-latest",
    "compatible-1",
)


def _now() -> datetime:
    return datetime.now(UTC)


class OpenAISim:
    """`async with OpenAISim() as sim:` serves chat, embeddings and models at `sim.url` until the block ends."""

    def __init__(
        self,
        *,
        strict: bool = True,
        keys: frozenset[str] | None = None,
        models: Sequence[str] | None = MODELS,
        behaviour: Behaviour | None = None,
        clock: Callable[[], datetime] = _now,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        errors_as_list: bool = False,
        audio_url: bool = False,
        tell: Callable[[Received], None] | None = None,
    ) -> None:
        settings = Settings(
            strict=strict,
            keys=keys,
            models=None if models is None else tuple(models),
            behaviour=behaviour or Actor(),
            clock=clock,
            seed=seed,
            errors_as_list=errors_as_list,
            audio_url=audio_url,
        )
        self._app = App(settings, known_models=MODELS, tell=tell)
        self._served = Served(self._app, host=host, port=port)

    async def __aenter__(self) -> "OpenAISim":
        await self._served.__aenter__()
        return self

    async def __aexit__(self, *reason: object) -> None:
        self._app.stopping.set()
        await self._served.__aexit__(*reason)

    @property
    def url(self) -> str:
        """The base URL to give to clients."""
        return f"{self._served.url}/v1"

    @property
    def requests(self) -> list[Received]:
        """What was received so far, in order."""
        return self._app.requests

    def fail(self, fault: Fault, times: int = 1) -> None:
        """Let *fault* spoil the next answers that no earlier fault spoils."""
        self._app.faults.extend([fault] * times)

    async def until(self, ready: Callable[[list[Received]], bool]) -> None:
        """Wait until *ready* holds of `sim.requests`; it is asked when a request comes."""
        await self._app.until(ready)

    def stop(self) -> None:
        """End `forever`."""
        self._served.stop()

    async def forever(self) -> None:
        """Wait until the server is stopped."""
        await self._served.forever()
