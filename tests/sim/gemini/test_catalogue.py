"""A catalogue serves the models it is given, or every id by the rules that its name tells."""

import pytest

from tertulia.sim.gemini import MODELS, Model
from tertulia.sim.gemini.catalogue import Catalogue


def test_only_the_models_that_are_given_are_found() -> None:
    own = Model(name="mine", input_limit=10)
    catalogue = Catalogue(["models/gemini-2.0-flash", own])

    found = [catalogue.find(name, "v1beta") for name in ("gemini-2.0-flash", "mine", "gemini-3.8-flash")]

    assert found == [Model(name="gemini-2.0-flash", output_limit=8192), own, None]


@pytest.mark.parametrize(("version", "name"), [("v1beta", "gemini-3.8-flash"), ("v1", None)])
def test_an_alias_stands_for_its_model_in_beta_versions(version: str, name: str | None) -> None:
    found = Catalogue(MODELS).find("gemini-flash-latest", version)

    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gemini-2.0-flash", Model(name="gemini-2.0-flash", output_limit=8192)),
        ("gemini-3.9-flash-nano", Model(name="gemini-3.9-flash-nano")),
        ("gemma-4-2b-it", Model(name="gemma-4-2b-it", input_limit=262_144, output_limit=32_768)),
        ("gemini-1.5-pro", Model(name="gemini-1.5-pro")),
        ("gemini-flash-latest", Model(name="gemini-3.8-flash")),
    ],
)
def test_every_id_is_found_where_any_will_do(name: str, model: Model) -> None:
    assert Catalogue(None).find(name, "v1") == model


def test_any_model_has_the_rules_of_its_name() -> None:
    names = ("gemini-2.5-ultra", "gemma-4-2b-it", "my-embedding-7")
    models = [Catalogue(None).find(name, "v1beta") for name in names]

    assert [(model.caches, model.embeds) for model in models if model] == [(True, False), (False, False), (False, True)]
