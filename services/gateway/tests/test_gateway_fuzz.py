"""The API driven from its own description: valid and invalid requests to every operation, from every kind of caller."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio.from_thread
import anyio.to_thread
import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = [pytest.mark.aws, pytest.mark.timeout(1800)]

EXAMPLES = max(1, settings().max_examples // 50)
"""Two for each operation, caller and mode in the default run; the profile of `make fuzz` asks for more."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
KNOWN = {
    "tenant": ["acme", "rival"],
    "service": ["billing", "shop"],
    "target": ["discord-bot"],
    "command": ["notify-user"],
    "seq": [1, 2, 3],
}
# Of acme's, and named in no request of another's: whoever reads one of these has read what is acme's alone.
HIDDEN = ("hidden-service-7f3a", "hidden-target-7f3a", "hidden-7f3a@acme.example", "hidden-queue-7f3a")


class Scene:
    """Two tenants, one with something to hide, and everybody who might ask."""

    def __init__(self, api: Any, acme: Any, rival: Any) -> None:
        self.api = api
        self.acme = acme
        self.insiders = {"admin": api.admin, "acme": acme}
        self.outsiders = {
            "rival": rival,
            "roleless": api.caller(roles=[]),
            "bound-viewer": api.caller(roles=["Viewer"], tenant="rival"),
            "nobody": api.nobody,
        }
        self.readers = {"viewer": api.caller(roles=["Viewer"])}

    async def state(self) -> Any:
        """Everything of acme's that a caller could change."""
        paths = ("tenant-config", "tenants/acme", "tenants/acme/alerts", "routes", "bans")
        answers = [await self.acme.do("GET", f"/api/v1/{path}") for path in paths]
        answers.append(await self.acme.do("GET", "/api/v1/routes/discord-bot/notify-user/acls"))
        # Their numbers are the platform's, and others' changes count on.
        answers.append((await self.acme.do("GET", "/api/v1/changelog"))["changes"])
        return answers


@pytest.fixture
async def scene(api):
    acme = await api.tenant("acme", contact_email="hidden-7f3a@acme.example")
    rival = await api.tenant("rival")
    for source in ("acme/billing", "acme/hidden-service-7f3a"):
        await api.service(acme, source)
    await api.service(rival, "rival/shop")
    queue = await api.queue(f"{api.names.prefix}-hidden-queue-7f3a")
    for target in ("discord-bot", "hidden-target-7f3a"):
        await acme.do("PUT", f"/api/v1/routes/{target}/notify-user", {"queue_arn": queue})
    await acme.do("PUT", "/api/v1/acls/acme/billing/discord-bot/notify-user", {})
    return Scene(api, acme, rival)


async def drive(scene: Scene, callers: dict[str, Any], *, hidden: tuple[str, ...]) -> Counter[int]:
    """Ask everything of the API as each of these; the statuses it answered with."""
    schema = schemathesis.openapi.from_dict((await scene.api.nobody.ask("GET", "/schema")).json())
    found = [each.ok() for each in schema.get_all_operations()]
    # What removes things comes last, or there would be nothing left to ask about.
    operations = sorted(found, key=lambda operation: operation.method == "delete")
    statuses: Counter[int] = Counter()
    for operation in operations:
        for mode in schemathesis.GenerationMode:
            await anyio.to_thread.run_sync(_drive_one, scene, operation, mode, callers, hidden, statuses)
    return statuses


def _drive_one(
    scene: Scene,
    operation: Any,
    mode: Any,
    callers: dict[str, Any],
    hidden: tuple[str, ...],
    statuses: Counter[int],
) -> None:
    @settings(
        max_examples=EXAMPLES * len(callers),
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode), st.sampled_from(sorted(callers)), st.data())
    def ask(case: Any, caller: str, data: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            if name in KNOWN and data.draw(st.integers(0, 3)):
                case.path_parameters[name] = data.draw(st.sampled_from(KNOWN[name]))
        answer = anyio.from_thread.run(_send, scene.api.client, case, callers[caller].token)
        statuses[answer.status_code] += 1
        said = f"{caller}: {operation.method} {case.formatted_path} {case.body!r}: {answer.status_code} {answer.text[:500]} {scene.api.lines[-1:]}"
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code >= 400 and not operation.path.endswith("z"):
            assert answer.headers["content-type"] == "application/problem+json", said
            problem = answer.json()
            assert problem["status"] == answer.status_code, said
            assert problem["type"].startswith("urn:snavio:problem:"), said
        assert not any(mark in answer.text for mark in hidden), said

    try:
        ask()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def _send(client: httpx.AsyncClient, case: Any, token: str | None) -> httpx.Response:
    wanted = case.as_transport_kwargs(base_url="http://gateway")
    wanted.pop("cookies", None)
    request = requests.Request(**wanted).prepare()
    headers = {name: value for name, value in request.headers.items() if name.lower() != "authorization"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = await client.request(request.method, request.url, content=request.body, headers=headers)
    # Checks look at what was sent as requests has it.
    answer.request.headers.pop("authorization", None)
    return answer


async def test_outsiders_get_documented_refusals_and_neither_see_nor_change_what_is_anothers(scene):
    before = await scene.state()
    statuses = await drive(scene, scene.outsiders, hidden=HIDDEN)
    assert await scene.state() == before
    assert statuses[401] > 0
    assert statuses[403] > 0


async def test_readers_and_insiders_get_what_is_described_or_a_documented_refusal(scene):
    await drive(scene, scene.readers, hidden=())
    statuses = await drive(scene, scene.insiders, hidden=())
    assert statuses[200] > 0
    assert statuses[422] > 0


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
async def test_a_moment_no_calendar_in_utc_has_is_refused_and_not_kept(scene, moment):
    """Kept, it would make every list it stands in unanswerable."""
    queue = f"{scene.api.names.prefix}-hidden-queue-7f3a"
    route = {"queue_arn": scene.api.names.queue_arn(queue), "expires_at": moment}
    path = "/api/v1/{}/acme/billing"
    requests_made = [
        (scene.acme, "/api/v1/routes/discord-bot/notify-user", route),
        (scene.acme, f"{path.format('acls')}/discord-bot/notify-user", {"expires_at": moment}),
        (scene.api.admin, path.format("bans"), {"until": moment}),
    ]
    for caller, where, body in requests_made:
        await caller.refused("PUT", where, body, status=422, kind="invalid-request")
    for listed in ("routes", "bans", "changelog", "audit"):
        await scene.api.admin.do("GET", f"/api/v1/{listed}")
