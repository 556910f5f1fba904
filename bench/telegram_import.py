"""Import of a large export of Telegram Desktop: messages a second and peak memory, for the log and for all of it.

    .venv/bin/python bench/telegram_import.py --messages 1000000

The export is generated: forty people, a third of the messages reply, a tenth are photos. Each line is measured in a
process of its own: the messages alone, then the whole command with the index and the episodes, then the command again,
which adds nothing.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import WORDS

BOT = "4242"
CHUNK = 1 << 20
BATCH = 2_000
START = 1_700_000_000


def write_export(path: Path, count: int) -> None:
    chance = random.Random(1)
    words = [*WORDS["Latin"], *WORDS["Cyrillic"]]
    with path.open("w", encoding="utf-8") as file:
        file.write('{\n "name": "Friends",\n "type": "private_supergroup",\n "id": 1234567890,\n "messages": [')
        for number in range(1, count + 1):
            entry = json.dumps(_entry(number, chance, words), ensure_ascii=False, indent=1)
            file.write(("," if number > 1 else "") + "\n  " + entry.replace("\n", "\n  "))
        file.write("\n ]\n}")


def _entry(number: int, chance: random.Random, words: list[str]) -> dict[str, Any]:
    text = " ".join(chance.choices(words, k=chance.randrange(2, 25)))
    person, second = chance.randrange(40), START + 37 * number
    entry: dict[str, Any] = {
        "id": number,
        "type": "message",
        "date": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)),
        "date_unixtime": str(second),
        "from": f"Person {person}",
        "from_id": f"user{1000 + person}",
    }
    if number > 10 and chance.random() < 1 / 3:
        entry["reply_to_message_id"] = number - chance.randrange(1, 10)
    if chance.random() < 0.1:
        entry |= {"photo": "(File not included. Change data exporting settings to download.)", "width": 9, "height": 9}
    return {**entry, "text": text, "text_entities": [{"type": "plain", "text": text}]}


async def import_messages(export: Path, db: Path) -> None:
    """Store the messages, without the index and the episodes."""
    from tertulia.formats.imported import ImportedMessage
    from tertulia.formats.json_stream import JsonStream
    from tertulia.formats.telegram_export import TelegramExport
    from tertulia.store import Store

    def chunks() -> Iterator[bytes]:
        with export.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    found = TelegramExport(bot_id=BOT).read(JsonStream(chunks()))
    async with Store.open(db) as store:
        while batch := [item for item in islice(found, BATCH) if isinstance(item, ImportedMessage)]:
            await store.imports.add(batch)


def measure(*command: str) -> dict[str, float]:
    """Run a command; return its seconds, its CPU seconds and its peak memory in megabytes."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    return {
        "seconds": time.perf_counter() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--store", nargs=2, metavar=("EXPORT", "DB"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.store:
        asyncio.run(import_messages(*map(Path, options.store)))
        return
    with tempfile.TemporaryDirectory() as folder:
        export, alone, whole = (Path(folder, name) for name in ("result.json", "alone.db", "whole.db"))
        write_export(export, options.messages)
        command = ("-m", "tertulia", "import", str(export), "--bot", BOT, "--db", str(whole))
        works = {
            "the messages": (__file__, "--store", str(export), str(alone)),
            "with index and episodes": command,
            "again": command,
        }
        print(f"{options.messages:,} messages, an export of {export.stat().st_size / 1e6:.0f} MB\n")
        print("| import | messages/s | messages/s of CPU | seconds | peak MB |\n|---|---|---|---|---|", flush=True)
        for name, work in works.items():
            row = measure(*work)
            rates = (f"{options.messages / row[key]:,.0f}" for key in ("seconds", "cpu"))
            line = f"| {name} | {' | '.join(rates)} | {row['seconds']:.0f} | {row['megabytes']:.0f} |"
            print(line, flush=True)
        print(f"\nthe store has {whole.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
