"""Removes keys and passwords from texts that are logged or shown. Pure."""

import re

_OUR_ID = r"(?:[a-z]+-)*[0-9a-f]{20}(?:[-.]|(?![A-Za-z0-9_]))"  # of a run, or of its tasks, calls and deliveries
API_KEY = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AIza|AKIA|ya29|eyJ)[-_]?[A-Za-z0-9_-]{12,}|-----BEGIN|"
    rf"(?<![A-Za-z0-9_-])(?!{_OUR_ID})(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{{24,}}\b|"
    r"\b\d{6,}:[A-Za-z0-9_-]{20,}"
)
_URL_CREDENTIALS = re.compile(  # user:password@, or the value of a query field such as `api_key`
    r"(?<=://)[^/?#\s]+(?=@)|(?i:(?<=[?&])([\w-]*(?:key|token|secret|auth|password|signature)[\w-]*)=[^&\s'\"]+)"
)


def redact_keys(text: str) -> str:
    """Replace what looks like an API key, and credentials in URLs, with `***`. Ids of ours stay."""
    return API_KEY.sub("***", _URL_CREDENTIALS.sub(lambda found: f"{found[1]}=***" if found[1] else "***", text))
