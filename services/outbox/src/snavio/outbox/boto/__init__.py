"""The outbox worker's ports on aiobotocore."""
