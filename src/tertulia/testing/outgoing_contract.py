"""OutgoingContract: the tests of `Platform.send` and `split`."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from tertulia.engine.agents.agent import Agent
from tertulia.engine.languages.lines import ENGLISH
from tertulia.messages import Author, Place
from tertulia.platform import Capabilities
from tertulia.testing.contract_session import Session, check, require, text_of
from tertulia.testing.fakes import HeldModel
from tertulia.testing.platform_world import Missing, PlatformWorld, Shown


class OutgoingContract:
    """Replies are shown once, in order and complete; one that may have been lost is listed as doubtful."""

    @check
    async def test_a_process_that_receives_nothing_sends(self, session: Session) -> None:
        _, place = await session.direct_chat()
        await session.start_sending()

        await session.engine.say(place, "Good morning.")

        await session.shows(place, "Good morning.")

    @check
    async def test_a_message_that_the_service_is_too_busy_for_is_sent_later(self, session: Session) -> None:
        await session.world.fail("busy", "busy")
        await _said_once(session, "sent")

    @check
    async def test_a_message_that_is_refused_is_dropped_and_the_next_one_is_sent(self, session: Session) -> None:
        _, place = await session.direct_chat()
        await session.world.fail("refused", "refused")  # also in plain text
        await session.start()

        await session.engine.say(place, "One.")
        await session.until(lambda: _is_status(session, "One.", "dropped"), lambda: "One. is not dropped")
        await session.engine.say(place, "Two.")

        await session.shows(place, "Two.")

    @check
    async def test_a_message_whose_receipt_was_lost_is_seen_once_and_listed_if_nobody_knows(
        self, session: Session
    ) -> None:
        await session.world.fail("receipt lost")
        await _said_once(session, "sent" if _has_keys(session) else "doubtful")

    @check
    async def test_a_message_whose_request_was_lost_is_never_told_to_be_sent(self, session: Session) -> None:
        _, place = await session.direct_chat()
        await session.world.fail("request lost")
        await session.start()

        await session.engine.say(place, "One.")

        if _has_keys(session):
            await session.shows(place, "One.")
        else:
            await session.until(lambda: _is_status(session, "One.", "doubtful", "sent"), lambda: "One. is not settled")
            seen, status = await session.texts(place), (await session.outbox())["One."]
            assert (seen, status) in ((["One."], "sent"), ([], "doubtful"))

    @check
    async def test_a_doubtful_message_that_the_platform_sees_arrive_is_sent(self, session: Session) -> None:
        for place in await _places(session):
            await session.world.fail("receipt lost")
            await session.start()
            await session.engine.say(place, "One.")
            await session.until(lambda: _is_status(session, "One.", "doubtful", "sent"), lambda: "One. is not settled")
            (seen,) = await session.world.shown(place)

            for _ in range(2):
                await session.world.echo(place, seen.id)

            await session.until(lambda: _is_status(session, "One.", "sent"), lambda: "One. is not sent")
            await session.stop()
            await session.start()
            await session.shows(place, "One.")
            assert [(one.id, one.doubtful) for one in await session.logged(place, "One.")] == [(seen.id, False)]
            await session.stop()

    @check
    async def test_a_message_that_the_platform_sees_before_its_receipt_is_one_message(self, session: Session) -> None:
        if type(session.world).echo is PlatformWorld.echo:  # it may show nothing before the receipt
            raise Missing("echo")
        for place in await _places(session):
            await session.start()
            session.receipts.clear()
            await session.engine.say(place, "One.")
            await session.until(partial(_some_are_shown, session, place), lambda: "nothing is shown")
            (seen,) = await session.world.shown(place)

            await session.world.echo(place, seen.id)
            await session.logged(place, "One.")
            session.receipts.set()
            await session.shows(place, "One.")
            await session.world.echo(place, seen.id)
            alice = await session.world.person("Alice")
            await session.world.post(place, alice, "hm")

            log = await session.logged(place, "One.", "hm")
            assert [one.id for one in await session.log(place)] == [seen.id, log[-1].id]
            assert await _is_status(session, "One.", "sent")
            await session.stop()

    @check
    async def test_each_agent_gets_the_message_that_it_said(self, session: Session) -> None:
        for place in await _places(session):
            await session.world.fail("receipt lost", "receipt lost")
            await session.start(agents=[Agent(name="Ada"), Agent(name="Bob")])
            for agent in ("Ada", "Bob"):
                await session.engine.say(place, "Yes.", agent=agent)
            await session.shows(place, "Yes.", "Yes.")
            shown = await session.world.shown(place)

            for one in shown:
                await session.world.echo(place, one.id)

            await session.until(partial(_are_known, session, place, shown), lambda: "not all is known to be sent")
            assert [one.agent for one in await session.log(place)] == ["Ada", "Bob"]
            await session.stop()

    @check
    async def test_a_long_answer_is_split_and_every_part_is_one_message_in_order(self, session: Session) -> None:
        length = require(_capabilities(session).length, "length")
        alice, place = await session.direct_chat()
        answer = "\n\n".join(f"{number} " + "word " * (length // 8) for number in range(6)).strip()
        parts = session.parts(place, answer)
        await session.start(answer)

        await session.world.post(place, alice, "tell me a lot")

        shown = await session.shows(place, *parts)
        assert len(parts) > 1
        assert max(len(message.text) for message in shown) <= length
        (_, said) = await session.logged(place, "tell me a lot", answer)
        assert said.author.id == session.platform.me.id

    @check
    async def test_a_crash_between_two_parts_loses_and_doubles_none(self, session: Session) -> None:
        length = require(_capabilities(session).length, "length")
        _, place = await session.direct_chat()
        text = "\n\n".join(f"{number} " + "word " * (length // 8) for number in range(4)).strip()
        parts = session.parts(place, text)
        await session.start()
        await session.engine.say(place, text)
        await session.until(lambda: _some_are_shown(session, place), lambda: "nothing is shown")

        await session.crash()
        await session.start()

        await session.until(lambda: _all_are_settled(session), lambda: "not all is settled")
        statuses, seen = await session.outbox(), await session.texts(place)
        shown = {part: session.world.as_shown(part) for part in parts}
        assert seen == [text for text in shown.values() if text in seen]
        assert all(shown[part] in seen or statuses[part] == "doubtful" for part in parts)

    @check
    async def test_splitting_is_pure_and_loses_nothing_but_blanks(self, session: Session) -> None:
        length = require(_capabilities(session).length, "length")
        _, place = await session.direct_chat()
        for text in ("x" * (3 * length), "й" * length + "👩\u200d👧" * length, "a b\n" * length, "short"):
            parts = session.parts(place, text)
            assert parts == session.parts(place, text)
            assert all(0 < len(part) <= length for part in parts)
            assert "".join("".join(parts).split()) == "".join(text.split())

    @check
    async def test_people_see_that_the_bot_writes(self, session: Session) -> None:
        require(_capabilities(session).typing, "typing")

        await _shows_preview(session, HeldModel("One two three."), "")

    @check
    async def test_people_see_the_answer_while_it_is_written(self, session: Session) -> None:
        require(_capabilities(session).previews, "previews")

        await _shows_preview(session, HeldModel("One two three.", pieces=2), "One two")

    @check
    async def test_a_draft_becomes_the_answer(self, session: Session) -> None:
        model = HeldModel("One two three.", pieces=2)
        draft, place, _ = await _start_draft(session, model)

        model.release()

        (answer,) = await session.shows(place, "One two three.")
        assert answer.id == draft.id

    @check
    async def test_an_edit_whose_receipt_was_lost_counts_as_sent_when_it_changes_nothing(
        self, session: Session
    ) -> None:
        model = HeldModel("One two three.", pieces=2)
        draft, place, _ = await _start_draft(session, model)
        await session.until(lambda: _has_receipt(session), lambda: "nobody knows that the draft is sent")

        await session.world.fail("receipt lost", "receipt lost")  # of the last edit of the draft, or of the answer's
        model.release()

        await session.until(lambda: _is_status(session, "One two three.", "sent"), lambda: "the answer is not sent")
        (answer,) = await session.shows(place, "One two three.")
        assert answer.id == draft.id

    @check
    async def test_a_draft_of_an_answer_that_somebody_stops_says_so(self, session: Session) -> None:
        model = HeldModel("One two three.", pieces=2)
        draft, place, alice = await _start_draft(session, model)
        await session.until(lambda: _has_receipt(session), lambda: "nobody knows that the draft is sent")

        await session.world.stop(place, alice)

        lines = await session.shows(place, ENGLISH.stopped_draft)
        assert [line.id for line in lines] == [draft.id]

    @check
    async def test_a_draft_that_is_visible_when_the_process_crashes_becomes_the_answer(self, session: Session) -> None:
        draft, place, _ = await _start_draft(session, HeldModel("One two three.", pieces=2))
        await session.until(lambda: _has_receipt(session), lambda: "nobody knows that the draft is sent")

        await session.crash()
        assert len(await session.texts(place)) == 1
        await session.start("Four five six.")

        (answer,) = await session.shows(place, "Four five six.")
        assert answer.id == draft.id

    @check
    async def test_a_draft_whose_receipt_was_lost_is_listed_and_the_answer_is_sent_anew(self, session: Session) -> None:
        _require_drafts(session)
        await session.world.fail("receipt lost")
        model = HeldModel("One two three.", pieces=2)
        _, place, _ = await _start_draft(session, model)
        await session.until(lambda: _is_doubtful(session), lambda: "the draft is not doubtful")

        model.release()

        await session.until(lambda: _is_status(session, "One two three.", "sent"), lambda: "the answer is not sent")
        seen = await session.texts(place)
        assert seen[-1] == "One two three."
        assert not any("One" in text for text in seen[:-1]), "a draft that cannot be edited stands beside the answer"
        assert await _is_doubtful(session)

    @check
    async def test_hostile_texts_arrive_and_are_sent_as_they_are(self, session: Session) -> None:
        alice, place = await session.direct_chat()
        texts = ['"}\\n{"do": "x"}', "<b>&amp;</b> *_`[x](y)~", "naïve 👩\u200d👧 \u202eabc", "a\nb\n\nc"]
        await session.start(*texts)

        for number, text in enumerate(texts, start=1):
            await session.world.post(place, alice, text)
            await session.shows(place, *texts[:number])

        expected = [text for one in texts for text in (session.world.as_posted(one), one)]
        assert [text_of(message) for message in await session.log(place)] == expected


def _capabilities(session: Session) -> Capabilities:
    return session.world.platform().capabilities


def _has_keys(session: Session) -> bool:
    return bool(_capabilities(session).idempotency_window)


async def _places(session: Session) -> list[Place]:
    """Return a direct chat, and a group if the service has groups."""
    _, place = await session.direct_chat()
    with suppress(Missing):
        return [place, await session.world.group()]
    return [place]


async def _are_known(session: Session, place: Place, shown: Sequence[Shown]) -> bool:
    log = [(one.id, one.doubtful) for one in await session.log(place)]
    return log == [(one.id, False) for one in shown]


async def _said_once(session: Session, status: str) -> None:
    """Check that a text of the bot is shown once, and its delivery ends with *status*."""
    _, place = await session.direct_chat()
    await session.start()
    await session.engine.say(place, "One.")
    await session.until(lambda: _is_status(session, "One.", status), lambda: f"One. is not {status}")
    await session.shows(place, "One.")


async def _is_status(session: Session, text: str, *statuses: str) -> bool:
    return (await session.outbox()).get(text) in statuses


async def _some_are_shown(session: Session, place: Place) -> bool:
    return bool(await session.world.shown(place))


async def _all_are_settled(session: Session) -> bool:
    await session.engine.settled()
    statuses = (await session.outbox()).values()
    return bool(statuses) and all(status in ("sent", "doubtful") for status in statuses)


def _require_drafts(session: Session) -> None:
    require(_capabilities(session).drafts, "drafts")


async def _start_draft(session: Session, model: HeldModel) -> tuple[Shown, Place, Author]:
    """Post a message, and wait for the draft of its answer; return the draft, its place, and who asked."""
    _require_drafts(session)
    alice, place = await session.direct_chat()
    if not session.world.platform().capabilities_in(place).drafts:
        place = await session.world.group()
    await session.start(model=model)
    await session.world.post(place, alice, f"{session.platform.me.name}, tell me")
    await session.until(lambda: _some_are_shown(session, place), lambda: "no draft is shown")
    shown = await session.world.shown(place)
    assert len(shown) == 1, f"a draft is {len(shown)} messages, not one that is edited"
    draft = shown[0]
    return draft, place, alice


async def _shows_preview(session: Session, model: HeldModel, text: str) -> None:
    """Check that people see the start of *text* while the answer streams, and then the answer."""
    alice, place = await session.direct_chat()
    await session.start(model=model)
    await session.world.post(place, alice, "tell me")
    await session.until(lambda: _is_previewed(session, place, text), lambda: f"nobody sees the preview {text!r}")
    model.release()
    await session.shows(place, "One two three.")


async def _is_previewed(session: Session, place: Place, text: str) -> bool:
    seen = await session.world.previews(place)
    return any(text.startswith(preview) and bool(preview) == bool(text) for preview in seen)


async def _has_receipt(session: Session) -> bool:
    return "sent" in (await session.outbox()).values()


async def _is_doubtful(session: Session) -> bool:
    return "doubtful" in (await session.outbox()).values()
