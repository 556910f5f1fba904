"""`tertulia memory`: the facts about people, their sources, and forgetting them."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, Platform, choose_platform, open_beside
from tertulia.cli.output import (
    author_label,
    count_of,
    local_time,
    one_line,
    place_label,
    print_json,
    print_line,
    print_table,
    resolve_id,
    short_ids,
    to_json,
)
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tertulia.memory.values import Fact, Subject
    from tertulia.messages import Message
    from tertulia.store import Store

memories = typer.Typer(
    help="Show the facts about people and their sources, and forget them.",
    epilog="Example: tertulia memory list",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HEAD = ("id", "about", "fact", "said in", "for", "sure", "learned", "until")
SOURCES_HEAD = ("who", "when", "where", "said")
SCOPES = {"chat": "that chat", "direct": "their direct chats", "everywhere": "wherever they ask"}

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
About = Annotated[str | None, typer.Option(metavar="AUTHOR", help="Only facts about the person with this id.")]


@memories.command("list", epilog="Example: tertulia memory list --about 123456789")
def list_facts(
    about: About = None,
    platform: Platform = None,
    everything: Annotated[bool, typer.Option("--all", help="Also facts that no longer hold.")] = False,
    as_json: Json = False,
    db: DB = None,
) -> None:
    """Show the facts about people. A bot may be running meanwhile."""
    import asyncio

    known = asyncio.run(_read_facts(db, about, platform))
    found = [fact for fact in known if everything or fact.superseded_by is None]
    if as_json:
        print_json(found)
    elif found:
        _print_facts(found, short_ids(fact.id for fact in known))
    else:
        print_line("nothing is remembered")


@memories.command("why", epilog="Example: tertulia memory why fact-3f9a")
def why(
    fact: Annotated[str, typer.Argument(metavar="ID", help="The fact; the beginning of its id is enough.")],
    as_json: Json = False,
    db: DB = None,
) -> None:
    """Show the messages that a fact was learned from."""
    import asyncio

    found, messages = asyncio.run(_read_sources(db, fact))
    if as_json:
        print_json({"fact": found, "messages": messages})
        return
    print_line(f"{_fact_label(found)}: {one_line(found.text, None)}", bold=True)
    if messages:
        print_table(SOURCES_HEAD, [_source_row(message) for message in messages])
    else:
        gone = "the messages it was learned from are hidden, or gone"
        names_none = f"imported from {one_line(found.imported_from)}, which names no message of it"
        print_line(gone if found.sources else names_none)


@memories.command("forget", epilog="Example: tertulia memory forget fact-3f9a")
def forget(
    facts: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The facts; the beginnings of their ids are enough.")
    ] = None,
    about: Annotated[
        str | None, typer.Option(metavar="AUTHOR", help="All facts about the person with this id.")
    ] = None,
    platform: Platform = None,
    as_json: Json = False,
    db: DB = None,
) -> None:
    """Remove facts for good, and hide the messages they came from. A bot may be running meanwhile."""
    import asyncio

    if bool(facts) == (about is not None):
        raise InvalidValue("say which facts to forget by their ids, or whose with --about")
    gone = asyncio.run(_forget(db, facts or [], about, platform))
    if as_json:
        print_json({"forgotten": gone})
        return
    for fact in gone:
        print_line(f"forgotten: {_fact_label(fact)}: {one_line(fact.text, None)}")
    if not gone:
        print_line("nothing is remembered of them")


@memories.command("export", epilog="Example: tertulia memory export --about 123456789 > alice.jsonl")
def export(about: About = None, platform: Platform = None, db: DB = None) -> None:
    """Write all facts as JSON, one a line, with the messages they were learned from."""
    import asyncio

    for fact, messages in asyncio.run(_export(db, about, platform)):
        sys.stdout.buffer.write(to_json({"fact": fact, "messages": messages}) + b"\n")
    sys.stdout.buffer.flush()


def add_to(app: typer.Typer) -> None:
    app.add_typer(memories, name="memory")


async def _read_facts(db: str | None, about: str | None, platform: str | None) -> "Sequence[Fact]":
    async with open_beside(db) as store:
        return await _facts(store, about, platform)


async def _facts(store: "Store", about: str | None, platform: str | None) -> "Sequence[Fact]":
    if about is None and platform is not None:
        raise InvalidValue("--platform goes with --about")
    known = await store.facts.listed()
    return known if about is None else await store.facts.listed(_find_subject(known, about, platform))


def _find_subject(facts: "Sequence[Fact]", about: str, platform: str | None) -> "Subject":
    """Return the person with that id among the subjects of facts."""
    subjects = {fact.subject.platform: fact.subject for fact in facts if fact.subject.id == about}
    where = f" on {one_line(platform)}" if platform is not None else ""
    unknown = f"nothing is remembered of anybody with the id {one_line(about)}{where}"
    return choose_platform(subjects, about, platform, unknown=unknown)[1]


async def _read_sources(db: str | None, given: str) -> "tuple[Fact, Sequence[Message]]":
    async with open_beside(db) as store:
        known = {fact.id: fact for fact in await store.facts.listed()}
        name = resolve_id(given, known, "fact")
        return known[name], await store.facts.why(name)


async def _forget(db: str | None, given: "Sequence[str]", about: str | None, platform: str | None) -> "Sequence[Fact]":
    async with open_beside(db) as store:
        before = {fact.id: fact for fact in await store.facts.listed()}
        if about is not None:
            await store.facts.forget_all(_find_subject(list(before.values()), about, platform))
        await store.facts.forget([resolve_id(one, before, "fact") for one in given])
        left = {fact.id for fact in await store.facts.listed()}
    return [fact for fact in before.values() if fact.id not in left]


async def _export(db: str | None, about: str | None, platform: str | None) -> "list[tuple[Fact, Sequence[Message]]]":
    async with open_beside(db) as store:
        return [(fact, await store.facts.why(fact.id)) for fact in await _facts(store, about, platform)]


def _print_facts(facts: "Sequence[Fact]", names: dict[str, str]) -> None:
    rows = [
        (
            names[fact.id],
            author_label(fact.subject.name, fact.subject.id),
            one_line(fact.text),
            place_label(fact.place),
            SCOPES[fact.scope],
            f"{fact.confidence:.0%}",
            local_time(fact.learned_at),
            local_time(fact.held_until) if fact.held_until else "",
        )
        for fact in facts
    ]
    print_table(HEAD, rows)


def _source_row(message: "Message") -> tuple[str, ...]:
    when = local_time(message.sent_at) if message.sent_at else ""
    return (
        author_label(message.author.name, message.author.id),
        when,
        place_label(message.place),
        one_line(message.text) or f"({count_of(len(message.parts), 'parts')} without words)",
    )


def _fact_label(fact: "Fact") -> str:
    return f"{one_line(fact.id, None)} about {author_label(fact.subject.name, fact.subject.id)}"
