"""The process of the decoder: its limits, and which module does a job.

The argument is the job as JSON, the input the bytes of the file, the output a line of JSON and behind it, for some
jobs, bytes. Before the first byte of the file is read, the process has lost the right to use more time and memory than
the job says, to write files, and to open any file or socket at all. So that a library needs none, each module does the
job once before, with a file of its own (`warm_up`): what is loaded on first use is loaded then. An empty line says that
all this is done: whatever ends the process from there on is due to the file.
"""

import ctypes
import json
import os
import re
import signal
import sys
from importlib import import_module

from tertulia.media.decoder.job import Answer, Job, Unreadable


def main() -> None:
    output = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    head, body = run(Job(**json.loads(sys.argv[1])), output)
    with os.fdopen(output, "wb") as file:
        file.write(json.dumps(head).encode() + b"\n" + body)
    os._exit(0)  # without what the libraries do at an end


def run(job: Job, output: int) -> Answer:
    """Return what a job finds; a file that cannot be decoded is a `failure`, a library that is not there `missing`."""
    end_with_bot()
    limit_process(job.cpu)
    try:
        module = import_module(f"tertulia.media.decoder.{module_of(job)}")
        module.warm_up(job)
    except ImportError as error:
        return {"missing": str(error.name)}, b""
    limit_memory(job.memory)
    os.write(output, b"\n")
    try:
        found: Answer = module.answer(job, sys.stdin.buffer.read())
    except Unreadable as error:
        return {"failure": str(error)}, b""
    except MemoryError:
        return {"failure": "it needs more memory than is allowed"}, b""
    except Exception as error:  # noqa: BLE001 (whatever a library raises for a damaged file)
        return {"failure": f"it is damaged ({reason(error)})"}, b""
    return found


def reason(error: Exception) -> str:
    """Return what a library says, without the objects it says it of."""
    text = getattr(error, "strerror", None) or str(error)
    return re.sub(r"\s*<[^<>]*>", "", text) or type(error).__name__


def module_of(job: Job) -> str:
    if job.mime == "application/pdf":
        return "pdf"
    if job.mime == "application/x-tgsticker":
        return "lottie"
    if job.mime.startswith("image/"):
        return "pictures"
    return "video_stills" if job.name == "still" else "streams"


def end_with_bot() -> None:
    """Let the kernel kill this process when the bot ends, also if the bot is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def limit_process(seconds: int) -> None:
    """Limit the time, forbid to write files, and let the bot go first, also where the machine has no memory left."""
    if sys.platform == "linux":
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    if sys.platform != "win32":
        import resource

        os.nice(5)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))  # first SIGXCPU, then SIGKILL


def limit_memory(room: int) -> None:
    """Limit the memory to what is used now and *room* more bytes, and forbid to open files and sockets."""
    if sys.platform != "win32":
        import resource

        if sys.platform == "linux":  # others do not keep such a limit
            with open("/proc/self/statm", "rb") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
