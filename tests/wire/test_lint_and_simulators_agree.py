"""The linter and the simulators were written apart from one page of rules; on any request they say the same."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from palaver.sim.gemini import rules as gemini
from palaver.sim.openai import rules as openai
from palaver.wire import lint
from strategies import GEMINI_MODELS, OPENAI_MODELS
from wire.requests import gemini_requests, openai_requests

pytestmark = pytest.mark.torture


@given(gemini_requests, st.sampled_from(GEMINI_MODELS), st.booleans())
def test_gemini(request: Any, model: str, strict: bool) -> None:
    refusal = gemini.check(request, model=model, strict=strict)
    event(f"refused by {refusal.rule}" if refusal else "accepted")

    named = {violation.rule for violation in lint(request, model=model, strict=strict)}

    assert (refusal.rule in named) if refusal else not named, (named, refusal)


@given(openai_requests, st.sampled_from(OPENAI_MODELS), st.booleans())
def test_openai(request: Any, model: str, strict: bool) -> None:
    refusal = openai.check(request, model=model, strict=strict)
    event(f"refused by {refusal.rule}" if refusal else "accepted")

    named = {violation.rule for violation in lint(request, model=model, strict=strict)}

    assert (refusal.rule in named) if refusal else not named, (named, refusal)
