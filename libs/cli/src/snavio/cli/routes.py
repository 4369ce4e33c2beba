"""`snavio route` and `snavio acl`: what the owner of a target decides."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from snavio.cli.gateway import Gateway, gateway, name, source_path
from snavio.cli.installation import names_of
from snavio.cli.output import as_json, write_json
from snavio.cli.parameters import DURATION, LIMIT, SOURCE, moment
from snavio.cli.tables import say, show, show_one

_ROUTES = "/api/v1/routes"
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}


@click.group()
def route() -> None:
    r"""Say where commands go.

    \b
    Examples:
      snavio route set discord-bot notify-user --queue arn:aws:sqs:us-east-1:123456789012:bot
      snavio route list
      snavio route health discord-bot notify-user
    """


@route.command("set")
@click.argument("target")
@click.argument("command")
@click.option("--queue", "queue_arn", metavar="ARN", help="The queue commands are delivered to.")
@click.option(
    "--new-queue", "new", metavar="NAME", help="Make a fitting queue in this AWS account, and use it."
)
@click.option(
    "--tenant", "tenant_name", help="Whose target it is, when an operator registers its first route."
)
@click.option("--dedupe", type=click.Choice(["none", "strict"]), default="none", show_default=True)
@click.option(
    "--drain", type=click.IntRange(1), default=300, show_default=True, help="Seconds a message usually waits."
)
@click.option(
    "--sensitivity", type=click.Choice(["critical", "moderate", "low"]), default="moderate", show_default=True
)
@click.option("--limit", type=LIMIT, help="At most so many, as 50/s, 600/m or 50/10s.")
@click.option("--burst", type=click.IntRange(1), help="At most so many at once; the limit otherwise.")
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the JSON Schema of the payload.",
)
@click.option("--expires-in", type=DURATION, help="End the route after this time, as 2h or 7d.")
@click.option("--dry-run", is_flag=True, help="Check everything, send a test command, and write nothing.")
@as_json
def set_route(
    *,
    target: str,
    command: str,
    queue_arn: str | None,
    new: str | None,
    tenant_name: str | None,
    dedupe: str,
    drain: int,
    sensitivity: str,
    limit: dict[str, int] | None,
    burst: int | None,
    schema: Path | None,
    expires_in: timedelta | None,
    dry_run: bool,
    json: bool,
) -> None:
    r"""Register a route, or change it. The whole route is given each time.

    \b
    Examples:
      snavio route set discord-bot notify-user --queue arn:aws:sqs:us-east-1:123456789012:bot
      snavio route set discord-bot notify-user --queue ... --dedupe strict --limit 50/s --dry-run
    """
    api = gateway()
    if (queue_arn is None) == (new is None):
        raise click.UsageError("Give either --queue or --new-queue.")
    if burst is not None and limit is None:
        raise click.UsageError("--burst needs --limit.")
    body: dict[str, Any] = {
        "queue_arn": queue_arn or _made(api, new or "", tenant_name),
        "dedupe_mode": dedupe,
        "expected_drain_seconds": drain,
        "sensitivity": sensitivity,
        "rate_limit": {**limit, "burst": burst} if limit else None,
        "schema": _json_in(schema) if schema else None,
        "expires_at": moment(expires_in),
        "tenant": tenant_name,
    }
    made = api.call("PUT", _path(target, command), body, dry_run=str(dry_run).lower())
    if json:
        write_json(made)
        return
    _show_checks(made)
    state = "would be" if dry_run else "is"
    say(f"Route {target} {command} {state} at version {made['version']}.", json=False)


@route.command("list")
@click.option("--target", help="Of this target only.")
@as_json
def list_routes(*, target: str | None, json: bool) -> None:
    """Every route."""
    found = gateway().call("GET", _ROUTES, target=target)
    show(
        found,
        "target",
        "command",
        "tenant",
        "version",
        ("dedupe", lambda each: each["dedupe_mode"]),
        ("limit", _limit),
        ("queue", lambda each: each["queue_arn"].rpartition(":")[2]),
        "expires_at",
        json=json,
        empty="No route is registered.",
    )


@route.command("show")
@click.argument("target")
@click.argument("command")
@as_json
def show_route(*, target: str, command: str, json: bool) -> None:
    """A route in full."""
    show_one(gateway().call("GET", _path(target, command)), json=json)


@route.command("health")
@click.argument("target")
@click.argument("command")
@as_json
def health(*, target: str, command: str, json: bool) -> None:
    """How a route's queue is doing."""
    show_one(gateway().call("GET", f"{_path(target, command)}/health"), json=json)


