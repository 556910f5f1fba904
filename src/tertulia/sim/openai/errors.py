"""Errors of an OpenAI-compatible server, in OpenAI's words and in those of Gemini's own endpoint. Pure."""

import math
from typing import Any

from msgspec import Struct

from tertulia.sim import google
from tertulia.sim.errors import FAULT, ServiceError
from tertulia.sim.faults import ContextTooLong, Deadline, Internal, Overloaded, Quota, RateLimited, Rejection

INVALID = "invalid_request_error"
KEY_HELP = "You can find your API key at https://platform.openai.com/account/api-keys."
USUAL_WAIT = 1.0  # seconds


class OpenAIRefusal(Struct, frozen=True):
    """A response other than 200: the rule that was broken, and the error object that says so."""

    rule: str
    status: int
    message: str
    type: str
    param: str | None
    code: str | None


def refusal(rule: str, message: str, *, param: str | None = None, code: str | None = None) -> OpenAIRefusal:
    return OpenAIRefusal(rule, 400, message, INVALID, param, code)


def mistyped(where: str) -> OpenAIRefusal:
    return refusal("type", f"Invalid type for '{where}'.", param=where, code="invalid_type")


def missing(rule: str, where: str) -> OpenAIRefusal:
    return refusal(rule, f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")


def empty_array(rule: str, where: str) -> OpenAIRefusal:
    text = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return refusal(rule, text, param=where, code="empty_array")


def refused(refusal: OpenAIRefusal, *, as_list: bool, retry_after: float | None = None) -> ServiceError:
    """Return the error with its envelope: OpenAI's object, or the list of Google's objects."""
    body: Any
    headers: dict[str, str] = {}
    if as_list:
        details = [] if retry_after is None else [google.retry_info(retry_after)]
        body = [google.error_body(refusal.status, refusal.message, details=details)]
    else:
        fields = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
        body = {"error": fields}
    if retry_after is not None and not as_list:
        headers = {
            "retry-after": str(math.ceil(retry_after)),
            "retry-after-ms": str(round(retry_after * 1000)),
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": f"{retry_after:g}s",
        }
    return ServiceError(refusal.status, refusal.message, rule=refusal.rule, body=body, headers=headers)


def no_key(*, google_words: bool) -> OpenAIRefusal:
    if google_words:
        return refusal("key", "Missing or invalid Authorization header.")
    text = (
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth"
        " (i.e. Authorization: Bearer YOUR_KEY)."
    )
    return OpenAIRefusal("key", 401, text, INVALID, None, None)


def bad_key(key: str, *, google_words: bool) -> OpenAIRefusal:
    if google_words:
        return refusal("key", google.BAD_KEY)
    masked = f"{key[:8]}****{key[-4:]}" if len(key) > 12 else "****"
    return OpenAIRefusal(
        "key", 401, f"Incorrect API key provided: {masked}. {KEY_HELP}", INVALID, None, "invalid_api_key"
    )


def no_model(model: object, *, google_words: bool) -> OpenAIRefusal:
    if not isinstance(model, str) or not model:
        return refusal("model", "you must provide a model parameter")
    text = f"The model `{model}` does not exist or you do not have access to it."
    if google_words:
        text = google.unknown_model(model.removeprefix("models/"), "v1beta", "generateContent")
    return OpenAIRefusal("model", 404, text, INVALID, None, "model_not_found")


def no_url(method: str, path: str) -> OpenAIRefusal:
    return OpenAIRefusal("url", 404, f"Invalid URL ({method} {path})", INVALID, None, None)


def wrong_method(method: str, path: str) -> OpenAIRefusal:
    hint = "(HINT: Perhaps you meant to use a different HTTP method?)"
    return OpenAIRefusal(
        "method", 405, f"Not allowed to {method} on {path}. {hint}", INVALID, None, "method_not_supported"
    )


def bad_input(where: str) -> OpenAIRefusal:
    return refusal("input", f"'$.{where}' is invalid. Please check the API reference.")


def rejection(fault: Rejection, model: str, *, as_list: bool) -> ServiceError:
    """Return the error that *fault* stands for."""
    wait = fault.wait(USUAL_WAIT) if isinstance(fault, RateLimited) else None
    refusal = _google_rejection(fault, model, wait) if as_list else _openai_rejection(fault, model, wait)
    return refused(refusal, as_list=as_list, retry_after=wait)


def _openai_rejection(fault: Rejection, model: str, wait: float | None) -> OpenAIRefusal:
    match fault:
        case RateLimited():
            text = (
                f"Rate limit reached for {model} in organization org-tertulia on requests per min (RPM): Limit 500,"
                f" Used 500, Requested 1. Please try again in {wait or 0:g}s. Visit"
                " https://platform.openai.com/account/rate-limits to learn more."
            )
            return OpenAIRefusal(FAULT, 429, text, "requests", None, "rate_limit_exceeded")
        case Quota():
            text = (
                "You exceeded your current quota, please check your plan and billing details. For more information on"
                " this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
            )
            return OpenAIRefusal(FAULT, 429, text, "insufficient_quota", None, "insufficient_quota")
        case Internal() | Deadline():
            status = 504 if isinstance(fault, Deadline) else 500
            text = "The server had an error while processing your request. Sorry about that!"
            return OpenAIRefusal(FAULT, status, text, "server_error", None, None)
        case Overloaded():
            text = "The engine is currently overloaded, please try again later"
            return OpenAIRefusal(FAULT, 503, text, "server_error", None, None)
        case ContextTooLong(limit):
            text = (
                f"This model's maximum context length is {limit} tokens. However, your messages resulted in"
                f" {limit + 1} tokens. Please reduce the length of the messages."
            )
            return OpenAIRefusal(FAULT, 400, text, INVALID, "messages", "context_length_exceeded")


def _google_rejection(fault: Rejection, model: str, wait: float | None) -> OpenAIRefusal:
    match fault:
        case RateLimited():
            status, text = 429, google.quota_exceeded(model, wait)
        case Quota():
            status, text = 429, google.EXHAUSTED
        case Internal():
            status, text = 500, google.INTERNAL
        case Overloaded():
            status, text = 503, google.OVERLOADED
        case Deadline():
            status, text = 504, google.DEADLINE
        case ContextTooLong(limit):
            status, text = 400, google.too_many_tokens(limit + 1, limit)
    return OpenAIRefusal(FAULT, status, text, INVALID, None, None)
