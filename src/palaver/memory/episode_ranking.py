"""Which episodes bear on what is said now, and what was said before a window begins. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from math import log

from palaver.memory.episodes import Episode, WindowPast, words_of
from palaver.memory.keywords import term_set
from palaver.messages import Message

MAX_EPISODES = 12  # more than are told: a window may show some of them
MIN_RELEVANCE = 0.3  # relevance below which nothing is recalled
TAG_BONUS = 0.05  # what a tag adds to a relevance
SINGLE_TERM_FACTOR = 0.5  # what one word of several counts: it may be there by chance
HALF_LIFE = 30 * 86_400.0  # seconds after which an episode counts half as recent
MAX_PAST = 4_000  # characters


def rank_episodes(
    episodes: Sequence[Episode], target: Message, *, now: datetime, limit: int = MAX_EPISODES
) -> list[Episode]:
    """The episodes that bear on *target*, the most telling first; none where none does."""
    asked = term_set(words_of(target))
    weights = _weights(episodes, asked)
    rated: list[tuple[float, int, Episode]] = []
    for episode in episodes:
        relevance = _by_words(episode, asked, weights)
        if relevance >= MIN_RELEVANCE and (episode.topic or episode.summary):
            worth = 0.7 * relevance + 0.15 * episode.importance + 0.15 * _recency(episode, now)
            rated.append((-worth, -episode.start, episode))
    return [episode for _, _, episode in sorted(rated, key=lambda one: one[:2])[:limit]]


def _weights(episodes: Sequence[Episode], asked: frozenset[str]) -> dict[str, float]:
    """What each word that is asked for weighs: one that stands in every episode tells none from another."""
    among = Counter(term for episode in episodes for term in _terms(episode) & asked)
    count = len(episodes)
    return {term: log(1 + (count + 1) / (1 + among[term])) for term in asked}


def _by_words(episode: Episode, asked: frozenset[str], weights: dict[str, float]) -> float:
    """Which share of what is asked for an episode holds; more for its tags, less for one word of many."""
    found = _terms(episode) & asked
    if not found:
        return 0.0
    share = sum(weights[term] for term in found) / sum(weights.values())
    if len(found) == 1 and len(asked) > 2:
        return share * SINGLE_TERM_FACTOR
    return min(1.0, share + TAG_BONUS * len(found & term_set(" ".join((episode.topic, *episode.tags)))))


def _recency(episode: Episode, now: datetime) -> float:
    if episode.ended_at is None or episode.ended_at.tzinfo is None:
        return 0.0
    return float(0.5 ** (max(0.0, (now - episode.ended_at).total_seconds()) / HALF_LIFE))


def _terms(episode: Episode) -> frozenset[str]:
    return term_set(" ".join((episode.topic, episode.summary, *episode.tags)))


def build_window_past(episodes: Sequence[Episode], *, since: int, start: int, most: int = MAX_PAST) -> WindowPast:
    """What was said from number *since* on and before *start*, in at most so many characters, the oldest first.

    The newest are told with what happened, those before them with what they were about; the least important go first.
    """
    before = [one for one in episodes if since <= one.start < start and (one.topic or one.summary)]
    lines = _fitting(before, most)
    told = [episode for episode in before if episode.id in lines]
    return WindowPast(
        since=since,
        start=start,
        text="\n".join(lines[episode.id] for episode in told),
        people=tuple(dict.fromkeys(person for episode in told for person in episode.people)),
    )


def _fitting(episodes: Sequence[Episode], most: int) -> dict[str, str]:
    """The lines that fit, by the ids of their episodes."""
    lines: dict[str, str] = {}
    room = most
    newest = [(episode, True) for episode in reversed(episodes)]
    weighty = [(episode, False) for episode in sorted(episodes, key=lambda one: (-one.importance, one.start))]
    for episode, whole in newest + weighty:
        if episode.id in lines or (whole and room < most // 3):
            continue
        line = _line(episode, whole=whole)
        if line and len(line) + 1 <= room:
            room -= len(line) + 1
            lines[episode.id] = line
    return lines


def _line(episode: Episode, *, whole: bool) -> str:
    """An episode on one line."""
    day = episode.began_at.date().isoformat() if episode.began_at else ""
    told = ": ".join(filter(None, (episode.topic, episode.summary))) if whole else episode.topic or episode.summary
    return " ".join(f"{day} {told}".split())
