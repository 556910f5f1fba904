"""The page of a kitchen that talks on, to be looked at: `make web`."""

import asyncio
import logging
import sys
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from browser.kitchen import KITCHEN, MAYA, OLENA, TARAS, WITH_MAYA, Teller, a_kitchen, calls
from tertulia.config import WebConfig
from tertulia.messages import Author, Place
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.site import Site
from tertulia.sim.behaviours import Answer

PAUSE = 6.0  # seconds between two messages
TALK: tuple[tuple[Place, Author, str, tuple[str | Answer, ...]], ...] = (
    (KITCHEN, TARAS, "Хліб узяв, масло теж.", ()),
    (KITCHEN, TARAS, "Гряже, що ще треба на вечерю?",
     ("Буряк і сметана є. Бракує картоплі на деруни: двох кілограмів вистачить на трьох, і ще лишиться на сніданок.",)),
    (WITH_MAYA, MAYA, "Can I swap the satay for something safe?",
     ("Yes: the beet salad. Nothing in it comes near a peanut, and it is the cheapest dish on the board.",)),
    (KITCHEN, OLENA, "Гряже, чи не змінилась погода?",
     (calls("weather", place="Львів"), "Ні: чотири градуси, дрібний дощ. Парасолю все одно бери.")),
    (KITCHEN, MAYA, "I am on my way, ten minutes.", ()),
    (KITCHEN, MAYA, "Gryag, what is 575 divided by four, if Ira comes?",
     (calls("calculate", expression="575/4"), "143.75 each. Call it 144, and the cook pays the rest.")),
)  # fmt: skip


async def talk_on(teller: Teller) -> None:
    """Let people speak and be answered, again and again."""
    for place, author, text, answers in cycle(TALK):
        await teller.say(author, text, *answers, place=place)
        await asyncio.sleep(PAUSE)


async def main() -> None:
    print("four days of talk are told, in some seconds…", flush=True)
    logging.disable()  # a busy service and a broken connection are part of what is told
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kitchen.db"
        async with a_kitchen(path) as told:
            site = Site(store=told.store, now=told.clock.now, engine=told.engine, rooms=told.rooms, agent="Гряг")
            async with serve_page(site, WebConfig(port=0), store=str(path)) as page:
                print(*page.lines, "People talk on until Ctrl-C.", sep="\n", flush=True)
                await talk_on(told.teller)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
