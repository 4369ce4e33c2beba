"""`snavio doctor`: whether an installation is in order, and what is wrong with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import click
import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from snavio.aws.boto.faults import translated
from snavio.aws.errors import SnavioError
from snavio.cli.bring import Account, account_of
from snavio.cli.gateway import Gateway, gateway, name
from snavio.cli.output import as_json, write_json
from snavio.control.emit_policy import emit_role
from snavio.control.models import Service, State, Tenant
from snavio.provisioning.apply import apply
from snavio.provisioning.caller import names_here
from snavio.provisioning.describe import describe
from snavio.provisioning.policies import meaning
from snavio.wire.names import Names

_SKEW_SECONDS = 5.0
_FEW = 5


class Verdict(StrEnum):
    """How a check came out."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One check."""

    check: str
    verdict: Verdict
    detail: str


_MARKS = {Verdict.GOOD: ("✓", "green"), Verdict.WARNING: ("!", "yellow"), Verdict.BAD: ("✗", "red")}


@click.command()
@click.option(
    "--prefix", envvar="SNAVIO_PREFIX", default="snavio", show_default=True, help="First part of every name."
)
@as_json
def doctor(*, prefix: str, json: bool) -> None:
    r"""Check an installation and say what is wrong with it.

    Looks at the gateway and its clock, at every resource of the platform, at dead letters, at the emit role of every
    tenant and at the health of every route. Changes nothing. The exit code is 1 when something is wrong.

    \b
    Examples:
      snavio doctor
      snavio doctor --json
    """
    findings = asyncio.run(_examine(gateway(), prefix, None if json else _show))
    if json:
        write_json(findings)
    bad = [finding for finding in findings if finding.verdict is Verdict.BAD]
    if bad:
        raise click.exceptions.Exit(1)


async def _examine(api: Gateway, prefix: str, tell: Callable[[Finding], None] | None) -> list[Finding]:
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        findings.append(finding)
        if tell:
            tell(finding)

    for finding in gateway_findings(api):
        note(finding)
    async with account_of(api.connection) as account:
        try:
            names = (
                await names_here(api.connection.session(), prefix)
                if _is_aws(api)
                else _embedded_names(api, prefix)
            )
            async for finding in _aws_findings(api, account, names):
                note(finding)
        except (SnavioError, ClientError, BotoCoreError) as error:
            note(Finding("aws", Verdict.BAD, f"AWS does not answer as needed: {error}"))
    return findings


def gateway_findings(api: Gateway) -> list[Finding]:
    """Whether the gateway answers, knows the caller, and agrees about the time."""
    try:
        before = time.time()
        answer = api.ask("GET", "/api/v1/tenants")
        middle = (before + time.time()) / 2
    except SnavioError as error:
        return [Finding("gateway", Verdict.BAD, str(error))]
    found = [Finding("gateway", Verdict.GOOD, f"{api.connection.url} answers, and knows the token.")]
    if answer.date is not None:
        skew = abs(answer.date + 0.5 - middle)
        verdict = Verdict.GOOD if skew <= _SKEW_SECONDS else Verdict.BAD
        told = f"This clock and the gateway's are {skew:.0f} s apart."
        if verdict is Verdict.BAD:
            told += " Commands outside the replay window are refused: synchronise clocks."
        found.append(Finding("clock", verdict, told))
    return found


async def _aws_findings(api: Gateway, account: Account, names: Names) -> AsyncGenerator[Finding]:
    yield await _resources(api, names)
    yield await _dead_letters(account, names)
    try:
        tenants = api.call("GET", "/api/v1/tenants")
        routes = api.call("GET", "/api/v1/routes")
    except SnavioError:
        return
    for tenant in tenants:
        yield await _tenant(api, account, names, tenant["tenant"])
    yield _routes(api, routes)


async def _resources(api: Gateway, names: Names) -> Finding:
    connection = api.connection
    report = await apply(
        describe(names), connection.session(), endpoint_url=connection.aws_endpoint_url, dry_run=True
    )
    if not report.changes:
        return Finding("resources", Verdict.GOOD, f"All {report.resources} resources are as described.")
    some = ", ".join(f"{change.kind} {change.name}" for change in report.changes[:_FEW])
    more = " and others" if len(report.changes) > _FEW else ""
    return Finding(
        "resources",
        Verdict.BAD,
        f"{len(report.changes)} of {report.resources} resources are missing or changed: {some}{more}. "
        "Run `snavio provision`.",
    )


