"""Every decoder gives a value or the error it documents, whatever it is given, and none is forgotten."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from hostile_documents import LARGE_TEXTS, blobs, texts, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from decoders import BYTES, DECODERS, IMAGE, ITEM, TEXT  # noqa: E402

ATTRIBUTE_TYPES = ["S", "N", "B", "L", "M", "BOOL", "NULL", "SS", "NS", "BS"]
READING = {
    "loads", "convert", "b64decode", "urlsafe_b64decode", "a2b_base64", "decompressobj", "load_der_public_key",
    "fromisoformat", "get_unverified_header",
}  # fmt: skip

EXCUSED_MEMBERS = {
    "cli": "reads what its user typed and what the gateway answered, and ends with a message",
    "demo": "reads what it wrote",
    "embedded": "not part of the platform: the local AWS, for one user",
    "provisioning": "reads what AWS says of the platform's own resources",
    "spark": "reads its own lake; what workers wrote is decoded by spark/items.py and wire/stats.py, both listed",
}
OWN = "reads back what the platform wrote under this very key: anything else there is a fault to be raised"
EXCUSED = {
    "aws/boto/calls.py:__call__": "Transient for any other answer: test_aws_adapters.py",
    "aws/lean/calls.py:__call__": "Transient for any other answer: test_aws_lean_client.py",
    "aws/lean/calls.py:_decoder": "as above",
    "aws/memory/vault.py:open_data_key": "a fake",
    "control/decoding.py:read": "after faults_in has found none",
    "control/directory.py:_get": OWN,
    "control/directory.py:_list": OWN,
    "control/directory.py:audit": OWN,
    "control/health.py:of": OWN,
    "control/history.py:_masked": OWN,
    "dispatch/claim_store.py:_record": OWN,
    "gateway/guard.py:check_form": "driven over HTTP: test_gateway_fuzz.py",
    "gateway/history_documents.py:of": OWN,
    "gateway/jwks.py:_download": "needs a provider: test_gateway_tokens.py",
    "monitor/route_watch.py:_memory": OWN,
    "outbox/shard_leases.py:_lease": OWN,
    "registry/snapshot_pointer.py:encode_pointer": "takes apart what it has just encoded",
    "replay/records.py:find": OWN,
    "sdk/handlers.py:run": "calls what sdk/payloads.py:decoder_of made",
    "sdk/inbox.py:redrive": "what SQS says of the tenant's own queue",
    "sdk/testing/registry.py:key": "a fake",
    "sdk/testing/snavio.py:register_route": "a fake",
    "telemetry/alert_log.py:_kept": "takes apart what it has just encoded",
    "telemetry/alert_log.py:content": OWN,
    "telemetry/alert_log.py:due": OWN,
    "telemetry/alert_log.py:raised": OWN,
    "telemetry/alert_store.py:choose": "takes apart what it has just encoded",
    "telemetry/alert_store.py:settings": OWN,
    "telemetry/queue_watch.py:_memory": OWN,
}


def inputs(decoder):
    names = list(decoder.names) or ["a"]
    if decoder.takes == TEXT:
        return texts(names, list(decoder.valid))
    if decoder.takes == BYTES:
        return blobs(names, list(decoder.valid))
    if decoder.takes == ITEM:
        keys = st.sampled_from(names)
        return st.dictionaries(keys, values(names), max_size=8)
    if decoder.takes == IMAGE:
        attribute = st.dictionaries(st.sampled_from(ATTRIBUTE_TYPES), values(ATTRIBUTE_TYPES), max_size=1)
        return st.dictionaries(st.sampled_from(names), attribute, max_size=8)
    return values(names)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_gives_a_value_or_its_own_error(name):
    decoder = DECODERS[name]

    @settings(
        max_examples=max(60, settings().max_examples), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(inputs(decoder))
    def decode(given_input):
        try:
            decoder.call(given_input)
        except decoder.raises:
            return

    decode()


@pytest.mark.parametrize(
    "name", [name for name, decoder in DECODERS.items() if decoder.takes in {TEXT, BYTES}]
)
def test_what_is_huge_or_deep_is_answered_too(name):
    decoder = DECODERS[name]
    for text in LARGE_TEXTS:
        try:
            decoder.call(text if decoder.takes == TEXT else text.encode())
        except decoder.raises:
            continue


@pytest.mark.parametrize("name", [name for name, decoder in DECODERS.items() if decoder.valid])
def test_what_is_valid_is_decoded(name):
    """Else the inputs made from it would prove nothing."""
    for document in DECODERS[name].valid:
        if name not in {"settings", "payload against a schema"}:
            DECODERS[name].call(document)


def reading_places():
    """Where the product reads bytes, text or values that came from elsewhere: `member/module.py:function`."""
    for path in sorted(ROOT.glob("*/*/src/snavio/**/*.py")) + sorted(ROOT.glob("spark/src/snavio/**/*.py")):
        module = str(path).partition("/src/snavio/")[2]
        for owner, node in calls(ast.parse(path.read_text()), "<module>"):
            if is_reading(node):
                yield f"{module}:{owner}"


def calls(tree, owner):
    """Every call with the function it stands in, or the name it is assigned to."""
    for node in ast.iter_child_nodes(tree):
        inner = owner
        if owner == "<module>" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = node.name
        elif owner == "<module>" and isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            inner = getattr(target, "id", owner)
        if isinstance(node, ast.Call):
            yield inner, node
        yield from calls(node, inner)


def is_reading(node):
    function = node.func
    if not isinstance(function, ast.Attribute):
        return getattr(function, "id", "") in READING
    if function.attr == "decode":
        # `text.decode()` of what was just encoded is no reading; a decoder gets something to decode.
        return bool(node.args) and not isinstance(node.args[0], ast.Constant)
    return function.attr in READING or (function.attr == "Decoder" and "msgspec" in ast.unparse(function))


def test_no_decoder_is_forgotten():
    found = set(reading_places())
    listed = {place for decoder in DECODERS.values() for place in decoder.places}
    excused = {place for place in found if place.partition("/")[0] in EXCUSED_MEMBERS} | EXCUSED.keys()
    assert found - listed - excused == set(), "list these in decoders.py, or say why not"
    assert (EXCUSED.keys() | listed) - found == set(), "no longer there"
