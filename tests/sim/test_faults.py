"""Faults wait in a queue for the requests that they fit."""

from tertulia.sim.faults import (
    ANSWERS,
    BEFORE_ANSWER,
    BROKEN_STREAMS,
    AnyFault,
    CutStream,
    Empty,
    FaultQueue,
    Hang,
    Internal,
    RateLimited,
)


def a_queue(*faults: AnyFault) -> FaultQueue[AnyFault]:
    queue = FaultQueue[AnyFault]()
    for fault in faults:
        queue.add(fault, 1)
    return queue


def test_a_fault_comes_as_often_as_it_was_added() -> None:
    queue = FaultQueue[AnyFault]()
    queue.add(Internal(), 2)

    assert [queue.take(BEFORE_ANSWER) for _ in range(3)] == [Internal(), Internal(), None]


def test_a_request_takes_the_first_fault_that_fits_it() -> None:
    queue = a_queue(CutStream(), Empty(), Hang(1))

    assert queue.take(BEFORE_ANSWER) == Hang(1)
    assert queue.take((*ANSWERS, *BROKEN_STREAMS)) == CutStream()
    assert queue.take(BEFORE_ANSWER) is None


def test_a_fault_that_is_put_back_is_the_next_one() -> None:
    queue = a_queue(Empty(), Internal())
    fault = queue.take(ANSWERS)
    assert fault is not None

    queue.put_back(fault)

    assert queue.take((*ANSWERS, *BEFORE_ANSWER)) == Empty()


def test_a_rate_limit_gives_the_usual_wait_unless_it_has_its_own() -> None:
    faults = (RateLimited(), RateLimited(None), RateLimited(2.5))

    assert [fault.wait(1.0) for fault in faults] == [1.0, None, 2.5]
