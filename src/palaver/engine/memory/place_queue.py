"""Reading in the background: the places that wait for it, one after the other."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from palaver.backoff import backoff
from palaver.engine.background import BackgroundTasks, Sleep, error_text, foreign_code
from palaver.errors import ModelUnavailable, PalaverError, StoreBroken
from palaver.messages import Place, PlaceKey
from palaver.models.base import Model

log = logging.getLogger(__name__)

Metered = Callable[[Model, Place], Model]  # a model, for calls in a place


def unmetered(model: Model, place: Place) -> Model:
    """The model itself."""
    return model


FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds


class PlaceQueue:
    """`add(place)` has *work* done there, soon; what fails goes to the end, and waits longer each time.

    An error that nobody expected, or a damaged store, waits for the next who takes that place, and is in nobody's way.
    """

    def __init__(self, work: Callable[[Place], Awaitable[object]], what: str, *, sleep: Sleep) -> None:
        self._work = work
        self._what = what  # is done, for the log
        self._sleep = sleep
        self._crew = BackgroundTasks()
        self._due: OrderedDict[PlaceKey, Place] = OrderedDict()
        self._going = False

    def add(self, place: Place) -> None:
        self._due[place.key] = place
        if not self._going:
            self._going = True
            self._crew.begin(self._go())

    @property
    def busy(self) -> bool:
        return self._crew.busy

    async def done(self) -> None:
        """Wait until nothing is due."""
        await self._crew.done()

    async def close(self) -> None:
        """Let go; what is left is done by the next who starts."""
        await self._crew.stop()
        self._due.clear()
        self._going = False

    async def _go(self) -> None:
        failures = 0
        try:
            while self._due:
                key, place = self._due.popitem(last=False)
                try:
                    with foreign_code(self._what):
                        await self._work(place)
                    failures = 0
                except StoreBroken as error:
                    self._crew.broken = error
                    log.error("%s in %s: %s", self._what, place.id, error)
                except PalaverError as error:
                    self._due.setdefault(key, place)
                    failures += 1
                    pause = _pause(error, backoff(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE))
                    log.warning("%s in %s goes on in %g s: %s", self._what, place.id, pause, error)
                    await self._sleep(pause)
                except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other places go on)
                    log.error("%s in %s: %s", self._what, place.id, error_text(error))
        finally:
            self._going = False


def _pause(error: PalaverError, usual: float) -> float:
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    return min(max(asked or 0.0, usual), LONGEST_PAUSE)
