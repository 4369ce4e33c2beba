"""The demonstration itself: three tenants, ten situations, and what each of them must come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from botocore.exceptions import ClientError

from snavio.demo.checks import Checks, counted, percentile
from snavio.demo.http import Gateway
from snavio.demo.platform import Running
from snavio.demo.tenants import Cloud, Queue, Tenant, put_events, read_queue

DELIVERED = "snavio.command.delivered"
FAILED = "snavio.command.failed"
INVALID = "snavio.command.invalid"
DUPLICATE = "snavio.command.duplicate"
BAN = "snavio.fairness.warm-path-ban"

_WARM, _STRICT, _COPIES, _LIMITED, _LIMIT, _SURVIVORS, _REVOKED = 300, 10, 20, 60, 25, 200, 20
_CONTENDED, _EVERY, _AFTERWARDS = 80, 8, 10
_PATIENCE_SECONDS = 60.0
_LOOKS, _LOOK_SECONDS = 20, 0.5

Say = Callable[[str], None]


class Demonstration:
    """Registers the tenants, sends their commands and checks what became of them."""

    def __init__(self, running: Running, say: Say) -> None:
        platform = running.platform
        self._running = running
        self._say = say
        self._root = Cloud(platform.aws_endpoint_url)
        self._http_url = platform.http_url
        self._admin = Gateway(platform.http_url, platform.admin_token)
        self.checks = Checks()
        self.latencies: dict[str, list[float]] = {"fast": [], "slow": []}

    async def run(self) -> None:
        """Give the whole demonstration."""
        self._say("registering tenants, services, routes and grants over HTTP")
        acme, globex, mallory = [
            await Tenant.register(name, self._root, self._admin, self._http_url)
            for name in ("acme", "globex", "mallory")
        ]
        source = await acme.add_service("billing")
        outsider = await mallory.add_service("probe")
        queues = await self._routes(globex, source)
        cloud = await acme.emitter()
        await self._warm(acme, cloud, source, queues["notify-user"])
        await self._strict(acme, cloud, source, queues["refund"])
        await self._limited(acme, cloud, source, queues["sms"])
        await self._fairness(acme, globex, source, queues["post"])
        await self._refusals(acme, cloud, source)
        await self._forgery(mallory, acme, source, outsider, queues["notify-user"])
        await self._survival(acme, cloud, source, queues["notify-user"])
        await self._revocation(acme, globex, cloud, source)

    async def _routes(self, globex: Tenant, source: str) -> dict[str, Queue]:
        rules: dict[str, dict[str, Any]] = {
            "notify-user": {},
            "refund": {"dedupe_mode": "strict"},
            "sms": {"rate_limit": {"limit": _LIMIT, "interval_seconds": 3600, "burst": _LIMIT}},
            "revoke-token": {"sensitivity": "critical"},
            "typed": {"schema": {"type": "object", "required": ["user"]}},
            "post": {},
            "closed": {},
        }
        queues: dict[str, Queue] = {}
        for command, rule in rules.items():
            queues[command] = await globex.make_queue(f"globex-{command}")
            await globex.gateway.call(
                "PUT", f"/api/v1/routes/discord-bot/{command}", {"queue_arn": queues[command].arn, **rule}
            )
            if command != "closed":
                await globex.gateway.call("PUT", f"/api/v1/acls/{source}/discord-bot/{command}", {})
        return queues

    async def _warm(self, acme: Tenant, cloud: Cloud, source: str, queue: Queue) -> None:
        await self._known(acme, cloud, source, "notify-user", queue)
        self._say(f"{_WARM} commands on a warm route")
        entries = [
            acme.entry(source, "discord-bot", "notify-user", {"n": n, "text": "grüße"}) for n in range(_WARM)
        ]
        await put_events(cloud, entries)
        arrived = await self._arrivals(queue, _WARM)
        events = await self._told(acme, lambda events: counted(events, DELIVERED) >= _WARM)
        self.checks.equal(
            "commands put on the bus arrive at the target", _WARM, len({m["metadata"]["id"] for m in arrived})
        )
        self.checks.equal(
            "… with the source the platform authenticated",
            {source},
            {m["command"]["source"] for m in arrived},
        )
        self.checks.equal(
            "… and the sender is told of each",
            _WARM,
            len({e["command_id"] for e in events if e["event"] == DELIVERED}),
        )
        fast = counted(events, DELIVERED, path="fast")
        self.checks.true(
            "… most of them from warm memory",
            expected=f"> {_WARM // 2}",
            seen=str(fast),
            holds=fast > _WARM // 2,
        )
        for event in events:
            if event["event"] == DELIVERED:
                self.latencies[event["path"]].append(event["dispatch_latency_ms"])

    async def _known(self, acme: Tenant, cloud: Cloud, source: str, command: str, queue: Queue) -> None:
        """Send until one takes the fast path: the first second or two of a new grant, slow asks and fast has yet to look."""
        for _ in range(_LOOKS):
            await put_events(cloud, [acme.entry(source, "discord-bot", command, {})])
            events = await self._told(acme, lambda events: counted(events, DELIVERED) > 0)
            await self._arrivals(queue, 1)
            if counted(events, DELIVERED, path="fast"):
                return
            await anyio.sleep(_LOOK_SECONDS)

    async def _strict(self, acme: Tenant, cloud: Cloud, source: str, queue: Queue) -> None:
        self._say(f"{_STRICT} refunds, each sent {_COPIES} times")
        refunds = [acme.entry(source, "discord-bot", "refund", {"n": n}) for n in range(_STRICT)]
        copies = [refunds[n % _STRICT] for n in range(_STRICT * _COPIES)]
        await put_events(cloud, copies)
        repeats = _STRICT * (_COPIES - 1)
        events = await self._told(acme, lambda events: counted(events, DUPLICATE) >= repeats)
        arrived = await self._arrivals(queue, _STRICT, settle=True)
        self.checks.equal("a strict command is delivered once", _STRICT, len(arrived))
        self.checks.equal("… and each copy is reported", repeats, counted(events, DUPLICATE))

    async def _limited(self, acme: Tenant, cloud: Cloud, source: str, queue: Queue) -> None:
        self._say(f"{_LIMITED} commands against a limit of {_LIMIT}")
        await put_events(cloud, [acme.entry(source, "discord-bot", "sms", {"n": n}) for n in range(_LIMITED)])
        refused = _LIMITED - _LIMIT
        events = await self._told(acme, lambda e: counted(e, FAILED) >= refused)
        arrived = await self._arrivals(queue, _LIMIT, settle=True)
        self.checks.equal("a limit lets through what it allows, and no more", _LIMIT, len(arrived))
        hinted = [e for e in events if e.get("reason") == "rate-limit-exceeded" and e["retry_after_ms"] > 0]
        self.checks.equal("… and refuses the rest with a hint when to try again", refused, len(hinted))

    async def _fairness(self, acme: Tenant, globex: Tenant, busy: str, queue: Queue) -> None:
        self._say("one source takes most of a command that another wants too")
        quiet = await acme.add_service("audit")
        await globex.gateway.call("PUT", f"/api/v1/acls/{quiet}/discord-bot/post", {})
        cloud = await acme.emitter()
        for sender in (busy, quiet):
            await self._known(acme, cloud, sender, "post", queue)
        senders = [quiet if n % _EVERY == 0 else busy for n in range(_CONTENDED)]
        await put_events(cloud, [acme.entry(sender, "discord-bot", "post", {}) for sender in senders])
        events = await self._told(acme, lambda e: counted(e, DELIVERED) >= _CONTENDED and counted(e, BAN) > 0)
        self.checks.equal(
            "a source that dominates is told of its ban",
            {busy},
            {e["source"] for e in events if e["event"] == BAN},
        )
        await self._arrivals(queue, _CONTENDED)
        later = [acme.entry(sender, "discord-bot", "post", {}) for sender in [busy, quiet] * _AFTERWARDS]
        await put_events(cloud, later)
        paths = {
            (m["command"]["source"], m["metadata"]["path"]) for m in await self._arrivals(queue, len(later))
        }
        expected = {f"{busy} slow", f"{quiet} fast"}
        self.checks.equal(
            "… and leaves the warm path to the quiet one", expected, {" ".join(pair) for pair in paths}
        )
        told = await self._told(globex, lambda events: counted(events, BAN) > 0)
        self.checks.equal(
            "… and so is the owner of the target", {busy}, {e["source"] for e in told if e["event"] == BAN}
        )
        await self._told(acme, lambda events: counted(events, DELIVERED) >= len(later))

    async def _refusals(self, acme: Tenant, cloud: Cloud, source: str) -> None:
        self._say("one command for each thing that can be wrong")
        entry = acme.entry
        bad: dict[str, dict[str, str]] = {
            "hmac-mismatch": entry(source, "discord-bot", "notify-user", {}, hmac="0" * 64),
            "hmac-unknown-key": entry(source, "discord-bot", "notify-user", {}, version_id="hmac-v9"),
            "timestamp-out-of-window": entry(source, "discord-bot", "notify-user", {}, clock_off_by=-600.0),
            "source-in-payload": entry(
                source, "discord-bot", "notify-user", {}, command={"source": "boss/payroll"}
            ),
            "bad-field": entry(source, "discord-bot", "notify-user", {}, id="not-a-uuid"),
            "wrong-type": entry(source, "discord-bot", "notify-user", {}, timestamp=5),
            "schema-violation": entry(source, "discord-bot", "typed", {"wrong": True}),
            "acl-deny": entry(source, "discord-bot", "closed", {}),
            "route-missing": entry(source, "discord-bot", "unheard-of", {}),
        }
        await put_events(cloud, list(bad.values()))
        events = await self._told(acme, lambda e: counted(e, INVALID) + counted(e, FAILED) >= len(bad))
        reasons = sorted(e["reason"] for e in events if e["event"] in {INVALID, FAILED})
        self.checks.equal("each fault is refused with its own reason", sorted(bad), reasons)

    async def _forgery(self, mallory: Tenant, acme: Tenant, source: str, outsider: str, queue: Queue) -> None:
        self._say("another tenant tries to pass for the first")
        cloud = await mallory.emitter()
        forged = acme.entry(source, "discord-bot", "notify-user", {"forged": True})
        self.checks.equal(
            "IAM refuses a source that is not one's own", "refused", await _attempt(cloud, forged)
        )
        honest = mallory.entry(outsider, "discord-bot", "notify-user", {"uninvited": True})
        await put_events(cloud, [honest])
        events = await self._told(mallory, lambda events: counted(events, FAILED) >= 1)
        self.checks.equal(
            "… and an own source without a grant gets nowhere", 1, counted(events, FAILED, reason="acl-deny")
        )
        self.checks.equal(
            "telemetry goes to its own tenant alone", {"mallory"}, {event["tenant"] for event in events}
        )
        self.checks.equal(
            "nothing of it reached the target", 0, len(await self._arrivals(queue, 1, seconds=2))
        )

    async def _survival(self, acme: Tenant, cloud: Cloud, source: str, queue: Queue) -> None:
        self._say(f"{_SURVIVORS} commands while shield, fast and slow are killed in the middle of them")
        entries = [acme.entry(source, "discord-bot", "notify-user", {"n": n}) for n in range(_SURVIVORS)]
        third = _SURVIVORS // 3
        killed = 0
        for start, service in ((0, "fast"), (third, "shield"), (2 * third, "slow")):
            await put_events(cloud, entries[start : start + third + 2])
            killed += self._running.kill(service)
        arrived = await self._arrivals(queue, _SURVIVORS, seconds=2 * _PATIENCE_SECONDS)
        self.checks.equal("workers killed", 3, killed)
        self.checks.equal("… and no command is lost", _SURVIVORS, len({m["metadata"]["id"] for m in arrived}))
        await self._told(acme, lambda events: counted(events, DELIVERED) >= _SURVIVORS)

    async def _revocation(self, acme: Tenant, globex: Tenant, cloud: Cloud, source: str) -> None:
        self._say("a critical grant is revoked")
        await globex.gateway.call("DELETE", f"/api/v1/acls/{source}/discord-bot/revoke-token")
        await anyio.sleep(5)
        await put_events(
            cloud, [acme.entry(source, "discord-bot", "revoke-token", {"n": n}) for n in range(_REVOKED)]
        )
        events = await self._told(acme, lambda events: counted(events, FAILED) >= _REVOKED)
        denied = counted(events, FAILED, reason="acl-deny")
        self.checks.equal("five seconds after a critical grant is revoked nothing passes", _REVOKED, denied)

    async def _arrivals(
        self, queue: Queue, count: int, *, seconds: float = _PATIENCE_SECONDS, settle: bool = False
    ) -> list[dict[str, Any]]:
        def enough(found: list[dict[str, Any]]) -> bool:
            return len({message["metadata"]["id"] for message in found}) >= count

        found = await read_queue(self._root, queue.url, until=enough, seconds=seconds)
        if settle:
            # What should not come is given time to come all the same.
            found += await read_queue(self._root, queue.url, until=bool, seconds=2)
        return found

    async def _told(
        self, tenant: Tenant, until: Callable[[list[dict[str, Any]]], bool]
    ) -> list[dict[str, Any]]:
        """A tenant's telemetry, each event once."""

        def once(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return list({event["event_id"]: event for event in events}.values())

        return once(
            await tenant.telemetry(until=lambda events: until(once(events)), seconds=_PATIENCE_SECONDS)
        )


async def _attempt(cloud: Cloud, entry: dict[str, str]) -> str:
    try:
        return "refused" if await put_events(cloud, [entry]) else "accepted"
    except ClientError as error:
        return "refused" if "AccessDenied" in str(error) else str(error)


def latency_line(latencies: dict[str, list[float]]) -> str:
    """Dispatch latency by path, for people."""
    parts = [
        f"{path}: p50 {percentile(values, 0.5):.0f} ms, p95 {percentile(values, 0.95):.0f} ms ({len(values)})"
        for path, values in latencies.items()
        if values
    ]
    return "dispatch latency, from the bus to the target's queue: " + "; ".join(parts)
