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
    "tenant": Entry("snavio.cli.tenants:tenant", "Register tenants, and see who they are."),
    "service": Entry("snavio.cli.tenants:service", "Register the services that send commands."),
    "route": Entry("snavio.cli.routes:route", "Say where commands go."),
    "acl": Entry("snavio.cli.routes:acl", "Say who may send which command."),
    "keys": Entry("snavio.cli.tenants:keys", "See and rotate the keys services sign with."),
    "quota": Entry("snavio.cli.rules:quota", "Limit one source for one command."),
    "ban": Entry("snavio.cli.rules:ban", "Shut sources out."),
    "settings": Entry("snavio.cli.rules:settings", "The platform's settings."),
    "changelog": Entry("snavio.cli.history:changelog", "See what was changed, and undo it."),
    "token": Entry("snavio.cli.tenants:token", "Print a tenant's token."),
    "send": Entry("snavio.cli.traffic:send", "Send a command as a producer would."),
    "telemetry": Entry(
        "snavio.cli.traffic:telemetry", "See what the platform says about a tenant's commands."
    ),
    "doctor": Entry("snavio.cli.doctor:doctor", "Check an installation and say what is wrong with it."),
    "replay": Entry(
        "snavio.cli.replay:replay", "Send commands again from the archive or a dead-letter queue."
    ),
    "snapshot": Entry(
        "snavio.cli.snapshot:snapshot", "Check the latest snapshot of the registry as a worker would."
    ),
    "cost": Entry("snavio.cli.cost.command:cost", "Estimate what the platform costs on AWS."),
    "spark": Entry("snavio.cli.spark:spark", "Audit fairness and report usage, on Spark."),
    "version": Entry("snavio.cli.version:version", "Say which version this is."),
}
