"""The errors of the service, in its own words."""

from typing import Any

import orjson

from palaver.sim.gemini.rules import Refusal

Wire = dict[str, Any]

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


class ServiceError(Exception):
    """An answer that is no success; *rule* names the rule it comes from, if one does."""

    def __init__(
        self, status: int, message: str, *, state: str = "", rule: str = "", details: list[Wire] | None = None
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.state = state or STATES[status]
        self.rule = rule
        self.details = details or []

    @property
    def body(self) -> bytes:
        """The error in its envelope."""
        error: Wire = {"code": self.status, "message": self.message, "status": self.state}
        if self.details:
            error["details"] = self.details
        return orjson.dumps({"error": error}, option=orjson.OPT_INDENT_2)


class AuthError(ServiceError):
    """A caller the service does not know; it stays JSON even where a stream was asked for."""


def refused(refusal: Refusal) -> ServiceError:
    """The error for a request that breaks a rule."""
    return ServiceError(
        refusal.status,
        refusal.message,
        state=refusal.state,
        rule=refusal.rule,
        details=list(refusal.details),
    )


def no_key() -> AuthError:
    return AuthError(
        403,
        "Method doesn't allow unregistered callers (callers without established identity)."
        " Please use API Key or other form of API consumer identity to call this API.",
        rule="auth",
    )


def bad_key() -> AuthError:
    message = "API key not valid. Please pass a valid API key."
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    localized = {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": message}
    return AuthError(400, message, rule="auth", details=[info, localized])


def unknown_model(model: str, version: str, method: str) -> ServiceError:
    call = "Call ListModels" if method == "countTokens" else "Call ModelService.ListModels"
    return ServiceError(
        404,
        f"models/{model} is not found for API version {version}, or is not supported for {method}."
        f" {call} to see the list of available models and their supported methods.",
        rule="model",
    )


def retired_model(model: str) -> ServiceError:
    return ServiceError(
        404,
        f"This model models/{model} is no longer available to new users."
        " Please update your code to use models/gemini-3.6-flash.",
        rule="model",
    )


def no_cache() -> ServiceError:
    return ServiceError(403, "CachedContent not found (or permission denied)", rule="cache")


def no_file(name: str) -> ServiceError:
    message = f"You do not have permission to access the File {name} or it may not exist."
    return ServiceError(403, message, rule="file")


def file_not_active(name: str) -> ServiceError:
    message = f"The File {name} is not in an ACTIVE state and usage is not allowed."
    return ServiceError(400, message, rule="file")


def too_many_tokens(count: int, limit: int) -> ServiceError:
    message = f"The input token count ({count}) exceeds the maximum number of tokens allowed ({limit})."
    return ServiceError(400, message, rule="tokens")
