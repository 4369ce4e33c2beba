"""What the dispatching workers share: delivery, outbox records, limits, dedupe, internal messages."""
