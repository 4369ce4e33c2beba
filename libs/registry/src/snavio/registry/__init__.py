"""Routes, grants, keys, bans and limits: models, store, changelog, caches and cold load."""
