"""Delivers with authority: dedupe, limits, refresh."""
