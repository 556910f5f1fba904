"""Things that go wrong on demand, as they go wrong with the service."""

from typing import Any

from msgspec import Struct

from palaver.sim.gemini.errors import ServiceError

Wire = dict[str, Any]

_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error,"
    " head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to:"
    " https://ai.dev/rate-limit. \n* Quota exceeded for metric:"
    " generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: {model}"
)


class RateLimited(Struct, frozen=True, kw_only=True):
    """429; with `RetryInfo` if it says when to come back."""

    retry_after: float | None = None
    daily: bool = False


class Internal(Struct, frozen=True):
    """500."""


class Overloaded(Struct, frozen=True):
    """503."""


class Deadline(Struct, frozen=True):
    """504."""


class Hang(Struct, frozen=True):
    """No answer for some seconds, then the usual one."""

    seconds: float = 3600.0


class CutStream(Struct, frozen=True, kw_only=True):
    """The connection is dropped in a stream after some chunks."""

    after: int = 1


class ErrorFrame(Struct, frozen=True, kw_only=True):
    """An error in the place of a stream's chunk, after some chunks."""

    after: int = 1


class UsageOnlyLast(Struct, frozen=True):
    """A stream with one more chunk at its end, with usage and no content."""


class Empty(Struct, frozen=True):
    """A candidate that stops without parts."""


class EmptyCandidates(Struct, frozen=True):
    """No candidates at all."""


class MaxTokens(Struct, frozen=True):
    """Thinking used up all output tokens."""


class Safety(Struct, frozen=True):
    """The answer is held back."""


class BlockedPrompt(Struct, frozen=True):
    """The prompt is refused."""

    reason: str = "PROHIBITED_CONTENT"


class MalformedFunctionCall(Struct, frozen=True):
    """The model wrote a call nobody can read."""


class Finish(Struct, frozen=True):
    """The usual answer, with this finish reason."""

    reason: str


Refusing = RateLimited | Internal | Overloaded | Deadline
Breaking = CutStream | ErrorFrame | UsageOnlyLast
Emptying = Empty | EmptyCandidates | MaxTokens | Safety | BlockedPrompt | MalformedFunctionCall
REFUSING = (RateLimited, Internal, Overloaded, Deadline)
BREAKING = (CutStream, ErrorFrame, UsageOnlyLast)
EMPTYING = (Empty, EmptyCandidates, MaxTokens, Safety, BlockedPrompt, MalformedFunctionCall)
Fault = Refusing | Breaking | Emptying | Hang | Finish


def error_of(fault: Refusing, model: str) -> ServiceError:
    """The error *fault* stands for."""
    match fault:
        case RateLimited():
            return _rate_limited(fault, model)
        case Internal():
            return internal()
        case Overloaded():
            message = (
                "This model is currently experiencing high demand."
                " Spikes in demand are usually temporary. Please try again later."
            )
            return ServiceError(503, message, rule="fault")
        case Deadline():
            return ServiceError(504, "Deadline expired before operation could complete.", rule="fault")


def internal() -> ServiceError:
    message = (
        "An internal error has occurred. Please retry or report in"
        " https://developers.generativeai.google/guide/troubleshooting"
    )
    return ServiceError(500, message, rule="fault")


def _rate_limited(fault: RateLimited, model: str) -> ServiceError:
    message = _QUOTA.format(model=model)
    period = "Day" if fault.daily else "Minute"
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    violation = {
        "quotaMetric": metric,
        "quotaId": f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": "20",
    }
    link = {
        "description": "Learn more about Gemini API quotas",
        "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
    }
    details: list[Wire] = [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [link]},
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
    ]
    if fault.retry_after is not None:
        message += f"\nPlease retry in {fault.retry_after:g}s."
        delay = f"{fault.retry_after:g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return ServiceError(429, message, rule="fault", details=details)


def candidate_of(fault: Emptying) -> Wire:
    """The response *fault* stands for, without usage."""
    match fault:
        case Empty():
            return {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}]}
        case EmptyCandidates():
            return {}
        case MaxTokens():
            return {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]}
        case Safety():
            rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
            return {"candidates": [{"content": {}, "finishReason": "SAFETY", "safetyRatings": [rating]}]}
        case BlockedPrompt():
            return {"promptFeedback": {"blockReason": fault.reason}}
        case MalformedFunctionCall():
            message = "Malformed function call: print(default_api.look("
            return {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message, "index": 0}]}


class Faults:
    """The faults to come, each for as many requests as it was asked for."""

    def __init__(self) -> None:
        self._coming: list[Fault] = []

    def add(self, fault: Fault, times: int) -> None:
        self._coming += [fault] * times

    def take(self, kinds: tuple[type[Fault], ...], *, only: tuple[type[Fault], ...]) -> Fault | None:
        """The next fault of one of *kinds*, if it is also one of *only*."""
        for place, fault in enumerate(self._coming):
            if isinstance(fault, kinds):
                return self._coming.pop(place) if isinstance(fault, only) else None
        return None
