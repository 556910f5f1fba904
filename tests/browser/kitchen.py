"""A kitchen with four people and a bot: some days of talk, told in seconds. Only the words of the model are scripted.

The engine, the store, its memory, the tools, the service and its cache are real. Time runs ten times as fast while it
is told.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fakes import Files
from tertulia.context.gather import ContextOptions
from tertulia.context.values import Persona
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Cap, Limits
from tertulia.engine.memory import Memory
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models import Gemini
from tertulia.models.base import Response
from tertulia.parts import Media, Part, Text
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.sim import GeminiSim, faults
from tertulia.sim.behaviours import Answer, Ask, Call
from tertulia.store import Store
from tertulia.tools.calculator import calculate
from tertulia.tools.reminders import reminder_tool
from tertulia.turns import Prompt

SPEED = 10.0
KEY = "AIzaSyA1234567890abcdefghijklmnopqrstuv"
MODEL, NEXT = "gemini-3-flash-preview", "gemini-3.5-flash-lite"  # the first caches from 1,024 tokens on

OLENA = Author(id="1001", name="Olena", username="olena", language="uk")
TARAS = Author(id="1002", name="Taras", username="taras", language="uk")
MAYA = Author(id="1003", name="Maya", username="maya", language="en")
IRA = Author(id="1004", name="Ira", language="uk")
KITCHEN = Place(platform="telegram", id="-100200", kind="group", title="Кухня")
ODESA = Place(platform="telegram", id="-100300", kind="group", title="Odesa 2027")
WITH_TARAS, WITH_MAYA, WITH_OLENA = (
    Place(platform="telegram", id=person.id, kind="direct", title=person.name) for person in (TARAS, MAYA, OLENA)
)

PERSONA = Persona(
    name="Гряг",
    name_pattern="гряг*|гряже|gryag",
    text=(
        "You are Гряг, the fourth flatmate: dry, quick, kind under it. You live in the kitchen of Olena, Taras and "
        "Maya and have opinions about soup. You answer in the language that you are spoken to in."
    ),
    rules=(
        "Be brief: one or two sentences, no lists unless asked. Count with the tool and never in your head. Look up "
        "trains and weather before you speak about them. Say what you do not know. Never tell what somebody said in "
        "a direct chat. Remember allergies when it is about food."
    ),
)


class DayClock:
    """A clock that runs fast, and can be set forward."""

    def __init__(self, start: datetime) -> None:
        self._start, self._since, self._speed = start, time.monotonic(), SPEED

    def now(self) -> datetime:
        return self._start + timedelta(seconds=(time.monotonic() - self._since) * self._speed)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed)

    def set(self, moment: datetime, *, speed: float = SPEED) -> None:
        self._start, self._since, self._speed = max(moment, self.now()), time.monotonic(), speed


class Thinking(Gemini):
    """A model that takes a while, as models do."""

    def __init__(self, name: str, clock: DayClock, url: str) -> None:
        super().__init__(name, key=KEY, base_url=url)
        self._clock = clock
        self._pauses = cycle((0.6, 1.1, 0.8, 1.4, 0.7))

    async def respond(self, prompt: Prompt) -> Response:
        await self._clock.sleep(next(self._pauses))
        return await super().respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        await self._clock.sleep(next(self._pauses))
        async for piece in super().stream(prompt):
            yield piece
            await self._clock.sleep(0.05)


class InTurn:
    """Gives what it was told to say, one answer after another."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def answer(self, ask: Ask) -> Answer:
        return self.answers.pop(0) if self.answers else Answer(text="Ще не знаю, що на це сказати.", thoughts="")


async def weather(place: str) -> dict[str, Any]:
    """Return the current weather at a place."""
    await asyncio.sleep(0.3 / SPEED)
    return {"place": f"{place}, Ukraine", "temperature_c": 4, "conditions": "light rain", "wind_kmh": 14}


async def trains(start: str, goal: str, day: str) -> list[dict[str, Any]]:
    """Return the trains between two cities on a day, with the price of a seat in hryvnias."""
    await asyncio.sleep(0.8 / SPEED)
    return [
        {"train": "715", "leaves": "17:48", "arrives": "22:36", "price": 655},
        {"train": "041", "leaves": "22:05", "arrives": "05:50", "price": 480, "night": True},
    ]


