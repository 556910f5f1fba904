"""A queue of places whose messages are read in the background, one place after the other."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from palaver.backoff import backoff
from palaver.engine.background import BackgroundTasks, Sleep, error_text, foreign_code
from palaver.errors import ModelUnavailable, PalaverError, StoreBroken
from palaver.messages import Place, PlaceKey
from palaver.models.base import Model

log = logging.getLogger(__name__)

Metered = Callable[[Model, Place], Model]  # wraps a model so that its calls in a place are counted


def unmetered(model: Model, place: Place) -> Model:
    """Return the model itself."""
    return model


FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds


class PlaceQueue:
    """Runs *work* for each place that is woken. A place that is in the queue already is not added again.

    A `PalaverError` is retried with backoff, after the places that wait. Any other error, and a damaged store, is
    logged; the place is read again when it is next woken.
    """

    def __init__(self, work: Callable[[Place], Awaitable[object]], name: str, *, sleep: Sleep) -> None:
        self._work = work
        self._name = name  # of the work, for the log
        self._sleep = sleep
        self._background = BackgroundTasks()
        self._waiting: OrderedDict[PlaceKey, Place] = OrderedDict()
        self._is_running = False

    def wake(self, place: Place) -> None:
        """Add a place to the queue; return at once."""
        self._waiting[place.key] = place
        if not self._is_running:
            self._is_running = True
            self._background.start(self._run())

    @property
    def busy(self) -> bool:
        return self._background.busy

    async def done(self) -> None:
        """Wait until the queue is empty."""
        await self._background.done()

    async def close(self) -> None:
        """Stop. What is left is found by the next `start`."""
        await self._background.stop()
        self._waiting.clear()
        self._is_running = False

    async def _run(self) -> None:
        failures = 0
        try:
            while self._waiting:
                key, place = self._waiting.popitem(last=False)
                try:
                    with foreign_code(self._name):
                        await self._work(place)
                    failures = 0
                except StoreBroken as error:
                    self._background.broken = error
                    log.error("%s in %s: %s", self._name, place.id, error)
                except PalaverError as error:
                    self._waiting.setdefault(key, place)
                    failures += 1
                    pause = _pause(error, backoff(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE))
                    log.warning("%s in %s is retried in %g s: %s", self._name, place.id, pause, error)
                    await self._sleep(pause)
                except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other places go on)
                    log.error("%s in %s: %s", self._name, place.id, error_text(error))
        finally:
            self._is_running = False


def _pause(error: PalaverError, usual: float) -> float:
    """Return the seconds to wait: what a model asks for, but at least the usual ones."""
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    return min(max(asked or 0.0, usual), LONGEST_PAUSE)
