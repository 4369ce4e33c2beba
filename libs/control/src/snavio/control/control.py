"""The control plane, put together."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from snavio.aws.boto.session import Aws
from snavio.control.access import Access
from snavio.control.alerts import Alerts
from snavio.control.catalogue import Catalogue, Unobserved
from snavio.control.config import TenantConfig
from snavio.control.convergence import Convergence
from snavio.control.directory import Directory
from snavio.control.health import Health
from snavio.control.history import History
from snavio.control.iam import IamEmitRoles
from snavio.control.keys import KeyPolicy, Keys
from snavio.control.offboarding import Offboarding
from snavio.control.ports import EmitRoles, Pipelines, TargetQueues
from snavio.control.routes import Routes
from snavio.control.rules import Rules
from snavio.control.sqs import SqsTargetQueues, TelemetryPipelines
from snavio.control.tenants import Tenants
from snavio.domain.freshness import TtlPolicy
from snavio.registry.keeper import Keeper
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.telemetry.alert_store import AlertStore
from snavio.wire.names import Names


class Control(msgspec.Struct, frozen=True):
    """Every use case. Each takes the principal it acts for and refuses what that principal may not do."""

    access: Access
    tenants: Tenants
    offboarding: Offboarding
    keys: Keys
    config: TenantConfig
    routes: Routes
    rules: Rules
    alerts: Alerts
    health: Health
    history: History
    directory: Directory


def control_of(
    aws: Aws,
    names: Names,
    *,
    keys: KeyPolicy | None = None,
    clock: Callable[[], float] = time.time,
    roles: EmitRoles | None = None,
    pipelines: Pipelines | None = None,
    targets: TargetQueues | None = None,
) -> Control:
    """The control plane on an installation. The last three take the place of IAM, SNS and SQS, for tests."""
    store = RegistryStore(aws.tables, names, clock=clock)
    sealer = Sealer(aws.vault)
    keeper = Keeper(aws.tables, names, sealer, ttls=TtlPolicy(), clock=clock, observer=Unobserved())
    catalogue = Catalogue(keeper, clock=clock)
    directory = Directory(aws.tables, names, clock=clock)
    queues = targets or SqsTargetQueues(aws.client, aws.queues)
    secrets = Keys(store, sealer, names, keys or KeyPolicy(), clock=clock)
    tenants = Tenants(
        directory,
        secrets,
        Convergence(
            directory,
            roles or IamEmitRoles(aws.client),
            pipelines or TelemetryPipelines(aws.client, names),
            names,
        ),
        names,
        clock=clock,
    )
    routes = Routes(store, directory, catalogue, queues, sealer, names, clock=clock)
    rules = Rules(store, directory, catalogue, routes, clock=clock)
    alerts = Alerts(AlertStore(aws.tables, aws.vault, names), directory)
    return Control(
        access=Access(directory),
        tenants=tenants,
        offboarding=Offboarding(tenants, routes, rules, alerts, directory),
        keys=secrets,
        config=TenantConfig(directory, secrets),
        routes=routes,
        rules=rules,
        alerts=alerts,
        health=Health(aws.tables, routes, queues, names),
        history=History(store, directory, routes, clock=clock),
        directory=directory,
    )
