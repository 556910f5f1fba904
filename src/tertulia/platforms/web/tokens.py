"""Tokens of the page: one for each role, in a file beside the store that only its owner may read."""

import hashlib
import hmac
import logging
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe

from tertulia.config import IN_MEMORY
from tertulia.errors import InvalidValue
from tertulia.files import replace_atomically
from tertulia.platforms.web.roles import TOKEN_ROLES, Role
from tertulia.store_url import is_url, masked

log = logging.getLogger(__name__)

SUFFIX = "-page-tokens"
BITS = 256
MAX_FILE = 4_096  # bytes
_LINE = re.compile(r"(\w+) ([A-Za-z0-9_-]{43})")
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def token_path(store: str) -> Path:
    """Return where the tokens of a store are: beside its file; of one without a file in the data folder."""
    if not is_url(store) and store != IN_MEMORY:
        return Path(f"{os.path.realpath(store)}{SUFFIX}")
    from platformdirs import user_data_path

    name = hashlib.sha256(masked(store).encode()).hexdigest()[:16]
    return user_data_path("tertulia") / f"{name}{SUFFIX}"


class TokenFile:
    """The tokens as the file has them now. They are made where it is missing, and in place of what others could read.

    Who removes the file, or changes it, ends every session that began with another token.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: object = None
        self._tokens: dict[Role, str] = {}

    def open(self) -> None:
        """Read the file, or make it."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._read()
        except OSError as error:
            raise InvalidValue(f"the tokens of the page, {self.path}: {error.strerror or error}") from error

    @property
    def tokens(self) -> dict[Role, str]:
        """The token of each role."""
        with suppress(OSError):  # a full disk: the tokens stay as they were
            self._read()
        return self._tokens

    def role_of(self, given: str) -> Role | None:
        """Return the role whose token is given. It takes as long for a wrong token as for a right one."""
        found: Role | None = None
        for role, token in self.tokens.items():
            if hmac.compare_digest(_digest(given), _digest(token)):
                found = role
        return found

    def _read(self) -> None:
        if (stamp := _stamp(self.path)) == self._seen and stamp is not None:
            return
        tokens = _parse(self.path)
        if tokens is None:
            tokens = {role: token_urlsafe(BITS // 8) for role in TOKEN_ROLES}
            if os.path.islink(self.path):
                self.path.unlink()
            replace_atomically(self.path, "".join(f"{role} {token}\n" for role, token in tokens.items()).encode())
        self._tokens, self._seen = tokens, _stamp(self.path)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _stamp(path: Path) -> object:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def _parse(path: Path) -> dict[Role, str] | None:
    """Return the tokens of a file; None if it has not all, or others can read it."""
    try:
        number = os.open(path, os.O_RDONLY | _NO_LINK)
    except OSError:
        return None
    with open(number, encoding="ascii", errors="replace") as file:
        found = os.fstat(number)
        is_ours = os.name != "posix" or found.st_uid == os.geteuid()
        if not stat.S_ISREG(found.st_mode) or not is_ours or (os.name == "posix" and found.st_mode & 0o077):
            log.warning("%s could be read by others: its tokens are replaced", path)
            return None
        found_lines = map(_LINE.fullmatch, file.read(MAX_FILE).splitlines())
        lines: dict[str, str] = {line[1]: line[2] for line in found_lines if line}
    return {role: lines[role] for role in TOKEN_ROLES} if set(TOKEN_ROLES) <= set(lines) else None
