"""The whole platform, driven as tenants would drive it, with the figures that prove it."""
