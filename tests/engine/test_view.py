"""A view is changed by events alone; what streams is the text of open runs."""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from engine.engines import DIRECT, said
from tertulia.engine.view import LiveAnswer, View, ViewChange, ViewMessage, ViewUpdate, nothing, reduce, whole
from tertulia.events import (
    AnswerSoFar,
    Delta,
    Event,
    FallbackTried,
    MessageReceived,
    Missed,
    PlaceChanged,
    PromptSent,
    RunEnded,
    StoreUnavailable,
    TaskPlanned,
    Waiting,
)
from tertulia.parts import Text, Thought
from tertulia.run.journal import Run, RunProgress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN = Run(id="r", place=DIRECT, target="1", taken=("1",), began_at=NOON, horizon=1)
ANSWERING = View(place=DIRECT, event=3, cursor="3", runs=(RunProgress(order=1, run=RUN),))


def stored(event: int, **changes: Any) -> ViewChange:
    return ViewChange(**{"event": event, "count": 1, "beginning": 0, **changes})


def numbered(*numbers: int) -> tuple[ViewMessage, ...]:
    return tuple(ViewMessage(number=number, message=said(f"text {number}", number)) for number in numbers)


def live(view: View, *events: Event) -> tuple[LiveAnswer, ...]:
    for event in events:
        view = reduce(view, event).view
    return view.live


def received(number: int) -> MessageReceived:
    return MessageReceived(place=DIRECT, message_id="1", number=number, cursor=str(number))


def wrote(text: str, run: str = "r") -> Delta:
    return Delta(place=DIRECT, run_id=run, part=Text(text=text))


def test_a_stored_value_takes_the_place_of_the_one_with_its_key() -> None:
    view = View(place=DIRECT, messages=numbered(0, 1))
    edited = ViewMessage(number=0, message=said("edited", 0))

    update = reduce(view, received(1), stored(1, count=3, messages=(edited, *numbered(1, 2))))

    new = (edited, *numbered(2))
    assert update.view == replace(view, event=1, cursor="1", count=3, messages=(edited, *numbered(1, 2)))
    assert update.change == ViewChange(event=1, count=3, beginning=0, messages=new)


def test_only_the_newest_messages_are_shown() -> None:
    view = View(place=DIRECT, most=2, count=9, messages=numbered(7, 8))

    update = reduce(view, received(1), stored(1, count=10, messages=numbered(2, 9)))

    assert (update.view.messages, update.change.messages) == (numbered(8, 9), numbered(9))


def test_an_event_that_the_view_has_changes_nothing() -> None:
    event = received(3)

    assert reduce(ANSWERING, event, stored(3, messages=numbered(0))) == ViewUpdate(
        view=ANSWERING, change=nothing(ANSWERING), event=event
    )


def test_an_event_that_names_nothing_only_counts() -> None:
    event = TaskPlanned(place=DIRECT, task_id="t", number=4, cursor="4")

    update = reduce(ANSWERING, event)

    assert update.view == replace(ANSWERING, event=4, cursor="4")
    assert update.change.is_empty


def test_what_is_read_anew_replaces_all() -> None:
    view = View(place=DIRECT, count=2, messages=numbered(0, 1))
    event = PlaceChanged(place=DIRECT, number=1, cursor="1")

    update = reduce(view, event, stored(1, anew=True, messages=numbered(1), facts=()))

    assert update.view == View(place=DIRECT, event=1, cursor="1", count=1, messages=numbered(1))
    assert update.change == whole(update.view)


def test_the_text_of_a_run_is_that_of_its_responses_so_far() -> None:
    asked = PromptSent(place=DIRECT, run_id="r", step=1, number=4, cursor="4")

    seen = live(ANSWERING, wrote("I "), wrote("look."), Delta(place=DIRECT, run_id="r", part=Thought(text="hm")))
    assert seen == (LiveAnswer(run_id="r", text="I look."),)
    seen = live(ANSWERING, wrote("I look."), asked, wrote("Noon."))
    assert seen == (LiveAnswer(run_id="r", before="I look.", text="Noon."),)
    assert seen[0].whole == "I look.\n\nNoon."


def test_the_text_of_a_response_that_is_not_used_is_dropped() -> None:
    asked = PromptSent(place=DIRECT, run_id="r", step=1, number=5, cursor="5")
    tried = FallbackTried(place=DIRECT, run_id="r", step=1, fallback="shorter", number=4, cursor="4")

    assert live(ANSWERING, wrote("Ha"), tried, asked, wrote("Hello")) == (LiveAnswer(run_id="r", text="Hello"),)
    waits = Waiting(place=DIRECT, run_id="r", seconds=1.0, why="busy")
    assert live(ANSWERING, wrote("Ha"), waits, wrote("Hello")) == (LiveAnswer(run_id="r", text="Hello"),)
    trouble = StoreUnavailable(why="no room")
    assert live(ANSWERING, wrote("Ha"), trouble, wrote("Hello")) == (LiveAnswer(run_id="r", text="Hello"),)


def test_the_text_is_whole_after_deltas_were_missed() -> None:
    so_far = AnswerSoFar(place=DIRECT, run_id="r", text="Hello, ")

    seen = live(ANSWERING, wrote("He"), Missed(events=2), so_far, wrote("Alice"))

    assert seen == (LiveAnswer(run_id="r", text="Hello, Alice"),)


def test_only_an_open_run_has_text() -> None:
    over = replace(ANSWERING.runs[0], run=replace(RUN, status="done", ended_at=NOON))
    view = reduce(ANSWERING, wrote("Hello")).view
    ended = RunEnded(place=DIRECT, run_id="r", number=4, cursor="4")

    after = reduce(view, ended, stored(4, runs=(over,))).view

    assert (view.live, after.live) == ((LiveAnswer(run_id="r", text="Hello"),), ())
    assert live(after, wrote("late"), wrote("of nobody", run="q")) == ()
