"""What all tests share: how many examples a property gets."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "palaver",
    max_examples=int(os.environ.get("PALAVER_EXAMPLES", "200")),
    deadline=None,  # machines are shared; a slow example is not a wrong one
    derandomize="PALAVER_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("palaver")
