"""What a bot needs is imported from `tertulia` itself."""

import re
import subprocess
import sys
from pathlib import Path

import tertulia
from tertulia import errors

DOCS = [*(Path(__file__).parent.parent / "docs").glob("*.md"), Path(__file__).parent.parent / "README.md"]
NEEDED = (
    "Engine Chat Memory Persona Behavior Platform Delivery RunContext Message Reply Media Author Place Store Settings "
    "tool model_named"
).split()


NAMES = dir(tertulia)
IMPORT = re.compile(r"^\s*from (tertulia\.(?!sim)[\w.]+) import ([\w, ]+)$", re.MULTILINE)


def test_everything_a_bot_needs_is_there() -> None:
    assert set(NEEDED) <= set(NAMES)


def test_every_name_is_there_and_every_error() -> None:
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}

    assert all(getattr(tertulia, name) is not None for name in NAMES)
    assert raised <= set(NAMES)


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys, tertulia; print([name for name in sys.modules if name.startswith('tertulia.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_docs_import_public_names_from_there() -> None:
    found = []
    for page in DOCS:
        for module, names in IMPORT.findall(page.read_text()):
            found += [(page.name, module, name) for name in re.split(r",\s*", names) if name in NAMES]

    assert found == []
