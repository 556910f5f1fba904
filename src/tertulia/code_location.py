"""Code location: the line of a user's own file in which something happens."""

import os
import sysconfig
import traceback
from collections.abc import Iterable
from types import FrameType

_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_NOT_THEIRS = tuple(
    os.path.join(path, "") for path in {os.path.dirname(__file__), *map(sysconfig.get_path, _PATHS)}
)  # Tertulia, the standard library and what is installed


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that runs a user's own file; None if there is none."""
    return _innermost(one for one, _ in traceback.walk_stack(frame)) if frame else None


def user_line(frame: FrameType | None) -> str:
    """Return the line of a user's own file that calls *frame*; empty if none does."""
    found = user_frame(frame)
    return location(found) if found else ""


def location(frame: FrameType) -> str:
    """Return where a frame is: `wall.py:37`."""
    return code_location(frame.f_code.co_filename, frame.f_lineno)


def code_location(path: str, line: int) -> str:
    """`wall.py:37`; the path is relative where the file is in the current folder."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the folder was removed
        here = ""
    return f"{path.removeprefix(here)}:{line}"


def error_location(error: BaseException) -> str:
    """Return the last line of a user's own file that an error came through; empty if it came through none."""
    steps = dict(traceback.walk_tb(error.__traceback__))
    found = _innermost(reversed(steps))
    return code_location(found.f_code.co_filename, steps[found]) if found else ""


def _innermost(frames: Iterable[FrameType]) -> FrameType | None:
    """Return the first frame of a user's own file; *frames* begin with the innermost."""
    return next((one for one in frames if not one.f_code.co_filename.startswith((*_NOT_THEIRS, "<"))), None)
