"""The errors a server answers with, in OpenAI's words and in those of Gemini's own endpoint. Pure."""

import math
from typing import Any

from palaver.sim.openai.faults import ContextTooLong, Internal, Overloaded, Quota, RateLimited, Rejection
from palaver.sim.openai.refusals import Refusal

STATUSES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
INVALID = "invalid_request_error"
QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error,"
)
KEY_HELP = "You can find your API key at https://platform.openai.com/account/api-keys."


def body_of(refusal: Refusal, *, as_list: bool, retry_after: float | None = None) -> Any:
    """The envelope of an error: OpenAI's object, or the list of Google's objects."""
    if not as_list:
        fields = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
        return {"error": fields}
    error = {"code": refusal.status, "message": refusal.message, "status": STATUSES.get(refusal.status, "UNKNOWN")}
    if retry_after is not None:
        delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after:g}s"}
        return [{"error": error | {"details": [delay]}}]
    return [{"error": error}]


def retry_headers(fault: Rejection) -> dict[str, str]:
    if not isinstance(fault, RateLimited) or fault.retry_after is None:
        return {}
    return {
        "retry-after": str(math.ceil(fault.retry_after)),
        "retry-after-ms": str(round(fault.retry_after * 1000)),
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": f"{fault.retry_after:g}s",
    }


def no_key(*, google: bool) -> Refusal:
    if google:
        return Refusal("key", 400, "Missing or invalid Authorization header.", INVALID, None, None)
    text = (
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth"
        " (i.e. Authorization: Bearer YOUR_KEY)."
    )
    return Refusal("key", 401, text, INVALID, None, None)


def bad_key(key: str, *, google: bool) -> Refusal:
    if google:
        return Refusal("key", 400, "API key not valid. Please pass a valid API key.", INVALID, None, None)
    masked = f"{key[:8]}****{key[-4:]}" if len(key) > 12 else "****"
    return Refusal("key", 401, f"Incorrect API key provided: {masked}. {KEY_HELP}", INVALID, None, "invalid_api_key")


def no_model(model: object, *, google: bool) -> Refusal:
    if not isinstance(model, str) or not model:
        return Refusal("model", 400, "you must provide a model parameter", INVALID, None, None)
    if google:
        text = (
            f"models/{model.removeprefix('models/')} is not found for API version v1beta, or is not supported for"
            " generateContent. Call ModelService.ListModels to see the list of available models and their supported"
            " methods."
        )
    else:
        text = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal("model", 404, text, INVALID, None, "model_not_found")


def no_url(method: str, path: str) -> Refusal:
    return Refusal("url", 404, f"Invalid URL ({method} {path})", INVALID, None, None)


def wrong_method(method: str, path: str) -> Refusal:
    hint = "(HINT: Perhaps you meant to use a different HTTP method?)"
    return Refusal("method", 405, f"Not allowed to {method} on {path}. {hint}", INVALID, None, "method_not_supported")


def bad_input(where: str) -> Refusal:
    return Refusal("input", 400, f"'$.{where}' is invalid. Please check the API reference.", INVALID, None, None)


def script_ended(text: str) -> Refusal:
    return Refusal("script", 500, text, "server_error", None, None)


def rejection(fault: Rejection, model: str, *, google: bool) -> Refusal:
    """The error that a fault stands for."""
    return _googles(fault, model) if google else _openais(fault, model)


def _openais(fault: Rejection, model: str) -> Refusal:
    match fault:
        case RateLimited(seconds):
            text = (
                f"Rate limit reached for {model} in organization org-palaver on requests per min (RPM): Limit 500, Used"
                f" 500, Requested 1. Please try again in {seconds or 0:g}s. Visit"
                " https://platform.openai.com/account/rate-limits to learn more."
            )
            return Refusal("fault", 429, text, "requests", None, "rate_limit_exceeded")
        case Quota():
            text = f"{QUOTA} read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
            return Refusal("fault", 429, text, "insufficient_quota", None, "insufficient_quota")
        case Internal():
            text = "The server had an error while processing your request. Sorry about that!"
            return Refusal("fault", 500, text, "server_error", None, None)
        case Overloaded():
            text = "The engine is currently overloaded, please try again later"
            return Refusal("fault", 503, text, "server_error", None, None)
        case ContextTooLong(limit):
            text = (
                f"This model's maximum context length is {limit} tokens. However, your messages resulted in"
                f" {limit + 1} tokens. Please reduce the length of the messages."
            )
            return Refusal("fault", 400, text, INVALID, "messages", "context_length_exceeded")


def _googles(fault: Rejection, model: str) -> Refusal:
    match fault:
        case RateLimited(seconds):
            metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
            wait = "" if seconds is None else f"\nPlease retry in {seconds:g}s."
            text = (
                f"{QUOTA} head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage,"
                f" head to: https://ai.dev/rate-limit. \n* Quota exceeded for metric: {metric}, limit: 20, model:"
                f" {model}{wait}"
            )
            return Refusal("fault", 429, text, INVALID, None, None)
        case Quota():
            return Refusal("fault", 429, "Resource has been exhausted (e.g. check quota).", INVALID, None, None)
        case Internal():
            text = (
                "An internal error has occurred. Please retry or report in"
                " https://developers.generativeai.google/guide/troubleshooting"
            )
            return Refusal("fault", 500, text, INVALID, None, None)
        case Overloaded():
            text = (
                "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try"
                " again later."
            )
            return Refusal("fault", 503, text, INVALID, None, None)
        case ContextTooLong(limit):
            text = f"The input token count ({limit + 1}) exceeds the maximum number of tokens allowed ({limit})."
            return Refusal("fault", 400, text, INVALID, None, None)
