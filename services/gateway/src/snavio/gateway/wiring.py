"""How the gateway is put together."""

from __future__ import annotations

from snavio.aws.boto.session import Aws, open_aws
from snavio.aws.errors import SnavioError
from snavio.control.authority import system
from snavio.control.control import Control, control_of
from snavio.gateway.access_log import AccessLog
from snavio.gateway.app import make_app
from snavio.gateway.config import GatewayConfig
from snavio.gateway.jwks import Jwks
from snavio.gateway.rate import RateLimiter
from snavio.gateway.server import HttpIntake
from snavio.gateway.site import Site
from snavio.gateway.tokens import TokenRules, Tokens, read_secret
from snavio.runtime.log_events import LogEvent
from snavio.runtime.worker import Worker
from snavio.telemetry.pipeline import provision_pipeline
from snavio.wire.names import PLATFORM_TENANT

_PIPELINE_SECONDS = 3600.0


async def wire(config: GatewayConfig, worker: Worker) -> None:
    """Put the gateway together on AWS."""
    aws = await worker.enter(open_aws(region=config.region, endpoint_url=config.endpoint))
    wire_on(aws, config, worker)


def wire_on(aws: Aws, config: GatewayConfig, worker: Worker) -> HttpIntake:
    """Serve the API, and keep house."""
    control = control_of(aws, config.names, keys=config.key_policy, clock=worker.now)
    site = Site(
        control=control,
        tokens=_tokens(config, worker),
        names=config.names,
        queue_url=aws.queues.url_of,
        replay_window_seconds=config.replay_window_seconds,
        poll_interval_seconds=config.poll_interval_seconds,
        ailments=worker.ailments,
        unready=worker.unready,
    )
    limiter = RateLimiter(per_minute=config.requests_per_minute, burst=config.request_burst, clock=worker.now)
    app = make_app(site, limiter=limiter, max_body_bytes=config.max_body_bytes, log=worker.log)
    intake = HttpIntake(AccessLog(app, worker.log, worker.telemetry), host=config.host, port=config.port)
    worker.intake(intake)
    worker.log.info(LogEvent.HTTP_LISTENING, host=config.host, port=intake.port)
    _keep_house(control, config.housekeeping_seconds, worker)
    _keep_operators_informed(aws, config, worker)
    return intake


def _keep_house(control: Control, seconds: float, worker: Worker) -> None:
    """Finish what stopped half-way. Keys and what expires are the monitor's, which does them once across the fleet."""
    keeper = system("housekeeping")

    async def resume() -> None:
        for tenant in await control.tenants.unfinished():
            try:
                await control.tenants.resume(keeper, tenant)
            except SnavioError as error:
                # One tenant's trouble is not the others'.
                worker.log.warning(LogEvent.TASK_TOLERATED, error=error, task="resume", tenant=tenant)

    worker.every(seconds, resume, name="finish-registrations", tolerate=(SnavioError,))


def _keep_operators_informed(aws: Aws, config: GatewayConfig, worker: Worker) -> None:
    """The platform's own telemetry needs a pipeline as a tenant's does; with no readers named, only root reads it."""

    async def provision() -> None:
        await provision_pipeline(aws.client, config.names, PLATFORM_TENANT)

    worker.every(
        _PIPELINE_SECONDS, provision, name="operators-pipeline", tolerate=(SnavioError,), at_once=True
    )


def _tokens(config: GatewayConfig, worker: Worker) -> Tokens:
    path = config.secret_path
    return Tokens(
        secret=read_secret(path.read_bytes()) if path else None,
        keys=Jwks(config.jwks_url, clock=worker.now) if config.jwks_url else None,
        rules=TokenRules(
            issuer=config.jwt_issuer,
            audience=config.jwt_audience,
            lifetime_seconds=config.token_days * 24 * 3600,
        ),
        clock=worker.now,
    )
