"""StoreContract: the tests that every store passes. They need pytest and hypothesis, and no pytest plugin.

class TestMine(StoreContract):
    def stores(self, folder: Path) -> Callable[[], AbstractAsyncContextManager[StoreProtocol]]:
        return lambda: MyStore.open(folder)
"""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    *(
        f"tertulia.testing.{module}"
        for module in (
            "store_conversation_contract",
            "store_outbox_contract",
            "store_run_contract",
            "store_order_contract",
            "store_room_contract",
            "store_inspection_contract",
            "store_agent_contract",
            "store_agent_memory_contract",
            "store_memory_contract",
            "store_machine",
        )
    )
)

from tertulia.testing.store_agent_contract import AgentContract  # noqa: E402 (after the rewriting of asserts is registered)
from tertulia.testing.store_agent_memory_contract import AgentMemoryContract  # noqa: E402
from tertulia.testing.store_conversation_contract import ConversationContract  # noqa: E402
from tertulia.testing.store_inspection_contract import InspectionContract  # noqa: E402
from tertulia.testing.store_machine import MachineContract  # noqa: E402
from tertulia.testing.store_memory_contract import MemoryContract  # noqa: E402
from tertulia.testing.store_order_contract import OrderContract  # noqa: E402
from tertulia.testing.store_outbox_contract import OutboxContract  # noqa: E402
from tertulia.testing.store_room_contract import RoomContract  # noqa: E402
from tertulia.testing.store_run_contract import RunContract  # noqa: E402
from tertulia.testing.store_world import Opened  # noqa: E402

__all__ = ["StoreContract"]


class StoreContract(
    ConversationContract,
    OutboxContract,
    RunContract,
    OrderContract,
    RoomContract,
    MemoryContract,
    InspectionContract,
    AgentContract,
    AgentMemoryContract,
    MachineContract,
):
    """The tests of what the engine relies on. A subclass is called `Test…` and defines `stores`."""

    def stores(self, folder: Path) -> Callable[[], Opened]:
        """Return a function that opens a store, empty at first. Each later call opens the same one, with its rows."""
        raise NotImplementedError(f"{type(self).__name__}.stores() opens the store to test")
