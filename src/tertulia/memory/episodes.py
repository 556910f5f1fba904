"""Episodes, parts of a conversation about one topic: where one ends, which fit a message, what came before. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from math import log
from typing import NamedTuple

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.memory.retrieval.terms import shared_terms, term_set
from tertulia.memory.values import Episode, WindowPast
from tertulia.messages import Message
from tertulia.parts import cut_text

TOPIC_CHANGES = tuple(
    marker.strip()
    for marker in """by the way|btw|anyway|anyways|speaking of|changing the subject|change of subject|another topic|
new topic|on another note|off topic|offtopic|unrelated|different question|another question|next question|до речі|
між іншим|інше питання|інша тема|змінимо тему|нова тема|не в тему|кстати|между прочим|другой вопрос|другая тема|
сменим тему|новая тема|swoją drogą|a propos|inny temat|zmieniając temat|nowe pytanie|übrigens|apropos|anderes thema|
andere frage|por cierto|au fait|对了|顺便|換個話題|换个话题|另外|ところで|話は変わ|그런데|그건 그렇고""".split("|")
)
_OPENING = 60  # characters of a message in which a topic change is looked for
_UNSPACED = "\u0e00"  # from here on words are not divided by spaces

MAX_EPISODES = 12  # more than a prompt shows: some may be in the window
MIN_RELEVANCE = 0.3
TAG_BONUS = 0.05  # on the relevance, for each tag that matches
SINGLE_TERM_FACTOR = 0.5  # one term of several may match by chance
HALF_LIFE = 30 * 86_400.0  # seconds
MAX_PAST = 4_000  # characters


class EpisodeRules(Struct, frozen=True, kw_only=True):
    """The rules by which an episode ends. Signs of a new topic are added up; at *enough*, a new episode begins."""

    short_gap: float = 120.0  # seconds of silence
    gap: float = 900.0
    long_gap: float = 3600.0  # ends an episode by itself
    around: int = 8  # messages on each side whose words are compared
    words: int = 12  # keywords that each side needs to be compared
    unlike: float = 0.06  # share of common keywords up to which the topics are different
    enough: float = 0.9
    fewest: int = 4  # messages, unless a long silence ends the episode
    most: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.fewest <= self.most or self.around < 1:
            raise InvalidValue("EpisodeRules: fewest must be from 1 to most, and around at least 1")

    @property
    def read_size(self) -> int:
        """The number of messages to read at once: so many always contain the end of an episode."""
        return self.most + self.around


def find_boundaries(messages: Sequence[Message], rules: EpisodeRules | None = None) -> list[int]:
    """Find the indexes at which one episode ends and the next begins; the last episode stays open.

    Messages that are added at the end do not change the boundaries before them. So an episode is closed only when
    `around` messages after its end are known.
    """
    rules = rules or EpisodeRules()
    found: list[int] = []
    start = 0
    while (stop := _episode_end(messages, start, rules)) is not None:
        found.append(stop)
        start = stop
    return found


def _episode_end(messages: Sequence[Message], start: int, rules: EpisodeRules) -> int | None:
    """Return the end of the episode that begins at *start*; None until enough messages are known."""
    known = range(start + 1, min(len(messages), start + rules.read_size + 1))
    broken = next((at for at in known if _breaks(messages, start, at, rules)), None)
    best, most = start + rules.most, -1.0
    for at in range(start + 1, start + rules.most + 1):
        if at == broken:
            return at
        stop = at + rules.around if broken is None else min(at + rules.around, broken)
        if stop > len(messages):
            return None
        if at < start + rules.fewest:
            continue
        weight = _weight(messages, (start, at, stop), rules)
        if weight >= rules.enough:
            return at
        if weight >= most:
            best, most = at, weight
    return best


def _breaks(messages: Sequence[Message], start: int, at: int, rules: EpisodeRules) -> bool:
    """Return whether an episode must end: after a long silence, or when a direct chat becomes a group or back."""
    kinds = {message.place.kind == "direct" for message in messages[at - 1 : at + 1]}
    return len(kinds) > 1 or _silence(messages, start, at) >= rules.long_gap


def _weight(messages: Sequence[Message], span: tuple[int, int, int], rules: EpisodeRules) -> float:
    """Return the sum of signs that a new episode begins in the middle of *span*: silence, a phrase, other keywords."""
    start, at, stop = span
    silence = _silence(messages, start, at)
    gap = 0.6 if silence >= rules.gap else 0.25 if silence >= rules.short_gap else 0.0
    marked = 0.5 if not messages[at].deleted and changes_topic(cut_text(messages[at].parts)) else 0.0
    return gap + marked + _shift(messages[max(start, at - rules.around) : at], messages[at:stop], rules)


def _silence(messages: Sequence[Message], start: int, at: int) -> float:
    """Seconds between the message at *at* and the one before it."""
    now = messages[at].sent_at
    if now is None or messages[at].deleted:
        return 0.0
    before = (messages[index] for index in range(at - 1, start - 1, -1))
    last = next((one.sent_at for one in before if one.sent_at is not None and not one.deleted), None)
    return 0.0 if last is None or last.tzinfo is None or now.tzinfo is None else (now - last).total_seconds()


def _shift(before: Sequence[Message], after: Sequence[Message], rules: EpisodeRules) -> float:
    """Return how different the keywords before and after are; `enough` if they have almost nothing in common."""
    old, new = _message_terms(before), _message_terms(after)
    if min(len(old), len(new)) < rules.words:
        return 0.0
    common = shared_terms(old, new)
    return 0.5 * (1 - common) if common > rules.unlike else rules.enough


def _message_terms(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset[str]().union(*(term_set(cut_text(message.parts)) for message in messages if not message.deleted))


def changes_topic(text: str) -> bool:
    """Return whether a message begins with a phrase that changes the topic: "by the way"."""
    opening = text[:_OPENING].casefold().lstrip(" \t\n\"'«„“(-–—*@")
    return any(
        opening.startswith(marker) and (marker[-1] >= _UNSPACED or not opening[len(marker) :][:1].isalnum())
        for marker in TOPIC_CHANGES
    )


def message_ranges(start: int, stops: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of the episodes that end at *stops*, the first of which begins at *start*."""
    return list(pairwise([start, *stops]))


