"""Faults that a test injects into the calls of a bot."""

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.sim.telegram.methods import METHODS, POSTS
from tertulia.sim.telegram.refusals import Refused, flood, refused

_STATUSES = {
    400: "Bad Request: the simulator was told to refuse",
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
    404: "Not Found",
    409: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
DOWNLOAD = "download"  # the name under which faults come into downloads of files
_OF_DOWNLOADS = ("broken", "hangs")
_OTHERS = frozenset({"getupdates", "setwebhook", "deletewebhook", "getwebhookinfo", "logout", "close"})


class Fault(Struct, kw_only=True):
    """A fault, how often it comes and into which method: None means all that post or change messages."""

    what: str | int
    times: int
    method: str | None
    retry_after: int
    description: str = ""  # of a status

    def refusal(self) -> Refused:
        """Return the answer that it stands for, if it is one."""
        if self.what in ("busy", 429):
            return flood(self.retry_after)
        if self.what == "refused":
            return refused("no-rights", what="text messages")
        code = int(self.what)
        return Refused(code, self.description or _STATUSES[code], rule="fault")


class FaultQueue:
    """The faults that wait, in order."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(
        self,
        what: str | int,
        *,
        times: int = 1,
        method: str | None = None,
        retry_after: int = 1,
        description: str = "",
    ) -> None:
        known = (*_STATUSES, 429, "busy", "refused", "request lost", "receipt lost")
        known = (*known, *_OF_DOWNLOADS) if method == DOWNLOAD else known
        if what not in known:
            raise InvalidValue(f"no such fault: {what!r}; there are {', '.join(map(str, known))}")
        if method is not None and method.lower() not in METHODS.keys() | _OTHERS | {DOWNLOAD}:
            raise InvalidValue(f"no such method of the Bot API here: {method}")
        name = method.lower() if method else None
        self._waiting.append(
            Fault(what=what, times=times, method=name, retry_after=retry_after, description=description)
        )

    def take(self, method: str) -> Fault | None:
        """Return the fault for a call, the oldest that fits."""
        for fault in self._waiting:
            if (fault.method == method) if fault.method else method in POSTS:
                fault.times -= 1
                if fault.times <= 0:
                    self._waiting.remove(fault)
                return fault
        return None
