"""`snavio up`: the whole platform on this machine, in one command and without Docker."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import anyio
import msgspec

from snavio.embedded.announcement import Announcement, forget, remember
from snavio.embedded.console import Console
from snavio.embedded.credentials import CredentialsEndpoint
from snavio.embedded.datadir import claimed
from snavio.embedded.environment import service_environment
from snavio.embedded.errors import CannotStart
from snavio.embedded.launch import Ready
from snavio.embedded.ports import free_port
from snavio.embedded.processes import Child, start
from snavio.embedded.root import ACCOUNT, lender, root_session
from snavio.embedded.supervisor import Patience, ServiceSpec, Supervisor
from snavio.embedded.tokens import admin_token, signing_secret
from snavio.provisioning.apply import apply
from snavio.provisioning.describe import describe
from snavio.provisioning.failures import first_reason
from snavio.wire.names import Names

STAGES = {"gateway": 0, "shield": 0, "fast": 1, "slow": 2, "monitor": 3, "outbox": 4}
"""Every service, and when it is stopped: what takes commands in goes first, what reports on them last."""
_SAVE_SECONDS = 30.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where."""

    data_dir: Path = Path(".snavio")
    port_aws: int = 4566
    port_http: int = 8080
    services: tuple[str, ...] | None = None
    """Those named, or every one that is installed."""
    modules: Mapping[str, str] = {}
    """Modules to run in place of a service's own, by its name."""
    patience: Patience = Patience()


async def up(options: Options, *, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> None:
    """Run the platform until SIGINT or SIGTERM; a second signal cuts the orderly stop short.

    Raises `CannotStart` with one sentence when it cannot run, or cannot go on.
    """
    modules = _modules(options)
    hurry = asyncio.Event()
    with anyio.CancelScope() as scope:
        _on_signals(lambda: hurry.set() if scope.cancel_called else scope.cancel())
        try:
            await _Platform(options, modules, Console(err), out, hurry).run()
        except BaseExceptionGroup as failures:
            reason = first_reason(failures)
            if reason is None:
                raise
            raise reason from failures


class _Platform:
    def __init__(
        self,
        options: Options,
        modules: Mapping[str, str],
        console: Console,
        out: TextIO,
        hurry: asyncio.Event,
    ) -> None:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        self._names = Names(
            prefix=os.environ.get("SNAVIO_PREFIX") or "snavio", region=region, account=ACCOUNT
        )
        self._options = options
        self._modules = modules
        self._console = console
        self._out = out
        self._hurry = hurry

    async def run(self) -> None:
        options = self._options
        with claimed(options.data_dir) as data_dir:
            port_http = free_port(options.port_http, what="HTTP") if "gateway" in self._modules else None
            async with self._aws(data_dir / "aws") as (aws, endpoint_url):
                session = root_session()
                report = await apply(describe(self._names), session, endpoint_url=endpoint_url)
                self._console.say(f"{report.resources} resources, {len(report.changes)} made or corrected")
                async with (
                    lender(session, self._names, endpoint_url) as assume,
                    anyio.create_task_group() as group,
                ):
                    group.start_soon(_fail_with, aws)
                    credentials = CredentialsEndpoint(assume)
                    async with credentials.serving():
                        await self._services(data_dir, credentials, endpoint_url, port_http)

    async def _services(
        self, data_dir: Path, credentials: CredentialsEndpoint, endpoint_url: str, port_http: int | None
    ) -> None:
        secret_file = data_dir / "jwt-secret"
        secret = signing_secret(secret_file)
        gateway = {"SNAVIO_GATEWAY_PORT": str(port_http), "SNAVIO_GATEWAY_JWT_SECRET_FILE": str(secret_file)}

        def spec(name: str, module: str) -> ServiceSpec:
            health_port = free_port(what=f"the health of {name}")
            own = {
                f"SNAVIO_{name.upper()}_HEALTH_PORT": str(health_port),
                **credentials.variables(self._names.role(name)),
                **(gateway if name == "gateway" else {}),
            }
            environment = service_environment(os.environ, self._names, endpoint_url=endpoint_url, own=own)
            return ServiceSpec(
                name=name, module=module, health_port=health_port, stage=STAGES[name], environment=environment
            )

        announcement = Announcement(
            aws_endpoint_url=endpoint_url,
            http_url=f"http://127.0.0.1:{port_http}" if port_http else None,
            admin_token=admin_token(secret, now=time.time()),
        )

        def announce() -> None:
            remember(data_dir, announcement)
            self._console.say("ready; Ctrl-C stops it")
            self._out.write(msgspec.json.encode(announcement).decode() + "\n")
            self._out.flush()

        specs = [spec(name, module) for name, module in self._modules.items()]
        try:
            await Supervisor(specs, self._console, hurry=self._hurry, patience=self._options.patience).run(
                announce
            )
        finally:
            forget(data_dir)

    @asynccontextmanager
    async def _aws(self, data_dir: Path) -> AsyncGenerator[tuple[Child, str]]:
        port = free_port(self._options.port_aws, what="the embedded AWS")
        arguments = ("--lifeline", "--port", str(port), "--data-dir", str(data_dir))
        command = (sys.executable, "-m", "snavio.embedded.aws", *arguments)
        aws = await start("aws", command, os.environ, self._console, speaks=True)
        try:
            line = await aws.first_line()
            if not line:
                raise CannotStart(f"The embedded AWS ended with code {await aws.wait()} before it was ready.")
            yield aws, msgspec.json.decode(line, type=Ready).aws_endpoint_url
        finally:
            with anyio.CancelScope(shield=True):
                # Last, and never in a hurry: this is when it saves its state.
                await aws.stop(grace_seconds=_SAVE_SECONDS, hurry=asyncio.Event())
                self._console.say("stopped")


async def _fail_with(aws: Child) -> None:
    raise CannotStart(f"The embedded AWS ended with code {await aws.wait()}.")


def _modules(options: Options) -> dict[str, str]:
    if importlib.util.find_spec("ministack") is None:
        raise CannotStart("The embedded AWS needs the package ministack, which is not installed.")
    wanted = options.services if options.services is not None else tuple(STAGES)
    if unknown := [name for name in wanted if name not in STAGES]:
        raise CannotStart(f"There is no service {unknown[0]}; there are {', '.join(STAGES)}.")
    modules = {name: options.modules.get(name, f"snavio.{name}") for name in STAGES if name in wanted}
    installed = {name: module for name, module in modules.items() if _can_run(module)}
    if options.services is not None and (missing := [name for name in modules if name not in installed]):
        raise CannotStart(f"The service {missing[0]} is not installed.")
    return installed


def _can_run(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module)
        package = found is not None and found.submodule_search_locations is not None
        return found is not None and (
            not package or importlib.util.find_spec(f"{module}.__main__") is not None
        )
    except ModuleNotFoundError:
        return False


def _on_signals(act: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act)
