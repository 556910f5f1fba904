"""An evening with 1,000 media and a bot that is killed again and again: `killed_media.py 200` prints what became of it.

People of Telegram's simulator send photos, stickers, voices, songs and documents to 100 groups, and ask. Gemini's
simulator describes and answers. Both live on, and are the judges. Meanwhile the clocks move so far that uploaded files
expire, the key changes, uploaded files are deleted, and for some lives no file can be written.
"""

import asyncio
import random
import signal
import sys
import tempfile
import time
import wave
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from PIL import Image

from lives import Lives, lives
from media import media_files
from platforms.telegram.media_child import MediaLife
from tertulia.media.values import FetchFailure, StoredFile
from tertulia.sim.behaviours import Answer, Ask
from tertulia.sim.gemini import GeminiSim
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim
from tertulia.sim.telegram.accounts import Message
from tertulia.store import Store

CHILD = Path(__file__).with_name("media_child.py")
GROUPS = 100
OF_A_GROUP = 10  # media
IDLE = 3.0  # seconds after which a life ends all the same
EXPIRY = 49 * 3600.0  # seconds after which no uploaded file is left
RETRY = 25 * 3600.0  # seconds after which all is tried again that failed while the disk was full
LARGE = 1_200_000  # bytes of a song, which is uploaded
ASKED = "Describe this"


class Sent(Struct, frozen=True, kw_only=True):
    """A medium that somebody sent: what is to become of it."""

    unique_id: str
    kind: str
    sha256: str
    fetched: bool = True  # whether its bytes are to be stored
    described: bool = True  # whether the model can describe it


class Evening(Struct, kw_only=True):
    """What happened, and what came of it."""

    kills: int = 0
    media: int = 0  # messages with media
    files: int = 0  # different ones
    stored: int = 0
    in_words: int = 0  # that could not be had or are of a refused type, as they should
    descriptions: int = 0
    asked_again: int = 0  # descriptions that were asked for again after a kill
    uploads: int = 0
    uploaded_again: int = 0  # after expiry, another key or a deletion
    found_again: int = 0  # uploads that a killed process had made
    handles_gone: int = 0  # requests that the service refused since it had lost a file
    questions: int = 0
    answers: int = 0
    doubtful: int = 0  # answers that a kill left without a receipt, which are listed and not sent again
    requests: int = 0
    downloads: int = 0
    faults: list[str] = []


class Model:
    """Describes every medium with words of its own, and answers everything else."""

    def answer(self, ask: Ask) -> Answer:
        if ASKED in ask.last_text:
            return Answer(text=words_for(payload_of(ask.request)), thoughts="")
        return Answer(text="I see.", thoughts="")


def words_for(payload: str) -> str:
    return f"It shows {payload[:12]}."


def payload_of(request: dict[str, Any]) -> str:
    """The digest of the first medium, or document, of a request."""
    part = request["contents"][0]["parts"][0]
    return sha256(repr(part.get("inlineData") or part.get("fileData") or part).encode()).hexdigest()


def animated_sticker(number: int) -> bytes:
    """A disc of a size of its own."""
    whole = media_files.lottie()
    whole["layers"][0]["shapes"][0]["it"][0]["s"]["k"] = [120 + 3 * number, 200]
    return media_files.tgs(**whole)


