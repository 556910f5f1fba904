"""Errors, sorted by who must act. Pure.

TertuliaError
├── CallerMustAct            the calling program: its call cannot work
│   ├── InvalidValue         a value is invalid
│   ├── NotAllowed           a person may not do this in this place
│   ├── NothingToSend        the prompt has no turn that a model can answer
│   ├── PromptRemoved        the prompts of a run are no longer stored
│   ├── RequestRefused       the service refused the request as invalid
│   │   ├── ContextTooLong   … because it has more tokens than the model takes
│   │   └── FileExists       … because a file has the name already
│   └── ScriptEnded          a scripted model has no more answers
├── OperatorMustAct          the operator: configuration, key, account
│   ├── NotInstalled         an optional package is missing
│   ├── KeyMissing           no key was given
│   ├── KeyRefused           the service does not accept the key, or not for this
│   ├── ModelUnknown         the service does not have the model
│   ├── QuotaExhausted       the quota is used up; a short wait does not help
│   │   └── SpendCapReached  … or our own daily spend cap is reached
│   ├── PlaceRefused         the service is not offered where the program runs
│   └── StoreTrouble         the store cannot be used
│       ├── StoreBusy        … another process has it open
│       │   └── StoreAway    … or its database does not answer: later it may
│       ├── StoreBroken      … it is damaged, another program's, or another bot's by now
│       ├── StoreFull        … the disk is full
│       ├── StoreRefused     … its file may not be opened or written
│       └── StoreTooNew      … a newer program has written it
├── ModelUnavailable         nobody: wait `retry_after` seconds if given, then retry
│   ├── RateLimited          too many requests or tokens
│   ├── Overloaded           the service is busy
│   ├── ServiceFault         the service failed
│   ├── TimedOut             no answer in time
│   └── ConnectionLost       no connection, or it broke off
│       └── HostUnknown      … the host's name cannot be resolved, and has not been before: one retry is enough
├── RunTimedOut              nobody: a run took too long
├── HandleGone               the engine: create it again, or continue without it
│   ├── CacheGone            the explicit cache has expired or was deleted
│   └── FileGone             the uploaded file has expired, was deleted, or is not ready
├── MediaUnavailable         the engine: media cannot be had, and go in words; later perhaps, if `for_now`
│   └── MediaUnreadable      … since a file cannot be decoded
├── SendingFailed            the engine: a reply was not sent
│   ├── NotSent              … retry, after `retry_after` seconds if given
│   └── SendRefused          … and never will be
└── ResponseUnreadable       us: the answer of the service cannot be decoded
    └── AnswerUnfit          … or twice does not fit the answer type
"""

from tertulia.redaction import redact_keys

LONGEST_WAIT = 86_400.0  # seconds; longer waits are ignored


class TertuliaError(Exception):
    """The root of everything Tertulia raises on purpose."""


class CallerMustAct(TertuliaError):
    pass


class InvalidValue(CallerMustAct, ValueError):
    pass


class NotAllowed(CallerMustAct):
    pass


class NothingToSend(CallerMustAct):
    pass


class PromptRemoved(CallerMustAct):
    pass


class RequestRefused(CallerMustAct):
    pass


class ContextTooLong(RequestRefused):
    pass


class FileExists(RequestRefused):
    pass


class ScriptEnded(CallerMustAct):
    pass


class OperatorMustAct(TertuliaError):
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
    """The daily spend cap is reached; no model is asked until tomorrow."""


class PlaceRefused(OperatorMustAct):
    pass


class StoreTrouble(OperatorMustAct):
    pass


class StoreBusy(StoreTrouble):
    pass


class StoreAway(StoreBusy):
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
    """Return the seconds to wait, as a service asked for; None if that is no number, negative or too long."""
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 <= asked <= LONGEST_WAIT:
        return None
    return float(asked)


class ModelUnavailable(TertuliaError):
    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = seconds_to_wait(retry_after)  # as the service asked; None if it did not


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


class HostUnknown(ConnectionLost):
    pass


class RunTimedOut(TertuliaError):
    pass


class HandleGone(TertuliaError):
    pass


class CacheGone(HandleGone):
    pass


class FileGone(HandleGone):
    def __init__(self, message: str, *, file: str = "", for_now: bool = False) -> None:
        super().__init__(message)
        self.file = file  # its id or URI, if the service names it
        self.for_now = for_now  # whether it is not ready yet


class MediaUnavailable(TertuliaError):
    def __init__(self, message: str, *, for_now: bool = False) -> None:
        super().__init__(message)
        self.for_now = for_now  # whether another attempt may succeed


class MediaUnreadable(MediaUnavailable):
    pass


class SendingFailed(TertuliaError):
    pass


class NotSent(SendingFailed):
    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = seconds_to_wait(retry_after)  # as the platform asked; None if it did not


class SendRefused(SendingFailed):
    def __init__(self, message: str, *, left: bool = False) -> None:
        super().__init__(message)
        self.left = left  # whether nothing more can be sent to the place: we were removed, or blocked


class ResponseUnreadable(TertuliaError):
    pass


class AnswerUnfit(ResponseUnreadable):
    pass


def reason_of(error: BaseException) -> str:
    """Return an error as words that may be stored and shown, without keys; one that is not ours with its type."""
    return redact_keys(str(error) if isinstance(error, TertuliaError) else f"{type(error).__name__}: {error}")
