"""Fairness rollups, abuse audit and usage reports on PySpark."""
