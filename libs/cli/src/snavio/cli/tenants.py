"""`snavio tenant`, `snavio service`, `snavio keys`, `snavio token`."""

from __future__ import annotations

import click

from snavio.cli.connection import Connection
from snavio.cli.gateway import gateway, name, source_path
from snavio.cli.output import as_json, write_json
from snavio.cli.parameters import SOURCE
from snavio.cli.tables import say, show, show_one

_TENANTS = "/api/v1/tenants"


@click.group()
def tenant() -> None:
    r"""Register tenants, and see who they are.

    \b
    Examples:
      snavio tenant add acme --email ops@acme.example
      snavio tenant show acme
    """


@tenant.command("add")
@click.argument("tenant_name", metavar="TENANT")
@click.option("--email", help="Whom to mail when something is wrong.")
@click.option(
    "--sender-role", "roles", multiple=True, metavar="ARN", help="A role that may emit for it; repeatable."
)
@as_json
def add_tenant(*, tenant_name: str, email: str | None, roles: tuple[str, ...], json: bool) -> None:
    """Register a tenant. Running it again finishes what stopped half-way."""
    body = {"tenant": tenant_name, "contact_email": email, "sender_role_arns": roles}
    show_one(gateway().call("POST", _TENANTS, body), json=json)


@tenant.command("list")
@as_json
def list_tenants(*, json: bool) -> None:
    """Every tenant."""
    found = gateway().call("GET", _TENANTS)
    show(found, "tenant", "state", "contact_email", "created_at", json=json, empty="No tenant is registered.")


@tenant.command("show")
@click.argument("tenant_name", metavar="TENANT")
@as_json
def show_tenant(*, tenant_name: str, json: bool) -> None:
    """A tenant with its services."""
    found = gateway().call("GET", f"{_TENANTS}/{name(tenant_name)}")
    if not json:
        found["services"] = [service["source"] for service in found["services"]]
    show_one(found, json=json)


@tenant.command("change")
@click.argument("tenant_name", metavar="TENANT")
@click.option("--email", help="Whom to mail when something is wrong.")
@click.option(
    "--sender-role",
    "roles",
    multiple=True,
    metavar="ARN",
    help="The roles that may emit from now on; repeatable.",
)
@as_json
def change_tenant(*, tenant_name: str, email: str | None, roles: tuple[str, ...], json: bool) -> None:
    """Change a tenant's address or its sender roles; effective at once."""
    body = {
        **({"contact_email": email} if email else {}),
        **({"sender_role_arns": roles} if roles else {}),
    }
    show_one(gateway().call("PATCH", f"{_TENANTS}/{name(tenant_name)}", body), json=json)


@tenant.command("remove")
@click.argument("tenant_name", metavar="TENANT")
@click.confirmation_option(prompt="Shut the tenant out and remove everything of it?")
@as_json
def remove_tenant(*, tenant_name: str, json: bool) -> None:
    """Shut a tenant out and remove everything of it."""
    gateway().call("DELETE", f"{_TENANTS}/{name(tenant_name)}")
    say(f"Tenant {tenant_name} is gone.", json=json)


@click.group()
def service() -> None:
    r"""Register the services that send commands.

    \b
    Examples:
      snavio service add acme/billing --sender-role arn:aws:iam::123456789012:role/BillingSender
      snavio service list acme
    """


@service.command("add")
@click.argument("source", type=SOURCE)
@click.option(
    "--sender-role", metavar="ARN", help="The only role that may emit it; any of the tenant's otherwise."
)
@click.option(
    "--new-sender", "new_role", metavar="ROLE", help="Make such a role in this AWS account, and use it."
)
@as_json
def add_service(*, source: str, sender_role: str | None, new_role: str | None, json: bool) -> None:
    """Register a service; shows its first key. Running it again finishes what stopped half-way."""
    api = gateway()
    if new_role:
        if sender_role:
            raise click.UsageError("Give either --sender-role or --new-sender.")
        sender_role = _made(api.connection, new_role)
    tenant_name, _, service_name = source.partition("/")
    body = {"service": service_name, "sender_role_arn": sender_role}
    made = api.call("POST", f"{_TENANTS}/{name(tenant_name)}/services", body)
    if json:
        show_one(made, json=True)
    else:
        key = made["key"]
        show_one(
            {
                "source": made["source"],
                "key": key["version_id"],
                "secret": key["secret_b64"],
                "sender_role": sender_role,
            },
            json=False,
        )


@service.command("list")
@click.argument("tenant_name", metavar="TENANT")
@as_json
def list_services(*, tenant_name: str, json: bool) -> None:
    """The services of a tenant."""
    found = gateway().call("GET", f"{_TENANTS}/{name(tenant_name)}")["services"]
    show(found, "source", "state", "sender_role_arn", "created_at", json=json, empty="It has no service.")


@service.command("remove")
@click.argument("source", type=SOURCE)
@click.confirmation_option(prompt="Shut the service out and remove its keys and grants?")
@as_json
def remove_service(*, source: str, json: bool) -> None:
    """Shut a service out and remove its keys, grants and quotas."""
    tenant_name, _, service_name = source.partition("/")
    gateway().call("DELETE", f"{_TENANTS}/{name(tenant_name)}/services/{name(service_name)}")
    say(f"Service {source} is gone.", json=json)


@click.group()
def keys() -> None:
    r"""See and rotate the keys services sign with.

    \b
    Examples:
      snavio keys list acme/billing
      snavio keys rotate acme/billing --expected hmac-v1
    """


@keys.command("list")
@click.argument("source", type=SOURCE)
@as_json
def list_keys(*, source: str, json: bool) -> None:
    """The versions of a service's key; secrets are shown to its tenant alone, by tenant-config."""
    found = gateway().call("GET", _keys_path(source))
    show(
        found["keys"],
        "version_id",
        "state",
        "created_at",
        "not_after",
        "last_poll_at",
        json=json,
        empty="It has no key.",
    )


@keys.command("rotate")
@click.argument("source", type=SOURCE)
@click.option("--expected", metavar="VERSION", help="Rotate only while this is the current version.")
@as_json
def rotate_key(*, source: str, expected: str | None, json: bool) -> None:
    """Make a new version; the previous one keeps its grace."""
    rotated = gateway().call("POST", f"{_keys_path(source)}/rotate", expected=expected)
    previous, current = rotated["keys"]
    sentence = (
        f"{source} signs with {current['version_id']} once it has fetched its configuration; "
        f"{previous['version_id']} is accepted until {previous['not_after']}."
    )
    say(sentence, rotated, json=json)


@click.command()
@click.argument("tenant_name", metavar="[TENANT]", required=False)
@as_json
def token(*, tenant_name: str | None, json: bool) -> None:
    r"""Print a token: a tenant's, or without one the token these commands use.

    \b
    Examples:
      snavio token acme
      export SNAVIO_CLI_TOKEN=$(snavio token acme)
    """
    api = gateway()
    chosen = api if tenant_name is None else api.for_tenant(tenant_name)
    document = {"tenant": chosen.connection.tenant, "token": chosen.connection.token}
    if json:
        write_json(document)
    else:
        click.echo(chosen.connection.token)


def _keys_path(source: str) -> str:
    tenant_name, service_name = source_path(source).split("/")
    return f"{_TENANTS}/{tenant_name}/services/{service_name}/keys"


def _made(connection: Connection, role: str) -> str:
    from snavio.cli.bring import in_account, new_sender  # noqa: PLC0415 - AWS takes half a second to import

    return in_account(connection, lambda account: new_sender(account, role))
