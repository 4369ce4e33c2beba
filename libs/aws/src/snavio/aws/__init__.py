"""Narrow ports to AWS with an aiobotocore adapter and an in-memory fake."""
