"""`palaver memory`: what is known of people, why, and forgetting it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.files import DB, beside
from palaver.cli.streams import write_json
from palaver.cli.tables import counted, json_of, local, one_line, place_words, say, short_ids, show, the_id
from palaver.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.memory.facts import Fact, Subject
    from palaver.messages import Message
    from palaver.store import Store

memories = typer.Typer(
    help="See what is known of people and why, and forget it.",
    epilog="Example: palaver memory list",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HEAD = ("id", "about", "fact", "said in", "for", "sure", "learned", "until")
REASONS = ("who", "when", "where", "said")
HEARD = {"chat": "that chat", "direct": "their direct chats", "everywhere": "wherever they ask"}

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
About = Annotated[str | None, typer.Option(metavar="AUTHOR", help="Only what is about the person with this id.")]
Platform = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which platform. Default: the only one that knows the id.")
]


@memories.command("list", epilog="Example: palaver memory list --about 123456789")
def listed(
    about: About = None,
    platform: Platform = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what no longer holds.")] = False,
    as_json: Json = False,
    db: DB = None,
) -> None:
    """Show what is known of people. A bot may be running meanwhile."""
    import asyncio

    known = asyncio.run(_known(db, about, platform))
    found = [fact for fact in known if everything or fact.superseded_by is None]
    if as_json:
        write_json(json_of(found))
    elif found:
        _show(found, short_ids(fact.id for fact in known))
    else:
        say("nothing is remembered")


@memories.command("why", epilog="Example: palaver memory why fact-3f9a")
def why(
    fact: Annotated[str, typer.Argument(metavar="ID", help="The fact; the beginning of its id does.")],
    as_json: Json = False,
    db: DB = None,
) -> None:
    """Show the messages that a fact was learned from."""
    import asyncio

    found, messages = asyncio.run(_reasons(db, fact))
    if as_json:
        write_json(json_of({"fact": found, "messages": messages}))
        return
    say(f"{_named(found)}: {one_line(found.text, None)}", bold=True)
    if messages:
        show(REASONS, [_reason(message) for message in messages], [False] * len(messages))
    else:
        say("the messages it was learned from are hidden, or gone")


@memories.command("forget", epilog="Example: palaver memory forget fact-3f9a")
def forget(
    facts: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The facts; the beginnings of their ids do.")
    ] = None,
    about: Annotated[
        str | None, typer.Option(metavar="AUTHOR", help="All that is about the person with this id.")
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
        write_json(json_of({"forgotten": gone}))
        return
    for fact in gone:
        say(f"forgotten: {_named(fact)}: {one_line(fact.text, None)}")
    if not gone:
        say("nothing is remembered of them")


@memories.command("export", epilog="Example: palaver memory export --about 123456789 > alice.jsonl")
def export(about: About = None, platform: Platform = None, db: DB = None) -> None:
    """Write all facts as JSON, one a line, with the messages they were learned from."""
    import asyncio

    for fact, messages in asyncio.run(_exported(db, about, platform)):
        sys.stdout.buffer.write(json_of({"fact": fact, "messages": messages}) + b"\n")
    sys.stdout.buffer.flush()


def add_to(app: typer.Typer) -> None:
    app.add_typer(memories, name="memory")


async def _known(db: Path | None, about: str | None, platform: str | None) -> "Sequence[Fact]":
    async with beside(db) as store:
        return await _facts(store, about, platform)


async def _facts(store: "Store", about: str | None, platform: str | None) -> "Sequence[Fact]":
    if about is None and platform is not None:
        raise InvalidValue("--platform goes with --about")
    known = await store.facts.listed()
    return known if about is None else await store.facts.listed(_whom(known, about, platform))


def _whom(known: "Sequence[Fact]", about: str, platform: str | None) -> "Subject":
    """The person of that id, of whom something is known."""
    found = {fact.subject.platform: fact.subject for fact in known if fact.subject.id == about}
    wanted = {name: subject for name, subject in found.items() if platform in (None, name)}
    if not wanted:
        where = f" on {one_line(platform)}" if platform is not None else ""
        raise InvalidValue(f"nothing is remembered of anybody with the id {one_line(about)}{where}")
    if len(wanted) > 1:
        these = ", ".join(map(one_line, sorted(wanted)))
        raise InvalidValue(f"{one_line(about)} is somebody on each of {these}; say which with --platform")
    return wanted.popitem()[1]


async def _reasons(db: Path | None, given: str) -> "tuple[Fact, Sequence[Message]]":
    async with beside(db) as store:
        known = {fact.id: fact for fact in await store.facts.listed()}
        name = the_id(given, known, "fact")
        return known[name], await store.facts.why(name)


async def _forget(db: Path | None, given: "Sequence[str]", about: str | None, platform: str | None) -> "Sequence[Fact]":
    async with beside(db) as store:
        before = {fact.id: fact for fact in await store.facts.listed()}
        if about is not None:
            await store.facts.forget_all(_whom(list(before.values()), about, platform))
        await store.facts.forget([the_id(one, before, "fact") for one in given])
        left = {fact.id for fact in await store.facts.listed()}
    return [fact for fact in before.values() if fact.id not in left]


async def _exported(db: Path | None, about: str | None, platform: str | None) -> "list[tuple[Fact, Sequence[Message]]]":
    async with beside(db) as store:
        return [(fact, await store.facts.why(fact.id)) for fact in await _facts(store, about, platform)]


def _show(found: "Sequence[Fact]", names: dict[str, str]) -> None:
    rows = [
        (
            names[fact.id],
            _who(fact.subject.name, fact.subject.id),
            one_line(fact.text),
            place_words(fact.place),
            HEARD[fact.scope],
            f"{fact.confidence:.0%}",
            local(fact.learned_at),
            local(fact.held_until) if fact.held_until else "",
        )
        for fact in found
    ]
    show(HEAD, rows, [False] * len(found))


def _reason(message: "Message") -> tuple[str, ...]:
    from palaver.parts import Text

    said = " ".join(part.text for part in message.parts if isinstance(part, Text))
    when = local(message.sent_at) if message.sent_at else ""
    return (
        _who(message.author.name, message.author.id),
        when,
        place_words(message.place),
        one_line(said) or f"({counted(len(message.parts), 'parts')} without words)",
    )


def _named(fact: "Fact") -> str:
    return f"{one_line(fact.id, None)} about {_who(fact.subject.name, fact.subject.id)}"


def _who(name: str, author_id: str) -> str:
    return one_line(f"{name} ({author_id})" if name else author_id)
