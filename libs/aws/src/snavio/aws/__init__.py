"""Narrow ports to AWS with an aiobotocore adapter, a lean one for the hot calls, and an in-memory fake."""
