"""Errors of the Gemini API, in its own words. Pure."""

from collections.abc import Sequence

from tertulia.sim import google
from tertulia.sim.errors import FAULT, ServiceError, Wire
from tertulia.sim.faults import ContextTooLong, Deadline, Internal, Overloaded, Quota, RateLimited, Rejection
from tertulia.sim.gemini.rules import GeminiRefusal, parse_body


class AuthError(ServiceError):
    """The key is missing or unknown. The caller is answered in JSON even if it asked for a stream."""


def error(status: int, message: str, *, rule: str, state: str = "", details: Sequence[Wire] = ()) -> ServiceError:
    return ServiceError(
        status, message, rule=rule, body=google.error_body(status, message, state=state, details=details)
    )


def refused(refusal: GeminiRefusal) -> ServiceError:
    """Return the error for a request that breaks a rule."""
    return error(400, refusal.message, rule=refusal.rule, details=refusal.details)


def parsed(kind: str, body: object) -> Wire:
    """Parse *body* as an object of *kind*. Raises the service's error."""
    value, refusal = parse_body(kind, body)
    if refusal:
        raise refused(refusal)
    return value


def no_key() -> AuthError:
    message = (
        "Method doesn't allow unregistered callers (callers without established identity)."
        " Please use API Key or other form of API consumer identity to call this API."
    )
    return AuthError(403, message, rule="auth", body=google.error_body(403, message))


def bad_key() -> AuthError:
    message = google.BAD_KEY
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    localized = {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": message}
    return AuthError(400, message, rule="auth", body=google.error_body(400, message, details=[info, localized]))


def no_path() -> ServiceError:
    return error(404, "Requested entity was not found.", rule="path")


def unknown_model(model: str, version: str, method: str) -> ServiceError:
    return error(404, google.unknown_model(model, version, method), rule="model")


def retired_model(model: str) -> ServiceError:
    message = (
        f"This model models/{model} is no longer available to new users."
        " Please update your code to use models/gemini-3.6-flash."
    )
    return error(404, message, rule="model")


def no_cache() -> ServiceError:
    return error(403, "CachedContent not found (or permission denied)", rule="cache")


def no_file(name: str) -> ServiceError:
    return error(403, f"You do not have permission to access the File {name} or it may not exist.", rule="file")


def file_not_active(name: str) -> ServiceError:
    return error(400, f"The File {name} is not in an ACTIVE state and usage is not allowed.", rule="file")


def too_many_tokens(count: int, limit: int, *, rule: str = "tokens") -> ServiceError:
    return error(400, google.too_many_tokens(count, limit), rule=rule)


def rejection(fault: Rejection, model: str) -> ServiceError:
    """Return the error that *fault* stands for."""
    match fault:
        case RateLimited():
            return _rate_limited(fault, model)
        case Quota():
            return error(429, google.EXHAUSTED, rule=FAULT)
        case Internal():
            return error(500, google.INTERNAL, rule=FAULT)
        case Overloaded():
            return error(503, google.OVERLOADED, rule=FAULT)
        case Deadline():
            return error(504, google.DEADLINE, rule=FAULT)
        case ContextTooLong():
            return too_many_tokens(fault.limit + 1, fault.limit, rule=FAULT)


def _rate_limited(fault: RateLimited, model: str) -> ServiceError:
    period = "Day" if fault.daily else "Minute"
    violation = {
        "quotaMetric": google.QUOTA_METRIC,
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
    wait = fault.wait(None)
    if wait is not None:
        details.append(google.retry_info(wait))
    return error(429, google.quota_exceeded(model, wait), rule=FAULT, details=details)
