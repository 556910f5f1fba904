"""Telegram as a platform."""