def a_menu() -> bytes:
    """A photo of a chalkboard, as PNG."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (480, 340), "#7a5232")
    draw = ImageDraw.Draw(image)
    draw.rectangle((26, 24, 454, 316), fill="#262e2b", outline="#4d3420", width=5)
    draw.text((56, 46), "Menu - Friday", fill="#f2efe6", font=ImageFont.load_default(24))
    for row, (dish, price) in enumerate(
        (("borscht", 145), ("satay, peanuts", 210), ("potato pancakes", 160), ("beet salad", 135), ("varenyky", 150))
    ):
        draw.text((56, 96 + 40 * row), dish, fill="#e9e2cf", font=ImageFont.load_default(18))
        draw.text((390, 96 + 40 * row), str(price), fill="#e8c66c", font=ImageFont.load_default(18))
    made = BytesIO()
    image.save(made, "PNG")
    return made.getvalue()


class Told(Struct, frozen=True):
    """The kitchen after its days."""

    engine: Engine
    store: Store
    platform: Files
    rooms: RoomPlatform
    sim: GeminiSim
    clock: DayClock
    teller: "Teller"


class Teller:
    """Lets people speak, and the model answer."""

    def __init__(self, engine: Engine, clock: DayClock, script: InTurn) -> None:
        self.engine, self._clock, self._script = engine, clock, script
        self._count = 0
        self.last: Message | None = None

    async def say(
        self, author: Author, text: str, *answers: Any, place: Place = KITCHEN, at: datetime | None = None, **more: Any
    ) -> Message:
        """Let a person say something, and wait until it is answered with *answers*, if it is."""
        await self.post(author, text, *answers, place=place, at=at, **more)
        await self.engine.settled()
        assert self.last is not None
        return self.last

    async def post(
        self,
        author: Author,
        text: str,
        *answers: Any,
        place: Place = KITCHEN,
        at: datetime | None = None,
        media: Sequence[Media] = (),
        reply_to: Quote | None = None,
    ) -> Message:
        """Let a person say something."""
        if at:
            self._clock.set(at)
        self.prepare(*answers)
        self._count += 1
        self.last = Message(
            id=str(100 + self._count),
            place=place,
            author=author,
            sent_at=self._clock.now(),
            parts=(*media, *((Text(text=text),) if text else ())),
            reply_to=reply_to,
        )
        await self.engine.receive(self.last)
        return self.last

    def prepare(self, *answers: Any) -> None:
        """Give the model its next answers."""
        self._script.answers += [one if isinstance(one, Answer) else Answer(text=one, thoughts="") for one in answers]


def calls(name: str, **args: Any) -> Answer:
    """The model calls a tool."""
    return Answer(calls=[Call(name=name, args=args)], thoughts="")


@asynccontextmanager
async def a_kitchen(path: Path | str, *, end: datetime | None = None) -> AsyncIterator[Told]:
    """Run the bot of the kitchen, after some days that end at *end*, by default now; then time runs as it does."""
    end = end or datetime.now(UTC)
    clock, script = DayClock(end - timedelta(days=4)), InTurn()
    menu = a_menu()
    platform = Files(lambda media: menu)
    platform.name, platform.me = "telegram", Author(id="42", name="Гряг", username="gryag_bot")
    async with AsyncExitStack() as opened:
        sim = await opened.enter_async_context(GeminiSim(behaviour=script))
        models = [await opened.enter_async_context(Thinking(name, clock, sim.url)) for name in (MODEL, NEXT)]
        store = await opened.enter_async_context(Store.open(path))
        rooms = RoomPlatform(store.rooms, store.media, now=clock.now, name=PERSONA.name)
        engine = Engine(
            store,
            models,
            [platform, rooms],
            persona=PERSONA,
            tools=[calculate, weather, trains, reminder_tool(store.tasks, clock.now, "UTC")],
            memory=Memory(store, clock=clock),
            context=ContextOptions(history_size=40),
            behavior=Behavior(debounce=0.4, language="uk"),
            limits=Limits(messages=6, seconds=60, total=Cap(money=2.0)),
            clock=clock,
        )
        await opened.enter_async_context(engine)
        opened.callback(asyncio.create_task(rooms.run(engine.inbox(rooms.name))).cancel)
        told = Told(engine, store, platform, rooms, sim, clock, Teller(engine, clock, script))
        await _past(told, end)
        await _today(told, end)
        clock.set(end, speed=1.0)
        yield told


async def _past(told: Told, end: datetime) -> None:
    """The days before: what people say of themselves, and small talk."""
    say = told.teller.say

    def day(before: int, hour: float) -> datetime:
        return end - timedelta(days=before) + timedelta(hours=hour)

    await say(MAYA, "Hi all! I moved in today.", at=day(3, 0))
    await say(MAYA, "By the way, I'm allergic to peanuts.")
    await say(OLENA, "Я живу на Оболоні вже рік.")
    await say(MAYA, "I live in Obolon, so it is forty minutes to get home.", at=day(3, 2))
    await say(TARAS, "Я не їм рибу.", at=day(3, 3))
    await say(OLENA, "Записала. Деруни будуть у п’ятницю, дванадцять штук.")
    await say(MAYA, "I work as a translator.", at=day(2, -5))
    await say(TARAS, "Гряже, хто бере вино?", "Тарас питав, отже, Тарас.", at=day(2, -1))
    await say(MAYA, "The plumber fixed the valve. He took 850 and was very polite about it.", at=day(2, 2))
    await say(OLENA, "Ділимо на трьох, я скину ввечері.")
    await say(TARAS, "Сантехнік лишив бруд у коридорі, прибрав.", at=day(1, -6))
    for text in ("Хтось бачив мою парасолю?", "Вона на балконі.", "Дякую!", "Купіть хліба, якщо будете в пекарні."):
        await say(TARAS if "парасолю" in text or "Дякую" in text else OLENA, text)
    await say(MAYA, "I live in Podil now, it's ten minutes from here.", at=day(1, 0))
    await say(MAYA, "Bakery on the corner has rye bread again. I love rye bread.", at=day(1, 1))
    await say(MAYA, "Where shall we go in spring? Near the sea, please.", place=ODESA, at=day(1, 2))
    await say(IRA, "Одеса, квітень?", place=ODESA)
    await say(MAYA, "How much flour for eight people?", "About 500 grams.", place=WITH_MAYA, at=day(1, 3))
    await say(OLENA, "Що ти знаєш про сантехніка?", "Знаю лише про 850 за клапан.", place=WITH_OLENA, at=day(1, 4))


async def _today(told: Told, end: datetime) -> None:
    """The last ten hours: tools, a reminder, a photo, a changed persona, a busy service, a doubtful reply."""
    say, sim, platform = told.teller.say, told.sim, told.platform
    start = end - timedelta(hours=10)

    def at(share: float) -> datetime:
        return start + (end - start) * share

    await say(TARAS, "Гряже, яка погода у Львові? Чи брати парасолю?", calls("weather", place="Львів"),
              "Чотири градуси й дрібний дощ, вітер слабкий. Парасолю бери.", at=at(0.02))  # fmt: skip
    await say(MAYA, "Gryag, remind us tomorrow at 9:00 to buy train tickets to Lviv",
              calls("remind_me", when="tomorrow 9:00", text="Train tickets to Lviv: buy them before noon."),
              "I will, tomorrow at nine.", at=at(0.1))  # fmt: skip
    await say(TARAS, "Гряже, які поїзди у п’ятницю до Львова після 15:00?",
              Answer(calls=[Call(name="trains", args={"start": "Київ", "goal": "Львів", "day": "friday"}),
                            Call(name="weather", args={"place": "Львів"})], thoughts=""),
              "Після 15:00 два: 715 о 17:48, прибуває о 22:36, 655 грн, і нічний 041 о 22:05, 480 грн. "
              "Ти в поїздах не спиш, тож 715.", at=at(0.2))  # fmt: skip
    await say(OLENA, "Мая перенесла зустріч біля пекарні з 19:00 на 19:30.")
    photo = Media(media_kind="photo", unique_id="menu", mime="image/png", file_id="menu", label="menu.png")
    asked = await say(
        OLENA, "Гряже, що тут візьмемо на трьох увечері?",
        "Борщ, деруни й вареники: 145 + 160 + 150 = 455 грн. Сатай пропускаємо: у ньому арахіс, а Maya на нього має "
        "алергію.", media=[photo], at=at(0.35))  # fmt: skip
    quote = Quote(message_id=asked.id, author=OLENA, parts=asked.parts)
    await say(TARAS, "Гряже, а скільки з кожного, якщо ще медівник?", calls("calculate", expression="(455+120)/3"),
              "З медівником 575 грн, по 192 з кожного.", reply_to=quote, at=at(0.36))  # fmt: skip
    await say(MAYA, "Gryag, how much did the plumber take for the valve?", calls("calculate", expression="850/3"),
              "850, so 284 from each of you. Dinner comes on top: 455 without the satay, since you are allergic to "
              "peanuts.", at=at(0.45))  # fmt: skip
    # The owner edits the persona: the start of the next request is another one, and nothing of it is cached.
    told.engine.persona = replace(PERSONA, text=PERSONA.text + " On rainy days you are a little gentler.")
    await say(OLENA, "Гряже, що вдягнути у п’ятницю?", calls("weather", place="Львів"),
              "Під низ светр: чотири градуси й дощ.", at=at(0.55))  # fmt: skip
    await say(MAYA, "Thanks, everyone!")
    for text, answer in (("Гряже, де моя камера?", "Не бачив. Спитай Олену."), ("Гряже, а плівка?", "У шухляді."),
                         ("Гряже!", "Тут."), ("Гряже, ти тут?", "Так."), ("гряже відгукнись", "Так."),
                         ("Гряже, ну", ""), ("Гряже ау", "")):  # fmt: skip
        await say(TARAS, text, *filter(None, [answer]), at=at(0.65) if "камера" in text else None)
    sim.fail(faults.RateLimited(8.0))
    await say(OLENA, "Гряже, нагадай мені забрати ключі в неділю о 12:00",
              calls("remind_me", when="sunday 12:00", text="Олено, ключі від сестриної квартири."),
              "Нагадаю в неділю о дванадцятій.", at=at(0.72))  # fmt: skip
    sim.fail(faults.Overloaded(), 6)  # one try of the model, five of the next
    await say(TARAS, "Яка столиця Молдови?", place=WITH_TARAS, at=at(0.8))
    platform.fail_after.append(TimeoutError("the connection broke before a receipt came"))
    await say(TARAS, "Гряже, нічний поїзд теж ще є?",
              calls("trains", start="Київ", goal="Львів", day="friday"),
              "Є: 041 о 22:05, 480 грн. Але ти в поїздах не спиш.", at=at(0.88))  # fmt: skip
    await say(OLENA, "Гряже, о котрій зустріч біля пекарні?", "О 19:30: Мая перенесла з 19:00.", at=at(0.96))
    await say(MAYA, "See you all there!")
