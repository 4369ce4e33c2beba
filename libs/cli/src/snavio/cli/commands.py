"""Every command of `snavio`, and where it is. To add one, add a line.

A command is imported only when it is run or asked for help, so `snavio --help` stays instant however many there are;
that is why its one-line summary stands here.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A click command or group, as `module:attribute`."""

    where: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "demo": Entry("snavio.cli.demo:demo", "Run the whole platform and drive it as tenants would."),
    "up": Entry("snavio.cli.up:up", "Run the whole platform on this machine."),
    "provision": Entry(
        "snavio.cli.provision:provision", "Create the platform's AWS resources, or complete them."
    ),
    "replay": Entry(
        "snavio.cli.replay:replay", "Send commands again from the archive or a dead-letter queue."
    ),
    "snapshot": Entry(
        "snavio.cli.snapshot:snapshot", "Check the latest snapshot of the registry as a worker would."
    ),
    "version": Entry("snavio.cli.version:version", "Say which version this is."),
}
