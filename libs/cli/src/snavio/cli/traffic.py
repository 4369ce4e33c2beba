"""`snavio send` and `snavio telemetry tail`: a first look, with a tenant's own identity."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import click
import msgspec
from aiobotocore.session import AioSession
from rich.console import Console
from rich.text import Text

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent
from snavio.cli.bring import Account, account_of
from snavio.cli.gateway import Gateway, gateway, name
from snavio.cli.output import as_json, write_json
from snavio.cli.parameters import EVENT, SOURCE
from snavio.cli.tables import say
from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.errors import SdkError
from snavio.sdk.producer import Producer
from snavio.sdk.telemetry import Telemetry, TelemetryOptions
from snavio.wire.events import encode_event, event_type

_SOON = 2


@click.command()
@click.argument("source", type=SOURCE)
@click.argument("target")
@click.argument("command")
@click.argument("payload", default="{}")
@click.option("--id", "command_id", metavar="UUID", help="The command's id; made up otherwise.")
@click.option("--sender-role", metavar="ARN", help="Send as this role; as the service's own otherwise.")
@as_json
def send(
    *,
    source: str,
    target: str,
    command: str,
    payload: str,
    command_id: str | None,
    sender_role: str | None,
    json: bool,
) -> None:
    r"""Send a command, signed and emitted as a producer would.

    Uses the caller's AWS identity when it is a sender role of the service, and else assumes one.

    \b
    Examples:
      snavio send acme/billing discord-bot notify-user '{"user": 42}'
    """
    try:
        body: Any = msgspec.json.decode(payload)
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f"the payload is not JSON: {error}") from None
    try:
        sent = asyncio.run(_send(gateway(), source, target, command, body, command_id, sender_role))
    except SdkError as error:
        raise click.ClickException(str(error)) from error
    say(f"Command {sent['id']} is on the bus.", sent, json=json)


async def _send(
    api: Gateway,
    source: str,
    target: str,
    command: str,
    payload: Any,
    command_id: str | None,
    sender_role: str | None,
) -> dict[str, str]:
    tenant = source.partition("/")[0]
    own = api.for_tenant(tenant)
    roles = [sender_role] if sender_role else _sender_roles(api, tenant, source)
    async with as_one_of(api, roles) as aws:
        async with Producer(own.connection.url, own.connection.token, source=source, aws=aws) as producer:
            sent = await producer.send(target, command, payload, id=command_id)
        return {"id": str(sent.id), "source": source, "target": target, "command": command}


@click.group()
def telemetry() -> None:
    r"""See what the platform says about a tenant's commands.

    \b
    Examples:
      snavio telemetry tail acme
    """


@telemetry.command("tail")
@click.argument("tenant_name", metavar="TENANT")
@click.option(
    "--event", "events", type=EVENT, multiple=True, help="Show this one only; several times for several."
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many events shown.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after this time.")
@click.option("--sender-role", metavar="ARN", help="Read as this role; as one of the tenant's otherwise.")
@as_json
def tail(
    *,
    tenant_name: str,
    events: tuple[str, ...],
    count: int | None,
    seconds: float | None,
    sender_role: str | None,
    json: bool,
) -> None:
    r"""Show a tenant's telemetry as it comes, until Ctrl-C. What comes is taken from the queue, shown or not.

    \b
    Examples:
      snavio telemetry tail acme
      snavio telemetry tail acme --event command.failed --event command.invalid
      snavio telemetry tail acme --count 1 --seconds 30 --json
    """
    try:
        asyncio.run(_tail(gateway(), tenant_name, events, count, seconds, sender_role, json=json))
    except SdkError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        return


async def _tail(
    api: Gateway,
    tenant: str,
    shown: tuple[str, ...],
    count: int | None,
    seconds: float | None,
    sender_role: str | None,
    *,
    json: bool,
) -> None:
    own = api.for_tenant(tenant)
    roles = [sender_role] if sender_role else _sender_roles(api, tenant, None)
    seen = 0
    try:
        async with (
            asyncio.timeout(seconds),
            as_one_of(api, roles) as aws,
            Telemetry(
                own.connection.url,
                own.connection.token,
                aws=aws,
                options=TelemetryOptions(wait_seconds=_SOON),
            ) as events,
        ):
            async for event in events:
                if shown and event_type(event) not in shown:
                    continue
                document = msgspec.json.decode(encode_event(event))
                write_json(document) if json else _show(document)
                seen += 1
                if seen == count:
                    return
    except TimeoutError:
        return


@asynccontextmanager
async def as_one_of(api: Gateway, roles: list[str]) -> AsyncGenerator[AwsOptions]:
    """AWS as one of the roles: as the caller when it is one already, else by assuming the first."""
    connection = api.connection
    async with account_of(connection) as account:
        who = (await account.identity())["Arn"]
        if any(_is_session_of(who, role) for role in roles):
            session = connection.session()
        else:
            if not roles:
                raise Permanent(
                    "The service has no sender role: register one, or name it with --sender-role."
                )
            session = await _assumed(account, roles[0])
    yield AwsOptions(region=connection.region, endpoint_url=connection.aws_endpoint_url, session=session)


async def _assumed(account: Account, role: str) -> AioSession:
    sts = await account.client("sts")
    with translated("AssumeRole"):
        answer = await sts.assume_role(RoleArn=role, RoleSessionName="snavio-cli")
    keys = answer["Credentials"]
    session: Any = AioSession()
    session.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    return session


def _is_session_of(caller_arn: str, role_arn: str) -> bool:
    parts, role = caller_arn.split(":"), role_arn.split(":")
    resource = parts[-1].split("/")
    return (
        parts[4] == role[4] and resource[0] == "assumed-role" and resource[1] == role_arn.rpartition("/")[2]
    )


def _sender_roles(api: Gateway, tenant: str, source: str | None) -> list[str]:
    """The roles that may emit a source, or any of the tenant's."""
    document = api.call("GET", f"/api/v1/tenants/{name(tenant)}")
    bound = [
        service["sender_role_arn"]
        for service in document["services"]
        if service["sender_role_arn"] and source in {None, service["source"]}
    ]
    return bound or list(document["sender_role_arns"])


def _show(document: dict[str, Any]) -> None:
    command: Any = document.get("command") or {}
    about: list[Any] = [document.get("source"), document.get("target"), command.get("name")]
    line = Text(f"{document['emitted_at']} ", style="dim")
    line.append(document["event"].removeprefix("snavio."), style="red" if _is_bad(document) else "green")
    line.append(f" {' '.join(str(each) for each in about if each)}")
    for field in ("path", "dispatch_latency_ms", "reason", "sub_reason", "detail"):
        if document.get(field) is not None:
            line.append(f" {field}={document[field]}")
    Console().print(line, soft_wrap=True)


def _is_bad(document: dict[str, Any]) -> bool:
    return document["event"] not in {"snavio.command.delivered", "snavio.telemetry.skew_sample"}