class RankedEpisode(NamedTuple):
    """An episode with its relevance for a message, and its score."""

    episode: Episode
    relevance: float
    score: float


def rank_episodes(
    episodes: Sequence[Episode], target: Message, *, now: datetime, limit: int = MAX_EPISODES
) -> list[RankedEpisode]:
    """Rank the relevant episodes for *target*: 70 % relevance, 15 % importance, 15 % recency.

    The relevance is the share of the message's terms that an episode has, rare terms counting more.
    """
    wanted = term_set(cut_text(target.parts))
    weights = _term_weights(episodes, wanted)
    rated: list[RankedEpisode] = []
    for episode in episodes:
        relevance = _relevance(episode, wanted, weights)
        if relevance >= MIN_RELEVANCE and (episode.topic or episode.summary):
            worth = 0.7 * relevance + 0.15 * episode.importance + 0.15 * _recency(episode, now)
            rated.append(RankedEpisode(episode, relevance, worth))
    return sorted(rated, key=lambda one: (-one.score, -one.episode.start))[:limit]


def _term_weights(episodes: Sequence[Episode], wanted: frozenset[str]) -> dict[str, float]:
    """Return the weight of each wanted term: the fewer episodes have it, the more."""
    among = Counter(term for episode in episodes for term in _episode_terms(episode) & wanted)
    count = len(episodes)
    return {term: log(1 + (count + 1) / (1 + among[term])) for term in wanted}


def _relevance(episode: Episode, wanted: frozenset[str], weights: dict[str, float]) -> float:
    """Return the weighted share of the wanted terms that an episode has; more for tags, less for one term of
    several.
    """
    found = _episode_terms(episode) & wanted
    if not found:
        return 0.0
    share = sum(weights[term] for term in found) / sum(weights.values())
    if len(found) == 1 and len(wanted) > 2:
        return share * SINGLE_TERM_FACTOR
    return min(1.0, share + TAG_BONUS * len(found & term_set(" ".join((episode.topic, *episode.tags)))))


def _recency(episode: Episode, now: datetime) -> float:
    if episode.ended_at is None or episode.ended_at.tzinfo is None:
        return 0.0
    return float(0.5 ** (max(0.0, (now - episode.ended_at).total_seconds()) / HALF_LIFE))


def _episode_terms(episode: Episode) -> frozenset[str]:
    return term_set(" ".join((episode.topic, episode.summary, *episode.tags)))


def build_window_past(episodes: Sequence[Episode], *, since: int, start: int, most: int = MAX_PAST) -> WindowPast:
    """Build the text about the episodes from number *since* up to *start*, oldest first, in at most *most* characters.

    The newest episodes get topic and summary, until two thirds of the characters are used; the others, the most
    important first, get their topic alone; what does not fit is left out.
    """
    before = [one for one in episodes if since <= one.start < start and (one.topic or one.summary)]
    lines = _fitting_lines(before, most)
    shown = [episode for episode in before if episode.id in lines]
    return WindowPast(
        since=since,
        start=start,
        text="\n".join(lines[episode.id] for episode in shown),
        people=tuple(dict.fromkeys(person for episode in shown for person in episode.people)),
    )


def _fitting_lines(episodes: Sequence[Episode], most: int) -> dict[str, str]:
    """Return the lines that fit, by the id of the episode."""
    lines: dict[str, str] = {}
    remaining = most
    newest = [(episode, True) for episode in reversed(episodes)]
    most_important = [(episode, False) for episode in sorted(episodes, key=lambda one: (-one.importance, one.start))]
    for episode, whole in newest + most_important:
        if episode.id in lines or (whole and remaining < most // 3):
            continue
        line = _episode_line(episode, whole=whole)
        if line and len(line) + 1 <= remaining:
            remaining -= len(line) + 1
            lines[episode.id] = line
    return lines


def _episode_line(episode: Episode, *, whole: bool) -> str:
    """Return an episode on one line."""
    day = episode.began_at.date().isoformat() if episode.began_at else ""
    text = ": ".join(filter(None, (episode.topic, episode.summary))) if whole else episode.topic or episode.summary
    return " ".join(f"{day} {text}".split())
