"""In-memory fakes of the ports, for unit tests and the simulator: deterministic, on a clock of the caller's."""
