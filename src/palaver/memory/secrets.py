"""What must not be remembered of anybody: passwords, keys, numbers of cards and papers. Pure."""

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
_DIGITS = re.compile(r"(?:\d[ -]?){9,}")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}")


def holds_secret(text: str) -> bool:
    """Whether *text* names a secret, or holds what looks like one."""
    return any(pattern.search(text) for pattern in (_NAMED, _KEY, _DIGITS, _IBAN))
