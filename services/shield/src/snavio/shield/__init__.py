"""Fails bad messages fast."""
