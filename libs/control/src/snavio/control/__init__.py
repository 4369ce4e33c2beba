"""What the control plane does, free of HTTP: the gateway, the command line and tests share it."""