async def _dead_letters(account: Account, names: Names) -> Finding:
    sqs = await account.client("sqs")
    waiting: dict[str, int] = {}
    for queue in (names.ingress, names.fast, names.slow):
        with translated("GetQueueAttributes"):
            url = (await sqs.get_queue_url(QueueName=names.dlq(queue)))["QueueUrl"]
            answer = await sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
            )
        waiting[names.dlq(queue)] = int(answer["Attributes"]["ApproximateNumberOfMessages"])
    full = {queue: depth for queue, depth in waiting.items() if depth}
    if not full:
        return Finding("dead letters", Verdict.GOOD, "The platform's dead-letter queues are empty.")
    told = ", ".join(f"{depth} in {queue}" for queue, depth in full.items())
    return Finding("dead letters", Verdict.BAD, f"Messages could not be handled: {told}.")


async def _tenant(api: Gateway, account: Account, names: Names, tenant: str) -> Finding:
    document = api.call("GET", f"/api/v1/tenants/{name(tenant)}")
    check = f"tenant {tenant}"
    if document["state"] != State.ACTIVE:
        return Finding(
            check, Verdict.BAD, f"Its registration is {document['state']}: repeat the request to finish it."
        )
    iam = await account.client("iam")
    try:
        with translated("GetRole"):
            role = (await iam.get_role(RoleName=names.emit_role(tenant)))["Role"]
            policy = await _policy(iam, names.emit_role(tenant))
    except SnavioError as error:
        return Finding(check, Verdict.BAD, f"Its emit role cannot be read: {error}")
    wanted = emit_role(names, *_registered(document))
    if meaning(role["AssumeRolePolicyDocument"]) != meaning(wanted.trust):
        return Finding(check, Verdict.BAD, "Its emit role trusts others than are registered.")
    if meaning(policy) != meaning(wanted.policy):
        return Finding(check, Verdict.BAD, "Its emit role permits something else than is registered.")
    if not document["services"]:
        return Finding(check, Verdict.WARNING, "It has no service, so it can send nothing.")
    if wanted.policy is None:
        return Finding(check, Verdict.WARNING, "It has no sender role, so nobody can emit for it.")
    return Finding(check, Verdict.GOOD, "Its emit role says what is registered.")


async def _policy(iam: Any, role: str) -> object:
    listed = (await iam.list_role_policies(RoleName=role))["PolicyNames"]
    if not listed:
        return None
    return (await iam.get_role_policy(RoleName=role, PolicyName=listed[0]))["PolicyDocument"]


def _registered(document: Mapping[str, Any]) -> tuple[Tenant, list[Service]]:
    tenant = Tenant(
        tenant=document["tenant"],
        registration="",
        created_at=0.0,
        sender_role_arns=tuple(document["sender_role_arns"]),
    )
    services = [
        Service(
            tenant=document["tenant"],
            service=service["source"].partition("/")[2],
            created_at=0.0,
            sender_role_arn=service["sender_role_arn"],
        )
        for service in document["services"]
        if service["state"] != State.DELETING
    ]
    return tenant, services


def _routes(api: Gateway, routes: Sequence[Mapping[str, Any]]) -> Finding:
    sick: list[str] = []
    for route in routes:
        path = f"/api/v1/routes/{name(route['target'])}/{name(route['command'])}/health"
        status = api.call("GET", path)["status"]
        if status not in {"healthy", "unknown"}:
            sick.append(f"{route['target']} {route['command']} is {status}")
    if sick:
        more = " and others" if len(sick) > _FEW else ""
        return Finding("routes", Verdict.BAD, f"{'; '.join(sick[:_FEW])}{more}.")
    return Finding("routes", Verdict.GOOD, f"{len(routes)} routes, none known to be unhealthy.")


def _is_aws(api: Gateway) -> bool:
    return api.connection.aws_endpoint_url is None


def _embedded_names(api: Gateway, prefix: str) -> Names:
    return Names(prefix=prefix, region=api.connection.region or "us-east-1", account="000000000000")


def _show(finding: Finding) -> None:
    mark, colour = _MARKS[finding.verdict]
    Console().print(Text(f"{mark} ", style=colour) + Text(f"{finding.check}: {finding.detail}"))
