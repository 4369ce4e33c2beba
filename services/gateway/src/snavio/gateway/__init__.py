"""The control plane over HTTP: registration, keys, routes, grants, history."""
