"""What the model is told: a context laid out as the layers of a prompt."""

from palaver.prompt.profiles import PROFILES as profiles  # noqa: N811 (the name others build on)

__all__ = ["profiles"]
