"""`snavio changelog`: what was changed, and undoing it."""

from __future__ import annotations

import click

from snavio.cli.gateway import gateway
from snavio.cli.output import as_json
from snavio.cli.tables import say, show

_LIMIT = click.IntRange(1, 500)


@click.group()
def changelog() -> None:
    r"""See what was changed, and undo it.

    \b
    Examples:
      snavio changelog list --kind route
      snavio changelog rollback 17
    """


@changelog.command("list")
@click.option("--after", type=click.IntRange(0), help="Those that follow this number; the latest otherwise.")
@click.option("--limit", type=_LIMIT, default=20, show_default=True)
@click.option(
    "--kind",
    type=click.Choice(["route", "grant", "key", "ban", "quota", "settings"]),
    help="Of this kind only.",
)
@as_json
def list_changes(*, after: int | None, limit: int, kind: str | None, json: bool) -> None:
    """Changes of routes, grants, keys, bans, quotas and settings."""
    page = gateway().call("GET", "/api/v1/changelog", after=after, limit=limit, kind=kind)
    if json:
        say("", page, json=True)
        return
    show(
        page["changes"],
        ("no.", lambda each: each["seq"]),
        "at",
        "actor",
        "kind",
        ("what", lambda each: f"{each['key'][0].partition('#')[2]} {each['key'][1]}".strip()),
        (
            "change",
            lambda each: (
                "added" if each["before"] is None else "removed" if each["after"] is None else "changed"
            ),
        ),
        "note",
        json=False,
        empty="Nothing was changed.",
    )


@changelog.command("rollback")
@click.argument("number", type=click.IntRange(1))
@as_json
def rollback(*, number: int, json: bool) -> None:
    """Put back what was there before a change."""
    made = gateway().call("POST", f"/api/v1/changelog/{number}/rollback")
    said = (
        "That is how it is already."
        if made is None
        else f"Change {number} is undone by change {made['seq']}."
    )
    say(said, made, json=json)


@changelog.command("audit")
@click.option("--month", metavar="YYYY-MM", help="Of this month; of the present one otherwise.")
@click.option("--limit", type=_LIMIT, default=20, show_default=True)
@as_json
def audit(*, month: str | None, limit: int, json: bool) -> None:
    """Changes of tenants, services, owners, tokens and alerts, newest first."""
    found = gateway().call("GET", "/api/v1/audit", month=month, limit=limit)
    show(found, "at", "actor", "action", "subject", json=json, empty="Nothing was changed.")
