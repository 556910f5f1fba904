"""The plan of forgetting a person: the rows that go, by section; which runs and episodes showed the person. Pure.

A plan is computed from rows that were read, shown by `tertulia db forget --dry-run`, printed with contents by `tertulia
db export --person`, and carried out in short transactions. What was derived from the person goes first, their own
messages and names last: so a plan that is computed again finds whatever is left.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Key = tuple[int | str, ...]  # of a row; mostly its id
MessageKey = tuple[int, str]  # the row of a place, and the id of a message


class Forgotten(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of what is removed. Of a message in a group its number and id stay."""

    known: bool = True  # whether anybody has the id; the raw updates of services are searched for it in any case
    places: int = 0  # direct chats, with everything in them
    messages: int = 0
    quotes: int = 0
    forwards: int = 0  # messages of others that forwarded the person's
    names: int = 0
    titles: int = 0  # of groups that were called by the person's name
    descriptions: int = 0
    files: int = 0  # of media that only the person sent, with what was made of them
    facts: int = 0
    summaries: int = 0
    episodes: int = 0  # and the summaries of windows, which are made of them
    exchanges: int = 0  # of chats with a name
    runs: int = 0  # that showed the person; only their contents are removed
    prompts: int = 0
    records: int = 0
    tool_runs: int = 0
    answers: int = 0  # messages of the agent's, to the person or with their words
    replies: int = 0
    tasks: int = 0
    blocks: int = 0


SHOWN_WITH = {  # sections that are counted and shown with others
    "facts_about_others": "facts",
    "summaries_of_others": "summaries",
    "episodes_of_others": "episodes",
    "quotes_in_versions": "quotes",
    "exchanges_of_others": "exchanges",
    "open_exchanges": "exchanges",
}


class Plan(Struct, frozen=True, kw_only=True):
    """What forgetting a person removes: the keys of rows, by section."""

    platform: str
    author_id: str
    author: int | None = None  # the row of the person; None: nobody has the id
    direct: tuple[int, ...] = ()  # the rows of their direct chats
    media: frozenset[str] = frozenset()  # the ids of media that nobody else has
    last_event: int = 0  # the row of the newest event before anything was read
    rows: Mapping[str, tuple[Key, ...]] = {}

    @property
    def is_empty(self) -> bool:
        return not any(self.rows.values())

    def report(self) -> Forgotten:
        counts: dict[str, Any] = dict.fromkeys(Forgotten.__struct_fields__, 0)
        for section, keys in self.rows.items():
            name = "episodes" if section == "window_summaries" else SHOWN_WITH.get(section, section)
            if name in counts:
                counts[name] += len(keys)
        return Forgotten(**counts | {"known": self.author is not None or bool(counts["exchanges"])})

    def with_rows(self, other: "Plan") -> "Plan":
        """Return the plan with the rows of another one, each once."""
        rows = {
            one: tuple(dict.fromkeys((*self.rows.get(one, ()), *other.rows.get(one, ()))))
            for one in (*self.rows, *other.rows)
        }
        return replace(self, rows=rows)

    def without(self, other: "Plan") -> "Plan":
        """Return the plan without the rows of another one."""
        left: dict[str, tuple[Key, ...]] = {}
        for section, keys in self.rows.items():
            known = set(other.rows.get(section, ()))
            if more := tuple(key for key in keys if key not in known):
                left[section] = more
        return replace(self, rows=left)


class StoredRun(Struct, frozen=True):
    """What a plan needs of a run."""

    id: str
    place: int
    target: str
    given: tuple[str, ...]  # the ids of the messages that it answers
    horizon: int  # how many messages of its place it knew


def first_numbers(touched: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the number of the first message that shows the person, by place."""
    first: dict[int, int] = {}
    for place, number in touched:
        first[place] = min(number, first.get(place, number))
    return first


def answers_person(run: StoredRun, theirs: Collection[MessageKey]) -> bool:
    return (run.place, run.target) in theirs


def showed_person(
    run: StoredRun, theirs: Collection[MessageKey], first: Mapping[int, int], direct: Collection[int]
) -> bool:
    """Return whether a run knew a message that shows the person, or was given one of *theirs*."""
    if run.place in direct or answers_person(run, theirs) or run.horizon > first.get(run.place, run.horizon):
        return True
    return any((run.place, message_id) in theirs for message_id in run.given)
