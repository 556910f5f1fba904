"""A bot with rooms and its page, in a process forked for each life; it lives until it is killed."""

from datetime import UTC, datetime
from functools import partial

from msgspec import Struct, json

from lives import fork_lives
from numbered_echo import Echo
from tertulia import Behavior, Engine, Store
from tertulia.config import WebConfig
from tertulia.context.values import Persona
from tertulia.engine.limits import Limits
from tertulia.platforms.web import page  # noqa: F401 (imported once, before the forks)
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.platforms.web.site import RoomLimits, Site, StreamLimits

PIECE = 0.002  # seconds between two pieces of an answer
WORDS = 20  # in a piece
NAME = "Gryag"


class Life(Struct, frozen=True, kw_only=True):
    """What a child is told."""

    path: str
    port: int
    tokens: str  # beside this path


def answer_to(number: int) -> str:
    """An answer of one to four paragraphs."""
    return "\n\n".join(f"answer {number}.{part}{' word' * 200}" for part in range(number % 4 + 1))


async def live(life: Life) -> None:
    behavior, limits = Behavior(debounce=0.0, max_resumes=100_000), Limits(messages=100_000)
    now = partial(datetime.now, UTC)
    async with Store.open(life.path) as store:
        rooms = RoomPlatform(store.rooms, store.media, now=now, name=NAME)
        engine = Engine(
            store,
            Echo(answer_to, words=WORDS, pause=PIECE),
            [rooms],
            persona=Persona(name=NAME),
            behavior=behavior,
            limits=limits,
        )
        site = Site(
            store=store,
            now=now,
            engine=engine,
            rooms=rooms,
            agent=NAME,
            streams=StreamLimits(most=1_000, tick=0.02),
            room_limits=RoomLimits(writes=1_000),
        )
        async with serve_page(site, WebConfig(port=life.port), store=life.tokens):
            await engine.run()


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))
