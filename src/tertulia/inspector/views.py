"""A view of a place as it is shown elsewhere: without bytes, keys, marks and words of blocked people."""

from msgspec.structs import replace

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.engine.view import ViewChange, ViewMessage
from tertulia.inspector.runs import tool_shown
from tertulia.inspector.shown import Blocked, Mask, shown_message
from tertulia.messages import Place
from tertulia.run.journal import RunProgress


async def shown_change(store: StoreProtocol, place: Place, change: ViewChange) -> ViewChange:
    """Return a change as it is shown; `engine.view.whole` gives that of a whole view."""
    if change.is_empty:
        return change
    blocked = await store.inspection.blocked()
    mask = Mask(await store.place_settings.delimiter(place))
    return replace(
        change,
        messages=tuple(_message(one, blocked, mask) for one in change.messages),
        runs=tuple(_run(one, mask) for one in change.runs),
        deliveries=tuple(replace(one, text=mask.text(one.text)) for one in change.deliveries),
    )


def _message(one: ViewMessage, blocked: Blocked, mask: Mask) -> ViewMessage:
    turns = tuple(map(mask.turn, one.turns))
    message = shown_message(one.message, blocked)
    namespace = message.place.author_namespace
    reactions = tuple(r for r in one.reactions if not message.deleted and (namespace, r.author.id) not in blocked)
    return replace(one, message=message, turns=turns, reactions=reactions)


def _run(one: RunProgress, mask: Mask) -> RunProgress:
    return replace(one, tools=tuple(tool_shown(tool, mask) for tool in one.tools))
