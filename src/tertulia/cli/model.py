"""`tertulia model`: the models that run in this process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import model_names
from tertulia.cli.output import INTERRUPTED, ProgressBar, one_line, print_json, print_table
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.models.local import LocalModel

models = typer.Typer(
    help="The models that run here, without a key or a service.",
    epilog="Example: tertulia model get qwen",
    no_args_is_help=True,
    rich_markup_mode=None,
)
AsJson = Annotated[bool, typer.Option("--json", help="Output for machines.")]


def _fetched_names() -> list[str]:
    from tertulia.models.local import list_models

    return [model.name for model in list_models() if model.removable]


@models.command("list", epilog="Example: tertulia model list")
def list_(as_json: AsJson = False) -> None:
    """List the models that tertulia knows and the files that you fetched. `tertulia chat --model` takes each name."""
    from tertulia.models.local import list_models, size_text

    found = list_models()
    if as_json:
        names = ("name", "size", "fetched", "about")
        print_json([{**{n: getattr(m, n) for n in names}, "path": m.path and str(m.path)} for m in found])
        return
    rows = [
        (one_line(m.name), size_text(m.size), _here(m), one_line(m.about, None), one_line(str(m.path or ""), None))
        for m in found
    ]
    print_table(("NAME", "SIZE", "HERE", "WHAT IT IS GOOD FOR", "WHERE"), rows)


def _here(model: "LocalModel") -> str:
    """`yes`, `no`, or how much of it came: `4 %, 48 MB`"""
    from tertulia.models.local import size_text

    if model.path or not model.fetched:
        return "yes" if model.path else "no"
    share = f"{100 * model.fetched // model.size} %, " if model.size else ""
    return f"{share}{size_text(model.fetched)}"


@models.command("get", epilog="Example: tertulia model get qwen")
def get(
    name: Annotated[
        str,
        typer.Argument(
            help="smollm2 (98 MB), qwen (1.1 GB), or the https address of a .gguf file.",
            metavar="NAME|URL",
            autocompletion=model_names,
        ),
    ],
    sha256: Annotated[
        str, typer.Option("--sha256", metavar="HEX", help="The digest that the file at URL must have.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Fetch a model and what runs it. What came before an interruption is not fetched again.

    Without --sha256 the digest of a file is printed, so that it can be compared. Such a file must come by https.
    """
    from tertulia.models.local import fetch_runtime, fetch_url, fetch_weights, find_weights, has_runtime, size_text
    from tertulia.models.local.download import file_name
    from tertulia.models.local.packages import RUNTIME_SIZE
    from tertulia.models.local.weights import WEIGHTS, weights_named

    if "://" in name:
        with _progress(f"fetching {file_name(name)}") as bar:
            fetched = fetch_url(name, sha256=sha256, progress=bar.show_bytes)
        path, digest = fetched.path, fetched.sha256
        name = path.name
    else:
        weights = weights_named(name)
        if sha256:
            raise InvalidValue(f"--sha256 goes with a URL; the digest of {name} is known")
        told = f"fetching {name}: {size_text(weights.size)}" if find_weights(name) is None else ""
        with _progress(told) as bar:
            path = fetch_weights(name, progress=bar.show_bytes)
        digest = WEIGHTS[name].sha256
    if not has_runtime():
        with _progress(f"fetching xllamacpp, which runs it: {size_text(RUNTIME_SIZE)}") as bar:
            fetch_runtime(progress=bar.show_bytes)
    if as_json:
        print_json({"name": name, "path": str(path), "sha256": digest})
        return
    typer.echo(f"{name} is at {path}")
    if name not in WEIGHTS and not sha256:
        typer.echo(f"sha256 {digest}")


@models.command("rm", epilog="Example: tertulia model rm qwen")
def rm(
    name: Annotated[str, typer.Argument(help="A name of `tertulia model list`.", autocompletion=_fetched_names)],
    as_json: AsJson = False,
) -> None:
    """Delete a fetched model, also one that came only in part."""
    from tertulia.models.local import remove_model, size_text

    freed = remove_model(name)
    if as_json:
        print_json({"name": name, "freed": freed})
        return
    typer.echo(f"{name} is deleted: {size_text(freed)} are free again")


@contextmanager
def _progress(told: str) -> Iterator[ProgressBar]:
    """Say what is being fetched, and show a bar for it; Ctrl-C ends the command."""
    if told:
        print(told, file=sys.stderr, flush=True)
    bar = ProgressBar(sys.stderr)
    try:
        yield bar
    except KeyboardInterrupt:
        bar.note("interrupted; the same command fetches the rest")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.end()


def add_to(app: typer.Typer) -> None:
    app.add_typer(models, name="model")
