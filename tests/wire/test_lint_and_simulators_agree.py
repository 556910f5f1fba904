"""The linter and the simulators were written apart from one page of rules; on any request they say the same."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from strategies import GEMINI_MODELS, OPENAI_MODELS
from tertulia.sim.gemini import rules as gemini
from tertulia.sim.openai import rules as openai
from tertulia.sim.openai.errors import OpenAIRefusal
from tertulia.wire import Violation, lint
from wire.requests import gemini_requests, openai_requests

pytestmark = pytest.mark.torture


def agree(refusal: gemini.GeminiRefusal | OpenAIRefusal | None, violations: Iterable[Violation]) -> None:
    """The linter finds the rule that the simulator refuses by, and nothing where it accepts."""
    event(f"refused by {refusal.rule}" if refusal else "accepted")
    named = {violation.rule for violation in violations}

    assert (refusal.rule in named) if refusal else not named, (named, refusal)


@given(gemini_requests, st.sampled_from(GEMINI_MODELS), st.booleans())
def test_gemini(request: Any, model: str, strict: bool) -> None:
    agree(gemini.check(request, model=model, strict=strict), lint(request, model=model, strict=strict))


@given(openai_requests, st.sampled_from(OPENAI_MODELS), st.booleans())
def test_openai(request: Any, model: str, strict: bool) -> None:
    agree(openai.check(request, model=model, strict=strict), lint(request, model=model, strict=strict))
