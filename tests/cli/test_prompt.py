"""`tertulia prompt` shows what a model was sent, beside a bot that runs."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.command import Here
from cli.stores import a_store
from engine.engines import said
from media.media_files import image
from people import NOON
from store.builders import a_run
from tertulia import Behavior, Engine, Media, Persona, Store, ToolCall
from tertulia.context.values import LeftOut
from tertulia.media.values import StoredFile
from tertulia.models import Scripted
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, user


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A store in which Alice was answered twice; the second time with a tool."""
    path = tmp_path / "s.db"

    async def talk() -> None:
        platform = RecordedPlatform()
        model = Scripted("Hi.", [ToolCall(id="c", name="double", args={"number": 2})], "Four.")
        persona, behavior = Persona(text="You are \x1b[2JGryag."), Behavior(debounce=0)
        async with (
            Store.open(path) as store,
            Engine(
                store, model, [platform], persona=persona, behavior=behavior, tools=[double], profile="plain"
            ) as engine,
        ):
            for number, text in enumerate(["Hello!", "Double 2!"]):
                await engine.receive(said(text, number))
                await engine.settled()

    asyncio.run(talk())
    return str(path)


def test_the_prompts_of_the_last_run_are_shown_step_by_step(here: Here, db: str) -> None:
    status, shown, errors = here("prompt", "--db", db)

    heads = [line.partition(":")[0].split(", ")[1] for line in shown.splitlines() if line.startswith("run ")]
    assert (status, errors, heads) == (0, "", ["step 0", "step 1"])
    assert "tools: double\n" in shown
    assert "You are \\u001b[2JGryag." in shown
    assert 'model: [call double {"number":2}]\n' in shown
    assert "[result of double 4]\n" in shown


def test_a_run_is_named_by_the_beginning_of_its_id(here: Here, db: str) -> None:
    last = json.loads(here("prompt", "--json", "--db", db)[1])
    again = json.loads(here("prompt", last[0]["run_id"][:12], "--json", "--db", db)[1])

    assert [sent["step"] for sent in last] == [0, 1]
    assert again == last


@pytest.mark.parametrize(("given", "why"), [("zz", "there is no run zz"), ("", "the id of a run is not empty")])
def test_a_run_that_is_not_there_is_refused(here: Here, db: str, given: str, why: str) -> None:
    assert here("prompt", given, "--db", db) == (2, "", f"tertulia: {why}\n")


def test_there_may_be_none(here: Here, tmp_path: Path) -> None:
    empty = str(a_store(tmp_path / "s.db"))

    assert here("prompt", "--db", empty) == (0, "no prompt was sent yet\n", "")
    assert here("prompt", "--json", "--db", empty) == (0, "[]\n", "")


PHOTO = Media(media_kind="photo", unique_id="p1", mime="image/jpeg", size=90_000, sha256="0" * 64)
PAPER = Media(media_kind="document", unique_id="d1", label="a.pdf", mime="application/pdf", pages=2, sha256="1" * 64)
WHY = "its media go in words: their files cannot be had, or are larger than media.largest"


def a_prompt_with_media(path: Path, model: str) -> str:
    async def send() -> None:
        async with Store.open(path) as store:
            await store.inbox.receive(said("Look!"), at=NOON)
            left = (LeftOut(source="media", ids=("m1",), why=WHY),)
            prompt = Prompt.of(user("Look!", PHOTO, PAPER))
            await store.runs.begin(a_run(model=model), prompt=prompt, left_out=left, at=NOON)

    asyncio.run(send())
    return str(path)


def about_tokens(shown: str) -> int:
    return int(shown.partition("about ")[2].partition(" tokens")[0].replace(",", ""))


def test_media_count_as_they_go_to_the_model_and_reasons_are_whole(here: Here, tmp_path: Path) -> None:
    _, blind, _ = here("prompt", "--db", a_prompt_with_media(tmp_path / "a.db", "qwen"))
    _, sees, _ = here("prompt", "--db", a_prompt_with_media(tmp_path / "b.db", "gemini-3.8-flash"))

    assert (about_tokens(blind) < 1300, about_tokens(sees) > 2000) == (True, True)
    assert f"left out of media: 1 ({WHY})\n" in blind


def test_what_a_model_that_reads_text_only_was_told_is_shown(here: Here, tmp_path: Path) -> None:
    blind = a_prompt_with_media(tmp_path / "a.db", "qwen")
    sees = a_prompt_with_media(tmp_path / "b.db", "gemini-3.8-flash")
    notes = ["qwen reads text only: media went in words; it was told so beside those that nothing describes"]

    _, shown, _ = here("prompt", "--db", blind)

    assert "[photo]\n(This photo has no description, and you read text only: say that you cannot see it.)" in shown
    assert shown.splitlines()[-1:] == notes
    assert json.loads(here("prompt", "--json", "--db", blind)[1])[0]["notes"] == notes
    assert json.loads(here("prompt", "--json", "--db", sees)[1])[0]["notes"] == []


def test_media_are_shown_as_they_went(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    photo = Media(media_kind="photo", unique_id="p2", mime="image/jpeg")
    paper = Media(media_kind="document", unique_id="d2", label="a.txt", mime="text/plain")
    gone = replace(PHOTO, media_kind="sticker", label="🙂")
    film = Media(media_kind="youtube", unique_id="y", uri="https://youtu.be/x")

    async def send() -> None:
        async with Store.open(path) as store:
            file = StoredFile(sha256="", size=0, mime="image/jpeg", width=8, height=8)
            seen = await store.media.add("p2", image("JPEG"), file, at=NOON)
            read = await store.media.add("d2", b"one\ntwo", StoredFile(sha256="", size=0, mime="text/plain"), at=NOON)
            turn = user(replace(photo, sha256=seen.sha256), replace(paper, sha256=read.sha256), gone, film)
            await store.inbox.receive(said("Look!"), at=NOON)
            await store.runs.begin(a_run(model="gemini-3.8-flash"), prompt=Prompt.of(turn), at=NOON)
            await store.runs.begin(a_run(id="r2", model="qwen"), prompt=Prompt.of(turn), at=NOON)

    asyncio.run(send())
    shown = [json.loads(here("prompt", run, "--json", "--db", str(path))[1])[0]["media"] for run in ("r1", "r2")]

    assert shown[0] == [
        f"[photo] (sent as image/jpeg, {len(image('JPEG'))} bytes)",
        '[document "a.txt"] (sent as text/plain, 7 bytes)',
        '[sticker "🙂"] (sent as a picture, which is no longer stored)',
        "[youtube] (sent as a video)",
    ]
    assert shown[1] == [
        "[photo]\n(This photo has no description, and you read text only: say that you cannot see it.)",
        '[document "a.txt"] (sent as its text)\n> one\n> two',
        '[sticker "🙂"]',
        "[youtube]",
    ]
    assert '[document "a.txt"] (sent as its text)\n> one\n> two\n' in here("prompt", "--db", str(path))[1]
