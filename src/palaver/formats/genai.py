"""Histories of the google-genai library: our turns as `google.genai.types.Content`, and back."""

from palaver.models.gemini.sdk import from_contents, to_contents

__all__ = ["from_contents", "to_contents"]
