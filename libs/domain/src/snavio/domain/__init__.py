"""Decisions and policies as pure functions over values; no I/O, no clock."""