@route.command("remove")
@click.argument("target")
@click.argument("command")
@as_json
def remove_route(*, target: str, command: str, json: bool) -> None:
    """Remove a route; `snavio changelog rollback` brings it back."""
    gateway().call("DELETE", _path(target, command))
    say(f"Route {target} {command} is gone.", json=json)


@click.group()
def acl() -> None:
    r"""Say who may send which command.

    \b
    Examples:
      snavio acl allow acme/billing discord-bot notify-user
      snavio acl list discord-bot notify-user
    """


@acl.command("allow")
@click.argument("source", type=SOURCE)
@click.argument("target")
@click.argument("command")
@click.option(
    "--sensitivity", type=click.Choice(["critical", "moderate", "low"]), help="The route's when not given."
)
@click.option("--expires-in", type=DURATION, help="End the grant after this time, as 2h or 7d.")
@as_json
def allow(
    *,
    source: str,
    target: str,
    command: str,
    sensitivity: str | None,
    expires_in: timedelta | None,
    json: bool,
) -> None:
    """Let a service send a command to a target."""
    body = {"sensitivity": sensitivity, "expires_at": moment(expires_in)}
    made = gateway().call("PUT", _grant(source, target, command), body)
    say(f"{source} may send {command} to {target}.", made, json=json)


@acl.command("deny")
@click.argument("source", type=SOURCE)
@click.argument("target")
@click.argument("command")
@as_json
def deny(*, source: str, target: str, command: str, json: bool) -> None:
    """Take the permission back."""
    gateway().call("DELETE", _grant(source, target, command))
    say(f"{source} may no longer send {command} to {target}.", json=json)


@acl.command("list")
@click.argument("target")
@click.argument("command")
@as_json
def list_grants(*, target: str, command: str, json: bool) -> None:
    """Who may send a command."""
    found = gateway().call("GET", f"{_path(target, command)}/acls")
    show(found, "source", "sensitivity", "expires_at", json=json, empty="Nobody may send it.")


def _path(target: str, command: str) -> str:
    return f"{_ROUTES}/{name(target)}/{name(command)}"


def _grant(source: str, target: str, command: str) -> str:
    return f"/api/v1/acls/{source_path(source)}/{name(target)}/{name(command)}"


def _limit(document: Any) -> str:
    limit = document["rate_limit"]
    return f"{limit['limit']}/{limit['interval_seconds']}s" if limit else ""


def _show_checks(made: Any) -> None:
    console = Console()
    for check in made["checks"]:
        mark, colour = _MARKS[check["passed"]]
        console.print(Text(f"{mark} ", style=colour) + Text(check["detail"]))
    for trial in made["test_routing"]:
        told = f" ({trial['detail']})" if trial["detail"] else ""
        console.print(
            Text(f"  test command of {trial['source']}: fast {trial['fast']}, slow {trial['slow']}{told}")
        )


def _json_in(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f"{path} is not JSON: {error}") from None


def _made(api: Gateway, queue: str, tenant_name: str | None) -> str:
    from snavio.cli.bring import Account, in_account, new_queue  # noqa: PLC0415 - AWS takes half a second to import

    tenant = tenant_name or api.connection.tenant
    if tenant is None:
        raise click.UsageError("Say with --tenant whose target it is.")
    document = api.call("GET", f"/api/v1/tenants/{name(tenant)}")

    async def make(account: Account) -> str:
        sqs = await account.client("sqs")
        return await new_queue(account, queue, names_of(document, sqs.meta.region_name))

    return in_account(api.connection, make)
