import pytest

from tertulia.markdown import Fence, Fences, is_closing_fence, opening_fence

OPENINGS = [
    ("```", Fence(run="```")),
    ("  ~~~~ py", Fence(run="~~~~")),
    ("```a`b", None),
    ("``", None),
    ("x ```", None),
    ("> ```", Fence(run="```", quotes=1)),
    ("- ```", Fence(run="```", least=2, most=5)),
    ("     ```", Fence(run="```", least=2, most=8)),
]
CLOSINGS = [
    (Fence(run="```"), "```", True),
    (Fence(run="```"), "   ````  ", True),
    (Fence(run="```"), "    ```", False),
    (Fence(run="```"), "``` py", False),
    (Fence(run="````"), "```", False),
    (Fence(run="```"), "~~~", False),
    (Fence(run="```", quotes=1), "> ```", True),
    (Fence(run="```", quotes=1), "```", False),
]


@pytest.mark.parametrize(("line", "fence"), OPENINGS)
def test_a_line_opens_a_fence_where_commonmark_says_so(line: str, fence: Fence | None) -> None:
    assert opening_fence(line) == fence


@pytest.mark.parametrize(("fence", "line", "closed"), CLOSINGS)
def test_a_fence_is_closed_by_its_own_kind_at_least_as_long(fence: Fence, line: str, closed: bool) -> None:
    assert is_closing_fence(fence, line) is closed


def test_lines_are_code_from_one_fence_to_the_next() -> None:
    fences, covered = Fences(), []

    for line in ["a", "```", "b", "```", "c", "> ```", "> d", "e"]:
        covered.append(fences.covers(line, 0, ended=True))
        fences.add_line(line)

    assert covered == [False, False, True, True, False, False, True, False]
