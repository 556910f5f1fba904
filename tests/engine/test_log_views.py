"""Those who are blocked are not heard: neither in what they said, nor in what others quote of it."""

from datetime import timedelta

from msgspec.structs import replace

from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_quote, a_talk
from store.builders import a_run, begin
from tertulia.context import gather, sources
from tertulia.context.edits import MessageChange
from tertulia.engine.log_views import LogSlice, VisibleLog, visible_message
from tertulia.messages import NOBODY, Message, Quote
from tertulia.platform import Reacted
from tertulia.store import Store

SECRET = "purple xylophone"


def test_of_a_message_only_that_it_was_there_and_of_a_quote_which_it_was() -> None:
    own, quoting = a_message(SECRET, author=BOB, reply_to=a_quote()), a_message(reply_to=a_quote(SECRET, author=BOB))

    nothing = Message(id="m1", place=GROUP, author=NOBODY, deleted=True)
    assert visible_message(own, GROUP, {("telegram", BOB.id)}) == nothing
    assert visible_message(own, replace(GROUP, kind="direct"), ()) == nothing
    assert visible_message(quoting, GROUP, {("telegram", BOB.id)}) == a_message(reply_to=Quote(message_id="m0"))
    assert visible_message(quoting, GROUP, {("telegram", ALICE.id)}) == nothing
    for message in (own, quoting):
        assert visible_message(message, replace(GROUP, kind="channel"), {("telegram", "somebody else")}) is message
    forward = a_message(SECRET, forwarded_from=BOB)
    assert visible_message(forward, GROUP, {("telegram", BOB.id)}) == nothing
    assert visible_message(forward, GROUP, {("telegram", "somebody else")}) is forward
    quoted = a_message(reply_to=a_quote(SECRET, author=ALICE, forwarded_from=BOB))
    assert visible_message(quoted, GROUP, {("telegram", BOB.id)}) == a_message(reply_to=Quote(message_id="m0"))
    of_nobody = a_message(reply_to=a_quote(SECRET, author=None))
    assert visible_message(of_nobody, GROUP, ()) is of_nobody
    assert visible_message(of_nobody, GROUP, {("telegram", BOB.id)}) == a_message(reply_to=Quote(message_id="m0"))


async def test_nobody_hears_who_is_blocked_until_they_are_blocked_no_longer() -> None:
    said = a_talk(6, authors=(ALICE, BOB))
    async with Store.open(":memory:") as store:
        for message in said:
            await store.inbox.receive(message, at=NOON)
        log = VisibleLog(store.log, store.place_settings.blocked)
        await store.place_settings.block(platform="discord", author_id=ALICE.id, at=NOON)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        during = await log.read(GROUP, 0, 6)
        await store.place_settings.unblock(platform="telegram", author_id=BOB.id)

        assert during == [visible_message(message, GROUP, {("telegram", BOB.id)}) for message in said]
        assert await log.read(GROUP, 0, 6) == said
        assert (await log.count(GROUP), await log.number(said[3])) == (6, 3)


async def test_what_is_shown_stays_the_beginning_of_what_is_shown_later() -> None:
    async with Store.open(":memory:") as store:
        log = VisibleLog(store.log, store.place_settings.blocked)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        before: tuple[Message, ...] = ()
        for message in a_talk(24, authors=(ALICE, BOB, BOB, GRYAG)):
            quoting = replace(message, reply_to=a_quote(SECRET, author=BOB))
            await store.inbox.receive(quoting, at=NOON)
            context = await gather(quoting, [sources.window(log)], NOON)
            shown = tuple(one for one in context.window if not one.deleted)

            assert shown[: len(before)] == before
            assert SECRET not in repr(context.window)
            before = shown
        assert len(before) == 11


async def test_what_the_history_quotes_of_them_is_not_told_either() -> None:
    """Neither as it was quoted, nor as it stands in the log, of which the window does not show it."""
    async with Store.open(":memory:") as store:
        old = a_message(SECRET, id="old", author=BOB)
        quotes = [Quote(message_id="old"), a_quote(SECRET, message_id="old", author=BOB)]
        for message in (old, *a_talk(9), *(a_message(id=f"q{n}", reply_to=one) for n, one in enumerate(quotes))):
            await store.inbox.receive(message, at=NOON)
        target = a_message(id="t")
        log = VisibleLog(store.log, store.place_settings.blocked)
        told = [repr(await gather(target, [sources.window(log, history_size=5)], NOON))]
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        told += [repr(await gather(target, [sources.window(log, history_size=5)], NOON))]

        assert [SECRET in one for one in told] == [True, False]


async def test_what_they_said_before_they_changed_it_is_not_heard_either() -> None:
    async with Store.open(":memory:") as store:
        for number, author in enumerate((ALICE, BOB)):
            quote = a_quote(SECRET, author=BOB) if author is ALICE else None
            await store.inbox.receive(a_message(SECRET, id=str(number), author=author, reply_to=quote), at=NOON)
        await begin(store, a_run(target="1", taken=("1",), horizon=2))
        for number, author in enumerate((ALICE, BOB)):
            await store.inbox.edit(a_message("else", id=str(number), author=author), at=NOON)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

        [change] = await VisibleLog(store.log, store.place_settings.blocked).changes(GROUP, 0)

        assert isinstance(change, MessageChange)
        assert change.before == a_message(SECRET, id="0", reply_to=Quote(message_id="m0"))


async def test_reactions_of_somebody_who_is_blocked_and_to_what_they_say_are_not_told() -> None:
    async with Store.open(":memory:") as store:
        for number, author in enumerate((ALICE, BOB)):
            await store.inbox.receive(a_message(id=str(number), author=author), at=NOON)
        pairs = [(ALICE, "0"), (ALICE, "1"), (BOB, "0")]
        reacted = [Reacted(place=GROUP, message_id=name, author=one, emojis=("👍",)) for one, name in pairs]
        await store.updates.apply("telegram", reacted, key="u", raw=None, at=NOON, keep=timedelta(days=1))
        log = VisibleLog(store.log, store.place_settings.blocked)
        before = await gather(a_message(id="t"), [sources.window(log)], NOON)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        after = await gather(a_message(id="t"), [sources.window(log)], NOON)

        assert [(one.author, one.shown.id) for one in before.notices] == pairs
        assert [(one.author, one.shown.id) for one in after.notices] == pairs[:1]


async def test_a_target_that_replies_to_them_says_only_to_which_message() -> None:
    """Also to one from before the conversation began, or that was never seen."""
    async with Store.open(":memory:") as store:
        old = a_message(SECRET, id="old", author=BOB)
        for message in (old, a_message("hello", id="1")):
            await store.inbox.receive(message, at=NOON)
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        for number, name in enumerate(("old", "never seen")):
            target = a_message("and?", id=f"t{number}", reply_to=a_quote(SECRET, message_id=name, author=BOB))
            await store.inbox.receive(target, at=NOON)
            for beginning in (0, 1):
                log = LogSlice(VisibleLog(store.log, store.place_settings.blocked), beginning)
                for source in (sources.window(log), sources.levels(log)):
                    context = await gather(target, [source], NOON)

                    assert SECRET not in repr(replace(context, left_out=()))
                    assert BOB.name not in repr(context)
