"""The simulator of the Gemini API, as a server to be pointed at."""

from collections.abc import Callable, Iterable
from typing import Any

from palaver.sim.gemini.behaviours import Actor, Behaviour
from palaver.sim.gemini.catalogue import DEFAULT_MODELS, Catalogue, Model
from palaver.sim.gemini.clock import Clock
from palaver.sim.gemini.faults import Fault
from palaver.sim.gemini.http import Endpoint, Received
from palaver.sim.gemini.service import Service
from palaver.sim.server import Served

Wire = dict[str, Any]


class GeminiSim:
    """`async with GeminiSim() as sim:` serves the Gemini API at `sim.url` until the block ends.

    Without *keys* every key is good but `bad-key`, `invalid` and `invalid-key`. Time stands still unless *clock* runs
    (`clock=time.time`); `sim.clock.advance(seconds)` lets it pass. Films and sounds are ready after *processing*
    seconds.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        keys: frozenset[str] | None = None,
        models: Iterable[Model | str] = DEFAULT_MODELS,
        behaviour: Behaviour | None = None,
        clock: Callable[[], float] | None = None,
        seed: int = 0,
        processing: float = 5.0,
        host: str = "127.0.0.1",
        port: int = 0,
        tell: Callable[[Received], None] | None = None,
    ) -> None:
        self.clock = clock if isinstance(clock, Clock) else Clock(clock)
        self._service = Service(
            strict=strict,
            behaviour=behaviour or Actor(seed=seed),
            catalogue=Catalogue(models),
            clock=self.clock,
            seed=seed,
            processing=processing,
        )
        self._endpoint = Endpoint(self._service.answer, keys, tell)
        self._served = Served(self._endpoint, host=host, port=port)

    async def __aenter__(self) -> "GeminiSim":
        await self._served.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._endpoint.stop()
        await self._served.__aexit__()

    @property
    def url(self) -> str:
        return self._served.url

    @property
    def requests(self) -> list[Received]:
        """What was received so far, in order."""
        return self._endpoint.requests

    async def until(self, ready: Callable[[list[Received]], bool]) -> None:
        """Wait until *ready* holds of `sim.requests`; it is asked when a request comes and when it is answered."""
        await self._endpoint.until(ready)

    def fail(self, fault: Fault, *, times: int = 1) -> None:
        """Let *fault* happen to the next *times* requests it fits."""
        self._service.faults.add(fault, times)

    def sign(self, model: str, part: Wire) -> str:
        """The signature *model* would put on *part*."""
        return self._service.signatures.sign(model, part)

    def stop(self) -> None:
        """End `forever`."""
        self._served.stop()

    async def forever(self) -> None:
        """Serve until the server is stopped."""
        await self._served.forever()
