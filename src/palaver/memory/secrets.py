"""What must not be remembered of anybody, nor logged: passwords, keys, numbers of cards and papers. Pure."""

import re

_NAMED = re.compile(
    r"\b(?:passwords?|passphrase|passcode|pin(?:[- ]?code)?|cvv|cvc|seed phrase|private key|secret key|api[ _-]?key|"
    r"access token|auth token|2fa|otp|ssn|social security|credit card|card number|iban|"
    r"парол\w*|пін(?:-?код\w*)?|секретн\w+ ключ\w*|номер\w* карт\w+|паспорт\w*|іпн|рнокпп|кодов\w+ "
    r"слов\w+|пароль|passwort|kennwort|"
    r"hasło)\b",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AIza|AKIA|ya29|eyJ)[-_]?[A-Za-z0-9_-]{12,}|-----BEGIN|"
    r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{24,}\b|\b\d{6,}:[A-Za-z0-9_-]{20,}"
)
_GIVEN = re.compile(  # in an address: a name and password, or a field that is called so
    r"(?<=://)[^/@\s]+(?=@)|(?i:(?<=[?&])([\w-]*(?:key|token|secret|auth|password|signature)[\w-]*)=[^&\s'\"]+)"
)
_DIGITS = re.compile(r"(?:\d[ -]?){9,}")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}")


def holds_secret(text: str) -> bool:
    """Whether *text* names a secret, or holds what looks like one."""
    return any(pattern.search(text) for pattern in (_NAMED, _KEY, _DIGITS, _IBAN))


def without_keys(text: str) -> str:
    """*text* with stars for what looks like a key, and for what an address holds to prove who asks."""
    return _KEY.sub("***", _GIVEN.sub(lambda found: f"{found[1]}=***" if found[1] else "***", text))
