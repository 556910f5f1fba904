"""What of memory an agent sees. Pure."""

from msgspec import Struct

from tertulia.messages import Place


class SeenBy(Struct, frozen=True, kw_only=True):
    """An agent that reads memory. Of direct chats it sees only what was said while it was there."""

    agent: str
    present: bool = False  # of groups too
    own: bool = False  # of facts and summaries only its own, not those that all agents share

    def is_limited_in(self, place: Place) -> bool:
        """Return whether it sees only what was said in a place while it was there."""
        return self.present or place.kind == "direct"
