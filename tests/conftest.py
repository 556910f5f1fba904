"""What all tests share: how many examples a property gets, and that nothing is stored in anybody's data folder."""

import os
import signal

from hypothesis import HealthCheck, settings

from sizes import EXAMPLES, FULL

os.environ["PALAVER_DB"] = ":memory:"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs under test inherit it, and hear Ctrl-C

settings.register_profile(
    "palaver",
    max_examples=EXAMPLES,
    deadline=None,  # machines are shared; a slow example is not a wrong one
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("palaver")
