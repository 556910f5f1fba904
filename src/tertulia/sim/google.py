"""Error texts of Google's API, as Gemini's own endpoint and its OpenAI-compatible one send them. Pure."""

from collections.abc import Sequence

from tertulia.sim.errors import Wire

STATES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
BAD_KEY = "API key not valid. Please pass a valid API key."
INTERNAL = (
    "An internal error has occurred. Please retry or report in"
    " https://developers.generativeai.google/guide/troubleshooting"
)
OVERLOADED = (
    "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later."
)
EXHAUSTED = "Resource has been exhausted (e.g. check quota)."
DEADLINE = "Deadline expired before operation could complete."
QUOTA_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"


def error_body(status: int, message: str, *, state: str = "", details: Sequence[Wire] = ()) -> Wire:
    """Return the JSON of an error; *state* is that of its status unless given."""
    error: Wire = {"code": status, "message": message, "status": state or STATES.get(status, "UNKNOWN")}
    return {"error": error | {"details": list(details)} if details else error}


def retry_info(seconds: float) -> Wire:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds:g}s"}


def quota_exceeded(model: str, retry_after: float | None) -> str:
    wait = "" if retry_after is None else f"\nPlease retry in {retry_after:g}s."
    return (
        "You exceeded your current quota, please check your plan and billing details. For more information on this"
        " error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to:"
        f" https://ai.dev/rate-limit. \n* Quota exceeded for metric: {QUOTA_METRIC}, limit: 20, model: {model}{wait}"
    )


def unknown_model(model: str, version: str, method: str) -> str:
    call = "Call ListModels" if method == "countTokens" else "Call ModelService.ListModels"
    return (
        f"models/{model} is not found for API version {version}, or is not supported for {method}."
        f" {call} to see the list of available models and their supported methods."
    )


def too_many_tokens(count: int, limit: int) -> str:
    return f"The input token count ({count}) exceeds the maximum number of tokens allowed ({limit})."
