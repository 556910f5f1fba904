"""Signatures are recognised by who issued them, for which model and which content."""

import pytest

from tertulia.sim.signatures import Signatures

SIGNATURES = Signatures("secret")
OURS = SIGNATURES.sign("gemini-3.8-flash", b"look")


@pytest.mark.parametrize(
    ("signature", "model", "content", "objection"),
    [
        (OURS, "gemini-3.8-flash", b"look", None),
        (OURS, "gemini-3.8-flash", None, None),
        (OURS.replace("+", "-").replace("/", "_").rstrip("="), "gemini-3.8-flash", b"look", None),
        (OURS, "gemini-3.8-flash", b"book", "Corrupted thought signature."),
        (OURS, "gemini-3.7-flash", b"look", "Invalid thought signature."),
        (
            Signatures("other").sign("gemini-3.8-flash", b"look"),
            "gemini-3.8-flash",
            None,
            "Corrupted thought signature.",
        ),
        ("Ã", "gemini-3.8-flash", None, "Corrupted thought signature."),
        ("skip_thought_signature_validator", "gemini-3.8-flash", b"look", None),
    ],
)
def test_a_signature_is_good_for_its_model_and_content(
    signature: str, model: str, content: bytes | None, objection: str | None
) -> None:
    assert SIGNATURES.objection(signature, model, content) == objection


def test_a_foreign_signature_is_good_once_it_is_adopted() -> None:
    signatures = Signatures("secret")
    signatures.adopt("b3du", "gemini-3.8-flash")

    assert [signatures.objection("b3du", model) for model in ("gemini-3.8-flash", "gemini-2.5-flash")] == [
        None,
        "Invalid thought signature.",
    ]
