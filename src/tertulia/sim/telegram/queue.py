"""The updates that wait for a bot: ids, offsets, expiry and the kinds it asked for."""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

import orjson
from msgspec import Struct

from tertulia.sim.errors import Wire

KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "guest_message",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "managed_bot",
    "stopped_message_generation",
)
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
DEFAULT = frozenset(KINDS) - NOT_BY_DEFAULT

KEPT = 86_400  # seconds
FIRST_ID = 100_000_001
MOST_BYTES = 4 << 20
ENVELOPE = 50  # bytes that each update counts more
FUTURE = 10  # ids: an offset beyond is read as none
PAST = 100_000
REPLAYED = 10_000  # updates that are kept for a replay


class Update(Struct, frozen=True):
    """An update that waits."""

    id: int
    kind: str
    expires: float
    body: bytes  # JSON


class UpdateQueue:
    """The updates of one bot. Offsets are those of `getUpdates`; *changed* is called when an update comes."""

    def __init__(self, clock: Callable[[], float], changed: Callable[[], None]) -> None:
        self.allowed = DEFAULT
        self._waiting: deque[Update] = deque()  # in the order of their ids
        self._taken: deque[Update] = deque(maxlen=REPLAYED)
        self._clock = clock
        self._changed = changed
        self._next = FIRST_ID

    def allow(self, kinds: Iterable[object]) -> None:
        """Ask for these kinds from now on; none means the default ones. Unknown kinds are ignored."""
        known = frozenset(kind.lower() for kind in kinds if isinstance(kind, str)) & frozenset(KINDS)
        self.allowed = known or DEFAULT

    def add(self, kind: str, payload: Wire) -> None:
        """Add an update, unless the bot did not ask for its kind."""
        if kind in self.allowed or kind not in KINDS:
            self.add_raw(kind, {kind: payload})

    def add_raw(self, kind: str, update: Wire) -> int:
        """Add an update as it stands; return its id, which is the next one."""
        number = self._next
        self._next += 1
        body = orjson.dumps({"update_id": number} | update)
        self._waiting.append(Update(number, kind, self._clock() + KEPT, body))
        self._changed()
        return number

    def take(self, offset: int, limit: int) -> list[Update]:
        """Return the updates from *offset* on, and forget those before it.

        A negative offset counts from the end. One that is out of range is read as none: nothing is forgotten.
        """
        self._expire()
        if offset < 0:
            self._forget(len(self._waiting) + offset)
        head = self._waiting[0].id if self._waiting else self._next
        if offset > 0 and head - PAST <= offset <= self._next + FUTURE:
            while self._waiting and self._waiting[0].id < offset:
                self._forget(1)
        taken: list[Update] = []
        left = MOST_BYTES
        for update in islice(self._waiting, limit):
            left -= ENVELOPE + len(update.body)
            if left <= 0:
                break
            taken.append(update)
        return taken

    def confirm(self, update: Update) -> None:
        """Forget the first update, unless it is another: a webhook took it."""
        if self._waiting and self._waiting[0].id == update.id:
            self._forget(1)

    def clear(self) -> None:
        """Forget all that waits."""
        self._waiting.clear()

    def restore(self) -> None:
        """Let the newest of the updates that were taken wait again: a test's replay."""
        self._waiting.extendleft(reversed(self._taken))
        self._taken.clear()
        self._changed()

    def pending(self) -> int:
        """Return how many updates wait."""
        self._expire()
        return len(self._waiting)

    def _forget(self, count: int) -> None:
        for _ in range(count):
            self._taken.append(self._waiting.popleft())

    def _expire(self) -> None:
        now = self._clock()
        while self._waiting and self._waiting[0].expires <= now:
            self._waiting.popleft()
