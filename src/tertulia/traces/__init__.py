"""Traces: what runs did as spans of OpenTelemetry. Read `tracing.py` first."""
