import json

from people import NOON
from tertulia.formats.document import read_conversation
from tertulia.formats.importers import as_document, as_messages, import_conversation
from tertulia.messages import Author


def authors_in(text: str, **given: str) -> list[Author]:
    return [
        message.author
        for message in as_messages(import_conversation(text.encode(), **given))
        if message.author.persona is None
    ]


def contents(*texts: str) -> str:
    return json.dumps([{"role": "user", "parts": [{"text": text}]} for text in texts])


def test_deleted_accounts_are_nobodys_and_stay_apart_by_their_ids() -> None:
    compact = "Deleted Account#1: a\nDeleted\u200b  account#2: b\nAlice#3: c\n"
    blocks = contents('[meta] user_id=1 name="Deleted Account"\na', '[meta] user_id=2 name="deleted user"\nb')

    assert authors_in(compact) == [
        Author(id="1", name="Deleted Account", unknown=True),
        Author(id="2", name="Deleted\u200b  account", unknown=True),
        Author(id="3", name="Alice"),
    ]
    assert [(one.id, one.unknown) for one in authors_in(blocks)] == [("1", True), ("2", True)]


def test_who_is_not_named_has_an_id_that_nobody_else_has() -> None:
    named = [{"role": "user", "name": name, "content": "x"} for name in ("person", "person-", "\u200b")]
    openai = json.dumps([*named, {"role": "user", "content": "y"}])
    blocks = contents('[meta] name="person"\na', "[meta] chat_id=5\nb", '[meta] name="\u200b"\nc', "d")

    assert [(one.id, one.unknown) for one in authors_in(openai)] == [
        ("person", False),
        ("person-", False),
        ("person--", True),
        ("person--", True),
    ]
    assert [(one.id, one.unknown) for one in authors_in(blocks, form="meta")] == [
        ("person", False),
        ("person-", True),
        ("person-", True),
        ("person-", True),
    ]


def test_a_document_says_who_is_unknown() -> None:
    document = as_document(import_conversation(b"Deleted Account#1: a\nAlice#3: c\n"), now=NOON)

    assert [entry["author"].get("unknown", False) for entry in document["messages"]] == [True, False]
    assert read_conversation({**document, "target": "1"}).target.author.unknown
