"""Summaries of people, kept for each place: none is shown that tells what does not hold, or is not to be heard."""

from collections.abc import Sequence
from datetime import datetime

from palaver.memory.facts import Subject, Summary
from palaver.messages import Place
from palaver.store.hearing import SAID, UNHEARD, author_of
from palaver.store.people import find_place, keep_author, keep_place
from palaver.store.sqlite import Database
from palaver.store.values import checked, clean
from palaver.timezones import utc


def summary_of(database: Database, subject: Subject, place: Place, now: datetime) -> Summary | None:
    select = f"""SELECT text, facts, digest, made_at FROM summaries s WHERE about = ? AND place = ? AND direct = ?
        AND about NOT IN (SELECT author FROM blocked) AND NOT EXISTS (
            SELECT 1 FROM facts f WHERE f.about = s.about AND f.superseded_by IS NULL
            AND f.held_until > s.made_at AND f.held_until <= ?  -- it has ceased to hold since
        ) AND NOT EXISTS (
            SELECT 1 FROM facts f JOIN {SAID} JOIN blocked b ON b.author = n.author
            WHERE c.fact = f.id AND f.about = s.about AND b.at >= s.made_at
        )"""  # noqa: S608
    heard = (author_of(database, subject), find_place(database, place), int(place.kind == "direct"))
    row = database.execute(select, (*heard, now.isoformat())).fetchone()
    if row is None:
        return None
    text, facts, digest, made_at = row
    made = datetime.fromisoformat(made_at)
    return checked(Summary(subject=subject, place=place, text=text, facts=facts, digest=digest, made_at=made))


def keep_summary(database: Database, summary: Summary, made_of: Sequence[str]) -> None:
    """Keep a summary, unless a fact it was made of is gone or superseded meanwhile, or not to be heard."""
    select = f"SELECT 1 FROM facts f WHERE fact_id = ? AND superseded_by IS NULL AND NOT {UNHEARD}"  # noqa: S608
    if any(database.execute(select, (clean(fact_id),)).fetchone() is None for fact_id in made_of):
        return
    keep = """INSERT INTO summaries (about, place, direct, text, facts, digest, made_at) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (about, place, direct) DO UPDATE
        SET text = excluded.text, facts = excluded.facts, digest = excluded.digest, made_at = excluded.made_at"""
    whom = keep_author(database, summary.subject.platform, summary.subject.id)
    said = (clean(summary.text), summary.facts, clean(summary.digest), utc(summary.made_at).isoformat())
    direct = int(summary.place.kind == "direct")
    database.execute(keep, (whom, keep_place(database, summary.place), direct, *said))