class Script:
    """Who sends what: each step is half of what one group gets, and every second one ends with a question."""

    def __init__(self, sim: TelegramSim, seed: int) -> None:
        self._sim = sim
        self._chance = random.Random(seed)  # noqa: S311 (nothing secret)
        self.ann: SimUser = sim.user("Ann")
        self.chats: list[SimChat] = []
        self.sent: list[Sent] = []
        self.questions = 0
        self._songs: dict[int, Message] = {}

    def steps(self, groups: int) -> Iterator[None]:
        for number in range(groups):
            self.chats.append(self._sim.group(f"Group {number}", [self.ann]))
            for index in range(OF_A_GROUP):
                self._send(number, index)
                if index == OF_A_GROUP // 2 - 1:
                    yield
            self.ask(number)
            if number % 2:
                self.ask(self._chance.randrange(0, number, 3))  # about a song of before
            yield

    def ask(self, number: int) -> None:
        """Ask about the song of a group, which goes to the model then, or about what was last."""
        self.questions += 1
        text = f"Tertulia, what was that, number {self.questions}?"
        self.ann.send(self.chats[number], text, reply_to=self._songs.get(number))

    def _send(self, number: int, index: int) -> None:
        chat, name = self.chats[number], f"{number}-{index}"
        match index:
            case 5:
                self._add("sticker", media_files.image("WEBP", self._picture(64, 64)), emoji="🐈")
            case 6:
                self._add("sticker", animated_sticker(number), emoji="🐕", is_animated=True)
            case 7:
                self._add("photo", media_files.image("PNG"))  # the same in all groups
            case 8 if number % 3 == 0:
                self._songs[number] = self._add("audio", self._song(), title=name, mime_type="audio/wav")
            case 8:
                self._add("voice", media_files.sound("ogg", "libopus", seconds=0.2 + number / 100))
            case 9:
                self._document(number, name)
            case _:
                self._add("photo", media_files.image("PNG", self._picture(96, 64)))
        assert chat.messages

    def _document(self, number: int, name: str) -> None:
        match number % 5:
            case 0:
                self._add("document", media_files.pdf(f"page of {name}"), file_name=f"{name}.pdf")
            case 1:
                self._add("document", f"text of {name}".encode(), file_name=f"{name}.txt")
            case 2:
                data = media_files.zipped(a=name)
                self._add("document", data, described=False, file_name="../../etc/passwd.zip")
            case 3:
                self._add("photo", b"no picture " + name.encode(), fetched=False, described=False)
            case _:
                huge = {"size": 30 << 20, "file_name": f"{name}.mkv"}
                self._add("document", name.encode(), fetched=False, described=False, **huge)

    def _song(self) -> bytes:
        output = BytesIO()
        with wave.open(output, "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(self._chance.randbytes(LARGE))
        return output.getvalue()

    def _picture(self, width: int, height: int) -> Image.Image:
        return Image.frombytes("RGB", (width, height), self._chance.randbytes(width * height * 3))

    def _add(self, kind: str, data: bytes, *, fetched: bool = True, described: bool = True, **details: Any) -> Message:
        message: Message = getattr(self.ann, f"send_{kind}")(self.chats[-1], data=data, **details)
        content = message.content[kind]
        file = self._sim.world.files.get((content[-1] if isinstance(content, list) else content)["file"])
        digest = sha256(data).hexdigest()
        self.sent.append(Sent(unique_id=file.unique_id, kind=kind, sha256=digest, fetched=fetched, described=described))
        return message


async def evening(folder: Path, *, kills: int, groups: int, seed: int) -> Evening:
    """Kill a bot so often while people send media; then let it finish, and look at everything."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    found = Evening(kills=kills)
    async with (
        TelegramSim() as sim,
        GeminiSim(behaviour=Model(), clock=time.time, processing=0.1) as gemini,
        lives(CHILD, folder / "log") as forked,
    ):
        script, marks, lost, known = Script(sim, seed), list[int](), list[int](), dict[str, int]()
        steps, every = script.steps(groups), max(1, 2 * groups // kills)
        life = MediaLife(path=str(folder / "bot.db"), url=sim.url, token=sim.token, gemini=gemini.url, key="first")
        for number in range(kills):
            for _ in range(every if number < 2 * groups else 0):
                next(steps, None)
            life = change(life, number, kills, gemini, lost)
            await kill(forked, life, sim, gemini, chance)
            marks.append(len(gemini.requests))
            for words in await stored_words(folder, script):
                known.setdefault(words, len(gemini.requests))
            if number % 20 == 19:
                print(f"{number + 1} kills, {len(gemini.requests)} requests", file=sys.stderr, flush=True)
        for _ in steps:
            pass
        for at in range(groups):
            script.ask(at)
        gemini.clock.advance(RETRY)
        life = replace(life, ahead=life.ahead + RETRY, full=False, questions=script.questions)
        child = await forked.begin(life)
        code = await forked.end(child, timeout=900.0)
        assert code == 0, forked.log()
        judge_requests(found, gemini, Moments(kills=marks, lost=lost, known=known))
        await judge_files(found, folder, script)
        judge_answers(found, sim, script)
        found.downloads = sum(call.method == "download" for call in sim.calls)
        return found


def change(life: MediaLife, number: int, kills: int, gemini: GeminiSim, lost: list[int]) -> MediaLife:
    """What changes before a life: the time, the key, the files at the service, the disk."""
    if number and number % max(1, kills // 5) == 0:
        gemini.clock.advance(EXPIRY)
        life = replace(life, ahead=life.ahead + EXPIRY)
        lost.append(len(gemini.requests))
    if number == kills // 2:
        life = replace(life, key="second")
    if number % max(1, kills // 4) == kills // 8:
        gemini.files.lose()
        lost.append(len(gemini.requests))
    return replace(life, full=number % max(1, kills // 4) in range(kills // 10, kills // 10 + max(1, kills // 40)))


async def kill(forked: Lives, life: MediaLife, sim: TelegramSim, gemini: GeminiSim, chance: random.Random) -> None:
    """Live one life, and end it after a random number of downloads, requests, uploads or messages."""
    child = await forked.begin(life)
    counts: dict[str, tuple[Callable[[], int], int]] = {
        "download": (lambda: sum(call.method == "download" for call in sim.calls), 6),
        "request": (lambda: len(gemini.requests), 12),
        "upload": (lambda: sum("/upload/" in one.path for one in gemini.requests), 3),
        "sent": (lambda: sum(call.method in ("sendMessage", "editMessageText") for call in sim.calls), 2),
    }
    count, most = counts[chance.choice([*counts])]
    wanted, ends = count() + chance.randint(1, most), time.monotonic() + IDLE
    while count() < wanted and time.monotonic() < ends:  # noqa: ASYNC110 (of two simulators)
        await asyncio.sleep(0.005)
    await asyncio.sleep(chance.choice([0, chance.uniform(0, 0.05)]))
    assert await forked.kill(child) == -signal.SIGKILL, forked.log()
    await asyncio.sleep(0.05)  # the simulators read what the killed process has sent


async def stored_words(folder: Path, script: Script) -> list[str]:
    """The descriptions that a killed process has stored."""
    async with Store.open(folder / "bot.db", beside=True) as store:
        found = await store.descriptions.find([one.unique_id for one in script.sent])
    return [one.words for one in found.values()]


class Moments(Struct, frozen=True, kw_only=True):
    """How many requests there were when something happened."""

    kills: list[int]
    lost: list[int]  # the service lost its files
    known: dict[str, int]  # descriptions were seen in the store


def judge_requests(found: Evening, gemini: GeminiSim, moments: Moments) -> None:
    """Look at what the service was asked: a repeated request needs a reason."""
    marks, lost = moments.kills, moments.lost
    described: dict[str, list[int]] = {}
    uploaded: dict[str, list[int]] = {}
    for at, one in enumerate(gemini.requests):
        if one.headers.get("x-goog-upload-command") == "start":
            found.uploads += one.status == 200
            found.found_again += one.status == 409
            name = str(one.body["file"]["name"]) if "name" in one.body.get("file", {}) else f"unnamed {at}"
            if one.status == 200:
                uploaded.setdefault(name, []).append(at)
            continue
        if ":generateContent" in one.path or ":streamGenerateContent" in one.path:
            found.requests += 1
            if ASKED in str(one.body["contents"][-1]["parts"][-1].get("text", "")) and one.status in (0, 200):
                described.setdefault(payload_of(one.body), []).append(at)
        if one.status == 403 and "file" in one.rule:
            found.handles_gone += 1
        elif one.status >= 400 and "/files" not in one.path:
            found.faults.append(f"request {at} was refused: {one.status} {one.rule} {one.path}")
    for payload, times in described.items():
        again = len(times) - 1
        found.asked_again += again
        if any(not _between(marks, *pair) for pair in pairwise(times)):
            found.faults.append(f"{payload[:12]} was described twice by one process: {times}")
        if times[-1] >= moments.known.get(words_for(payload), sys.maxsize):
            found.faults.append(f"{payload[:12]} was described, and asked for again: {times}")
    for name, times in uploaded.items():
        for pair in pairwise(times):
            if _between(lost, *pair):
                found.uploaded_again += 1
            elif not _between(marks, *pair):
                found.faults.append(f"{name} was uploaded twice without a reason: {pair}")


def _between(moments: list[int], first: int, second: int) -> bool:
    return any(first < moment <= second for moment in moments)


async def judge_files(found: Evening, folder: Path, script: Script) -> None:
    """Look at the files and the descriptions of everything that was sent."""
    sent = {one.unique_id: one for one in script.sent}
    found.media, found.files = len(script.sent), len(sent)
    async with Store.open(folder / "bot.db", media_folder=folder / "bot.db-media") as store:
        files = await store.media.find([*sent])
        words = await store.descriptions.find([*sent])
        found.descriptions = len(words)
        for unique_id, one in sent.items():
            file = files.get(unique_id)
            if isinstance(file, StoredFile) and one.fetched:
                data = await asyncio.to_thread(store.media.folder.read, file.sha256)
                found.stored += 1
                if data is None or sha256(data).hexdigest() != one.sha256:
                    found.faults.append(f"the {one.kind} {unique_id} is damaged")
            elif one.fetched:
                found.faults.append(f"the {one.kind} {unique_id} is lost: {file}")
            elif isinstance(file, FetchFailure) or file is None:
                found.in_words += 1
            if one.described != (unique_id in words):
                found.faults.append(f"the {one.kind} {unique_id} is{' not' if one.described else ''} described")
        found.doubtful = sum(item.status == "doubtful" for item in await store.outbox.listed())
        if faults := await store.check():
            found.faults += faults


def judge_answers(found: Evening, sim: TelegramSim, script: Script) -> None:
    found.questions = script.questions
    for chat in script.chats:
        quoted = Counter(message.reply_to for message in chat.of(sim.bot) if message.text == "I see.")
        found.answers += len(quoted)
    if not found.questions - found.doubtful <= found.answers <= found.questions:
        found.faults.append(f"of {found.questions} questions {found.answers} were answered")


async def main(kills: int, groups: int) -> int:
    """Kill so often, and print what came of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tertulia-media-") as folder:
        result = await evening(Path(folder), kills=kills, groups=groups, seed=1)
    rows = {**asdict(result), "faults": len(result.faults), "seconds": round(time.monotonic() - began)}
    print("| what | number |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name.replace('_', ' ')} | {value:,} |", flush=True)
    print(*result.faults[:50], sep="\n")
    return int(bool(result.faults))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else GROUPS)))
