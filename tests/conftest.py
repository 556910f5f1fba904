"""What all tests share: a store in memory, how many examples a property gets; nothing goes to anybody's data folder."""

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import postgres
from sizes import EXAMPLES, FULL, MOST_SECONDS
from tertulia.store import Store

os.environ["TERTULIA_DB"] = ":memory:"
os.environ["OLLAMA_HOST"] = "127.0.0.1:1"  # none: an Ollama of this machine is nobody's for the tests
os.environ["XDG_CONFIG_HOME"] = os.devnull  # nobody's choices either
# No test uses TLS: one certificate is enough. Loading all of the system's takes 45 ms for each HTTP client.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("certificate.pem"))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs under test inherit it, and hear Ctrl-C

settings.register_profile(
    "tertulia",
    max_examples=EXAMPLES,
    deadline=None,  # machines are shared; a slow example is not a wrong one
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tertulia")

# Half of the time of collecting 9,000 tests would be garbage collection, and each later one would visit them all again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


if postgres.IS_CHOSEN:
    postgres.use_instead_of_memory()


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store.open(":memory:") as opened:
        yield opened


@pytest.fixture
def processor_time() -> Iterator[None]:
    """Fail a test that computes for longer than it may, however busy the machine is."""

    def fail(*_: object) -> None:
        pytest.fail(f"computed for more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
