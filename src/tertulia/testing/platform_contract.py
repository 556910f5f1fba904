"""PlatformContract: the tests that every platform passes. They need pytest but no pytest plugin.

class TestMine(PlatformContract):
    def world(self) -> PlatformWorld:
        return MyWorld()
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"tertulia.testing.{module}"
        for module in ("contract_session", "incoming_contract", "media_contract", "outgoing_contract")
    )
)

from tertulia.testing.incoming_contract import IncomingContract  # noqa: E402 (after the rewriting of asserts is registered)
from tertulia.testing.media_contract import MediaContract  # noqa: E402
from tertulia.testing.outgoing_contract import OutgoingContract  # noqa: E402
from tertulia.testing.platform_world import Fault, Missing, PlatformWorld, Shown  # noqa: E402

__all__ = ["Fault", "Missing", "PlatformContract", "PlatformWorld", "Shown"]


class PlatformContract(IncomingContract, OutgoingContract, MediaContract):
    """The tests of what the engine relies on. A subclass is called `Test…` and defines `world`.

    A test of what a service cannot do is skipped, under the name of the method of the world or of the capability.
    """

    def world(self) -> PlatformWorld:
        raise NotImplementedError(f"{type(self).__name__}.world() gives the world of the platform to test")
