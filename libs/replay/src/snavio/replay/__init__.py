"""Sends commands again from the archive or a dead-letter queue, signed by the platform."""
