"""Delivers from warm memory, without coordination."""
