"""Someone who describes media in tests, and a describer around them."""

from collections.abc import Callable
from typing import Any

from people import NOON
from tertulia.engine.describers import Describe, Language, Makers, MediaAccess, ModelDescriber
from tertulia.engine.description_worker import DescriptionWorker
from tertulia.engine.limits import CurrentLimits
from tertulia.engine.media_descriptions import MediaDescriber
from tertulia.engine.spend_caps import SpendTracker
from tertulia.media.values import MediaOptions
from tertulia.messages import Message, Place, Quote
from tertulia.parts import Media
from tertulia.store import Store

EYES = "eyes"


class Eyes:
    """Says of each what it is, and notes what it was asked."""

    name = EYES

    def __init__(self, *says: Any) -> None:
        self.asked: list[str] = []
        self.seen: list[Media] = []
        self._says = list(says)

    async def __call__(self, media: Media) -> Any:
        self.asked.append(media.unique_id)
        self.seen.append(media)
        said = self._says.pop(0) if self._says else f"a picture of {media.unique_id}"
        if isinstance(said, BaseException):
            raise said
        return said


def a_describer(
    store: Store,
    describe: Describe | ModelDescriber | None,
    *,
    transcribe: Describe | None = None,
    per_run: int = MediaOptions().descriptions_per_run,
    spend_tracker: SpendTracker | None = None,
    language: str | Language = "",
    now: Any = lambda: NOON,
    access: MediaAccess | None = None,
    described: Callable[[Place], None] = lambda _: None,
) -> MediaDescriber:
    async def language_for(message: Message) -> str:
        return language if isinstance(language, str) else await language(message)

    makers = Makers(
        describe,
        transcribe,
        access or MediaAccess(now=now),
        spend_tracker=spend_tracker,
        limits=CurrentLimits(),
        language=language_for,
    )
    worker = DescriptionWorker(store.descriptions, makers, limits=CurrentLimits(), now=now, described=described)
    return MediaDescriber(makers, worker, per_run=per_run)


def words(message: Message | Quote) -> list[str | None]:
    """What its media show, in words."""
    return [part.rendered_text for part in message.parts if isinstance(part, Media)]
