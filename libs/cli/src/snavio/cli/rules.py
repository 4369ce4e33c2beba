"""`snavio quota`, `snavio ban`, `snavio settings`: what operators decide."""

from __future__ import annotations

from datetime import timedelta

import click

from snavio.cli.gateway import gateway, name, source_path
from snavio.cli.output import as_json
from snavio.cli.parameters import DURATION, LIMIT, SOURCE, moment
from snavio.cli.tables import say, show, show_one


@click.group()
def quota() -> None:
    r"""Limit one source for one command.

    \b
    Examples:
      snavio quota set acme/billing discord-bot notify-user 10/s
    """


@quota.command("set")
@click.argument("source", type=SOURCE)
@click.argument("target")
@click.argument("command")
@click.argument("limit", type=LIMIT)
@click.option("--burst", type=click.IntRange(1), help="At most so many at once; the limit otherwise.")
@as_json
def set_quota(
    *, source: str, target: str, command: str, limit: dict[str, int], burst: int | None, json: bool
) -> None:
    """Limit a source, as 50/s or 600/m, while it is off the warm path."""
    made = gateway().call("PUT", _quota(source, target, command), {**limit, "burst": burst})
    say(f"{source} has a quota for {target} {command}.", made, json=json)


@quota.command("remove")
@click.argument("source", type=SOURCE)
@click.argument("target")
@click.argument("command")
@as_json
def remove_quota(*, source: str, target: str, command: str, json: bool) -> None:
    """Remove a source's quota."""
    gateway().call("DELETE", _quota(source, target, command))
    say(f"{source} has no quota for {target} {command} any more.", json=json)


@quota.command("list")
@click.argument("source", type=SOURCE)
@as_json
def list_quotas(*, source: str, json: bool) -> None:
    """The quotas of a source."""
    found = gateway().call("GET", f"/api/v1/quotas/{source_path(source)}")
    show(
        found,
        "target",
        "command",
        ("limit", lambda each: each["rate_limit"]["limit"]),
        ("seconds", lambda each: each["rate_limit"]["interval_seconds"]),
        ("burst", lambda each: each["rate_limit"]["burst"]),
        json=json,
        empty="It has no quota.",
    )


@click.group()
def ban() -> None:
    r"""Shut sources out.

    \b
    Examples:
      snavio ban set acme/billing --for 15m --reason "runaway loop"
      snavio ban list
    """


@ban.command("set")
@click.argument("source", type=SOURCE)
@click.option(
    "--mode",
    type=click.Choice(["outright", "cold-only", "warm"]),
    default="outright",
    show_default=True,
    help="What is shut: everything, or the warm path.",
)
@click.option("--target", help="From this target only.")
@click.option("--command", "command_name", help="From this command of the target only.")
@click.option("--for", "duration", type=DURATION, help="For this time, as 15m; open-ended otherwise.")
@click.option("--reason", default="", help="Why, for the record.")
@as_json
def set_ban(
    *,
    source: str,
    mode: str,
    target: str | None,
    command_name: str | None,
    duration: timedelta | None,
    reason: str,
    json: bool,
) -> None:
    """Shut a source out."""
    body = {
        "mode": mode,
        "target": target,
        "command": command_name,
        "until": moment(duration),
        "reason": reason,
    }
    made = gateway().call("PUT", f"/api/v1/bans/{source_path(source)}", body)
    say(f"{source} is banned ({mode}).", made, json=json)


@ban.command("lift")
@click.argument("source", type=SOURCE)
@click.option("--target", help="The ban from this target.")
@click.option("--command", "command_name", help="The ban from this command of the target.")
@as_json
def lift(*, source: str, target: str | None, command_name: str | None, json: bool) -> None:
    """End a ban."""
    gateway().call("DELETE", f"/api/v1/bans/{source_path(source)}", target=target, command=command_name)
    say(f"The ban of {source} is lifted.", json=json)


@ban.command("list")
@as_json
def list_bans(*, json: bool) -> None:
    """Every ban in force."""
    found = gateway().call("GET", "/api/v1/bans")
    show(
        found, "source", "mode", "target", "command", "until", "reason", json=json, empty="Nobody is banned."
    )


@click.group()
def settings() -> None:
    r"""See and change the platform's settings.

    \b
    Examples:
      snavio settings set --dispatch-mode cold-only
    """


@settings.command("show")
@as_json
def show_settings(*, json: bool) -> None:
    """What is set; where nothing is, the configured value applies."""
    found = gateway().call("GET", "/api/v1/settings")
    shown = found if json else {each: value or "as configured" for each, value in found.items()}
    show_one(shown, json=json)


@settings.command("set")
@click.option(
    "--dispatch-mode",
    type=click.Choice(["adaptive", "cold-only", "as-configured"]),
    required=True,
    help="Whether the fast path may deliver.",
)
@as_json
def set_settings(*, dispatch_mode: str, json: bool) -> None:
    """Change a setting; workers follow within seconds."""
    mode = None if dispatch_mode == "as-configured" else dispatch_mode
    made = gateway().call("PUT", "/api/v1/settings", {"dispatch_mode": mode})
    say(f"The dispatch mode is {dispatch_mode}.", made, json=json)


def _quota(source: str, target: str, command: str) -> str:
    return f"/api/v1/quotas/{source_path(source)}/{name(target)}/{name(command)}"
