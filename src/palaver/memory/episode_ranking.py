"""Ranks episodes by a message, and builds the summary of the messages before a window. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from math import log

from palaver.memory.episodes import Episode, WindowPast
from palaver.memory.retrieval.terms import term_set
from palaver.messages import Message
from palaver.parts import cut_text

MAX_EPISODES = 12  # more than a prompt shows: some may be in the window
MIN_RELEVANCE = 0.3
TAG_BONUS = 0.05  # on the relevance, for each tag that matches
SINGLE_TERM_FACTOR = 0.5  # one term of several may match by chance
HALF_LIFE = 30 * 86_400.0  # seconds
MAX_PAST = 4_000  # characters


def rank_episodes(
    episodes: Sequence[Episode], target: Message, *, now: datetime, limit: int = MAX_EPISODES
) -> list[Episode]:
    """Rank the relevant episodes for *target*: 70 % relevance, 15 % importance, 15 % recency.

    The relevance is the share of the message's terms that an episode has, rare terms counting more.
    """
    wanted = term_set(cut_text(target.parts))
    weights = _weights(episodes, wanted)
    rated: list[tuple[float, int, Episode]] = []
    for episode in episodes:
        relevance = _relevance(episode, wanted, weights)
        if relevance >= MIN_RELEVANCE and (episode.topic or episode.summary):
            worth = 0.7 * relevance + 0.15 * episode.importance + 0.15 * _recency(episode, now)
            rated.append((-worth, -episode.start, episode))
    return [episode for _, _, episode in sorted(rated, key=lambda one: one[:2])[:limit]]


def _weights(episodes: Sequence[Episode], wanted: frozenset[str]) -> dict[str, float]:
    """Return the weight of each wanted term: the fewer episodes have it, the more."""
    among = Counter(term for episode in episodes for term in _terms(episode) & wanted)
    count = len(episodes)
    return {term: log(1 + (count + 1) / (1 + among[term])) for term in wanted}


def _relevance(episode: Episode, wanted: frozenset[str], weights: dict[str, float]) -> float:
    """Return the weighted share of the wanted terms that an episode has; more for tags, less for one term of
    several.
    """
    found = _terms(episode) & wanted
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


def _terms(episode: Episode) -> frozenset[str]:
    return term_set(" ".join((episode.topic, episode.summary, *episode.tags)))


def build_window_past(episodes: Sequence[Episode], *, since: int, start: int, most: int = MAX_PAST) -> WindowPast:
    """Build the text about the episodes from number *since* up to *start*, oldest first, in at most *most* characters.

    The newest episodes get topic and summary, until two thirds of the characters are used; the others, the most
    important first, get their topic alone; what does not fit is left out.
    """
    before = [one for one in episodes if since <= one.start < start and (one.topic or one.summary)]
    lines = _fitting(before, most)
    shown = [episode for episode in before if episode.id in lines]
    return WindowPast(
        since=since,
        start=start,
        text="\n".join(lines[episode.id] for episode in shown),
        people=tuple(dict.fromkeys(person for episode in shown for person in episode.people)),
    )


def _fitting(episodes: Sequence[Episode], most: int) -> dict[str, str]:
    """Return the lines that fit, by the id of the episode."""
    lines: dict[str, str] = {}
    remaining = most
    newest = [(episode, True) for episode in reversed(episodes)]
    most_important = [(episode, False) for episode in sorted(episodes, key=lambda one: (-one.importance, one.start))]
    for episode, whole in newest + most_important:
        if episode.id in lines or (whole and remaining < most // 3):
            continue
        line = _line(episode, whole=whole)
        if line and len(line) + 1 <= remaining:
            remaining -= len(line) + 1
            lines[episode.id] = line
    return lines


def _line(episode: Episode, *, whole: bool) -> str:
    """Return an episode on one line."""
    day = episode.began_at.date().isoformat() if episode.began_at else ""
    text = ": ".join(filter(None, (episode.topic, episode.summary))) if whole else episode.topic or episode.summary
    return " ".join(f"{day} {text}".split())
