"""What can go wrong, sorted by who must act. Pure.

PalaverError
├── CallerMustAct            the program that called us asks for something that cannot be
│   ├── InvalidValue         a value that no service could take
│   ├── NotAllowed           a person may not do this where they are
│   ├── NothingToSend        no turn is left that a model could answer
│   ├── RequestRefused       the service says the request is not legal
│   │   └── ContextTooLong   … because it holds more tokens than the model takes
│   └── ScriptEnded          a scripted model was asked once more than it has answers
├── OperatorMustAct          whoever runs the program: configuration, key, account
│   ├── NotInstalled         an optional package is missing
│   ├── KeyMissing           no key was given
│   ├── KeyRefused           the service does not know the key, or it may not do this
│   ├── ModelUnknown         the service has no such model, or no longer
│   ├── QuotaExhausted       the plan's quota is used up for longer than waiting helps
│   │   └── SpendCapReached  … or what may be spent in a day, by a cap of our own
│   ├── PlaceRefused         the service is not offered where the program runs
│   └── StoreTrouble         the store cannot be used
│       ├── StoreBusy        … another process has it open
│       ├── StoreBroken      … its file is damaged, or another program's
│       ├── StoreFull        … it has no room left to write
│       ├── StoreRefused     … its file may not be opened or written
│       └── StoreTooNew      … a newer program has written it
├── ModelUnavailable         nobody: wait `retry_after` seconds where given, then ask again
│   ├── RateLimited          too many requests or tokens just now
│   ├── Overloaded           the service is busy
│   ├── ServiceFault         the service failed inside
│   ├── TimedOut             no answer in time
│   └── ConnectionLost       no connection, or it broke off
├── RunTimedOut              nobody: a run took longer than it may
├── HandleGone               the engine: make the thing again and go on without it meanwhile
│   ├── CacheGone            the explicit cache has expired or was deleted
│   └── FileGone             the uploaded file has expired, was deleted, or is not ready
├── SendingFailed            the engine: a reply did not go out
│   ├── NotSent              … and may later: wait `retry_after` seconds where given, then send it again
│   └── SendRefused          … and never will
└── ResponseUnreadable       us: the service answered something we cannot read
    └── AnswerUnfit          … or the model something that does not fit what was asked for, twice
"""

LONGEST_WAIT = 86_400.0  # seconds; who asks for more does not know


class PalaverError(Exception):
    """The root of everything Palaver raises on purpose."""


class CallerMustAct(PalaverError):
    pass


class InvalidValue(CallerMustAct, ValueError):
    pass


class NotAllowed(CallerMustAct):
    pass


class NothingToSend(CallerMustAct):
    pass


class RequestRefused(CallerMustAct):
    pass


class ContextTooLong(RequestRefused):
    pass


class ScriptEnded(CallerMustAct):
    pass


class OperatorMustAct(PalaverError):
    pass


class NotInstalled(OperatorMustAct):
    pass


class KeyMissing(OperatorMustAct):
    pass


class KeyRefused(OperatorMustAct):
    pass


class ModelUnknown(OperatorMustAct):
    pass


class QuotaExhausted(OperatorMustAct):
    pass


class SpendCapReached(QuotaExhausted):
    """What may be spent in a day is spent: a cap of our own, and no model is asked until tomorrow."""


class PlaceRefused(OperatorMustAct):
    pass


class StoreTrouble(OperatorMustAct):
    pass


class StoreBusy(StoreTrouble):
    pass


class StoreBroken(StoreTrouble):
    pass


class StoreFull(StoreTrouble):
    pass


class StoreRefused(StoreTrouble):
    pass


class StoreTooNew(StoreTrouble):
    pass


def seconds_to_wait(asked: object) -> float | None:
    """The seconds that somebody asks to wait; None where nobody could: for no number, a negative or endless one."""
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 <= asked <= LONGEST_WAIT:
        return None
    return float(asked)


class ModelUnavailable(PalaverError):
    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = seconds_to_wait(retry_after)  # as the service asked; None when it did not say


class RateLimited(ModelUnavailable):
    pass


class Overloaded(ModelUnavailable):
    pass


class ServiceFault(ModelUnavailable):
    pass


class TimedOut(ModelUnavailable):
    pass


class ConnectionLost(ModelUnavailable):
    pass


class RunTimedOut(PalaverError):
    pass


class HandleGone(PalaverError):
    pass


class CacheGone(HandleGone):
    pass


class FileGone(HandleGone):
    def __init__(self, message: str, *, file: str = "", for_now: bool = False) -> None:
        super().__init__(message)
        self.file = file  # its id or address, where the service says which
        self.for_now = for_now  # whether it is only not ready yet


class SendingFailed(PalaverError):
    pass


class NotSent(SendingFailed):
    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = seconds_to_wait(retry_after)  # as the platform asked; None when it did not say


class SendRefused(SendingFailed):
    pass


class ResponseUnreadable(PalaverError):
    pass


class AnswerUnfit(ResponseUnreadable):
    pass
