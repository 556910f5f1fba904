"""A dump of cw-telegram-agent gives what its models said of media, under the ids that bots have."""

import pytest

from tertulia.errors import InvalidValue
from tertulia.formats.cw import NO_ID, NO_SOURCE, NOT_DESCRIBED, bots_unique_id, read_dump, read_rows
from tertulia.formats.imported import ImportedDescription, Skipped

TABLE = """CREATE TABLE `media_metadata` (
  `unique_id` varchar(255) NOT NULL,
  `kind` varchar(50) DEFAULT NULL,
  `description` text,
  PRIMARY KEY (`unique_id`)
) ENGINE=InnoDB;
"""


# pairs of a document's number and the id that the Bot API gave it, as libraries that decode `file_id` publish them
@pytest.mark.parametrize(
    ("document", "expected"), [(46033261910035204, "AgADBAsAAgKLowAB"), (1282363671355326586, "AgADegAD997LEQ")]
)
def test_a_document_has_the_id_that_bots_get(document: int, expected: str) -> None:
    assert bots_unique_id(document) == expected


def test_descriptions_are_read_and_the_rest_is_counted() -> None:
    rows = [
        r"('46033261910035204','sticker','It''s \"it\",\n(a cat); \\o/')",
        "('5','photo','a street')",
        "('AgADx','gif','a wave')",
        "('7','gif',NULL)",
        "('8','gif',' ')",
    ]
    dump = f"-- MySQL dump\n{TABLE}INSERT INTO `media_metadata` VALUES {','.join(rows)};\n"  # noqa: S608 - a dump
    dump += "INSERT INTO `memories` VALUES ('a',1),('b',2);\nINSERT INTO `schedules` VALUES (1);\n"

    found = list(read_dump(dump.splitlines(keepends=True)))

    assert found == [
        ImportedDescription(unique_id="AgADBAsAAgKLowAB", words='It\'s "it",\n(a cat); \\o/'),
        Skipped(reason=NO_ID),
        Skipped(reason=NO_ID),
        Skipped(reason=NOT_DESCRIBED),
        Skipped(reason=NOT_DESCRIBED),
        Skipped(reason=NO_SOURCE),
        Skipped(reason=NO_SOURCE),
    ]


def test_values_of_each_kind_are_read() -> None:
    line = "INSERT INTO `t` (`a`, `b`, `c`, `d`) VALUES (1,-2.5e3,NULL,_binary 'x'),(0,'','NULL','a\\'b');\n"

    assert list(read_rows([line])) == [
        ("t", {"a": "1", "b": "-2.5e3", "c": None, "d": "x"}),
        ("t", {"a": "0", "b": "", "c": "NULL", "d": "a'b"}),
    ]


@pytest.mark.parametrize("line", ["INSERT INTO `t` (`a`) VALUES (1,'a", "INSERT INTO `t` (`a`) VALUES (1"])
def test_a_dump_that_ends_within_a_row_is_refused(line: str) -> None:
    with pytest.raises(InvalidValue, match="the dump ends within a row"):
        list(read_rows([line]))


def test_other_dumps_are_refused() -> None:
    with pytest.raises(InvalidValue, match="not one of cw-telegram-agent"):
        list(read_dump(["-- MySQL dump\n", "INSERT INTO `other` VALUES (1);\n"]))
