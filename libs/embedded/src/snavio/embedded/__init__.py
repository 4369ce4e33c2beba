"""A local AWS and the whole platform on it, in one command and without Docker."""
