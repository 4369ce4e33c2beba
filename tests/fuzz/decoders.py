"""Every decoder of the product with what it may raise, and the places in the code each of them stands for."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
from ingress_check import check
from ingress_corpus import SEEDS
from ingress_mutations import Case

from snavio.aws import attributes
from snavio.aws.arns import parse_queue_arn
from snavio.aws.errors import Permanent
from snavio.aws.lean.calls import _fault
from snavio.aws.lean.http import Malformed, Response, ResponseReader
from snavio.control.decoding import faults_in
from snavio.control.queue_policy import Request, judge
from snavio.control.route_checks import dlq_of
from snavio.control.routes import RouteSpec
from snavio.fast.config import FastConfig
from snavio.gateway.tokens import TokenRules, Tokens, Unauthenticated, principal_of
from snavio.outbox.boto.stream import _record
from snavio.outbox.notebook import _key as burst_key_of
from snavio.outbox.values import read_row
from snavio.registry.changelog import read_change
from snavio.registry.rows import KINDS, MalformedRowError, decode_entry
from snavio.registry.schemas import SchemaError, compile_schema
from snavio.registry.sealing import Sealer, UnsealError
from snavio.registry.snapshot_parts import Kind, PartError, unpack
from snavio.registry.snapshot_pointer import PointerError, decode_pointer, public_key_of
from snavio.replay.recovered import recover, replay_name
from snavio.runtime.config import load
from snavio.runtime.errors import ConfigError
from snavio.runtime.tracecontext import parse_traceparent
from snavio.sdk import errors as sdk_errors
from snavio.sdk.handling import Handling
from snavio.sdk.http_config import _explained
from snavio.sdk.inbox import Message
from snavio.sdk.payloads import PayloadError, decoder_of
from snavio.sdk.tenant_config import choose_signer, decode_config
from snavio.spark import items
from snavio.telemetry.alert_log import _burst
from snavio.wire.canonical import canonicalise
from snavio.wire.commands import decode_admitted, decode_escalated
from snavio.wire.events import decode_event
from snavio.wire.stats import MalformedStats, StatRow, decode_columns, decode_rows, encode_rows
from snavio.wire.times import parse_time

TEXT, BYTES, VALUE, ITEM, IMAGE = "text", "bytes", "value", "item", "image"


@dataclass(frozen=True)
class Decoder:
    """One decoder: what it takes, what it may raise, and its places as `member/module.py:function`."""

    call: Callable[[Any], Any]
    takes: str
    raises: tuple[type[Exception], ...]
    places: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Fields it looks for."""
    valid: tuple[Any, ...] = ()


def _read_response(data: bytes) -> object:
    reader = ResponseReader()
    return reader.feed(data) or reader.feed_eof()


def _entries(body: str) -> None:
    for kind in KINDS:
        try:
            decode_entry(f"{kind}#a", "b", body)
        except MalformedRowError:
            continue


def _stream_record(image: Any) -> object:
    when = SimpleNamespace(timestamp=lambda: 0.0)
    change = {"SequenceNumber": "1", "ApproximateCreationDateTime": when, "NewImage": image}
    return _record({"dynamodb": change, "eventName": "INSERT"})


def _unpack_any(body: bytes) -> None:
    for kind in Kind:
        try:
            unpack(kind, body, 100)
        except PartError:
            continue


def _token(text: str) -> object:
    tokens = Tokens(secret=b"s" * 32, keys=None, rules=TokenRules(), clock=lambda: 0.0)
    part = base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")
    return [asyncio.run(_refused(tokens, token)) for token in (text, f"{part}.{part}.{part}")]


async def _refused(tokens: Tokens, token: str) -> None:
    try:
        await tokens.read(token)
    except Unauthenticated:
        return


def _setting(text: str) -> object:
    return load(
        FastConfig,
        {"AWS_REGION": "eu-central-1", "SNAVIO_REGION": text, "SNAVIO_TTL_JITTER": text},
        service="fast",
    )


def _payload(body: bytes) -> None:
    for wanted in (Any, int, dict[str, int], list[str]):
        try:
            decoder_of(wanted)(body)
        except PayloadError:
            continue


def _deliver(text: str) -> object:
    handling = Handling(
        "bot", {}, payloads=None, store=None, claim_seconds=1, attempts=3, retry_seconds=1, roll=lambda: 0.5
    )
    return asyncio.run(handling.handle(Message("m", "r", text)))


def _request(text: str) -> object:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return faults_in(value, RouteSpec)


def _schema(value: Any) -> object:
    return compile_schema(value)(msgspec.Raw(b'{"a":[1]}'))


def _feed_item(item: Any) -> object:
    known = items.readable(item)
    columns = items.counts_of(item)[1]
    assert known.keys() >= set(items.HEAD), "what counts can be read of has a head that can"
    return sum(columns.count)


def _policy(text: str) -> object:
    return judge(text, Request("arn:aws:iam::1:role/r", "sqs:SendMessage", "arn:aws:sqs:r:1:q"))


_CHECK = compile_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
_ADMITTED = (
    '{"source":"a/b","id":"i","timestamp":"t","target":"x","name":"y","received_at":1.0,"payload":{"a":[1]}}'
)
_ROUTE = '{"target":"a","command":"b","tenant":"c","queue_arn":"q","schema":{"x":1},"rate_limit":{"limit":1}}'
_EVENT = '{"event":"snavio.command.invalid","event_id":"e","tenant":"t","emitted_at":"x","reason":"bad-field","detail":"d"}'
_CONFIG = (
    b'{"tenant":"a","services":[{"source":"a/b","keys":[{"version_id":"v","secret_b64":"AAAA"}]}],"bus":"b"}'
)
_HTTP = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}"
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
_METADATA = (
    "id",
    "timestamp",
    "type",
    "version_id",
    "hmac",
    "target",
    "name",
    "payload",
    "source",
    "command",
    "detail",
    "metadata",
)
_ROW = (
    "pk",
    "sk",
    "body",
    "tenant",
    "event_type",
    "source",
    "written_at",
    "expires_at",
    "seq",
    "row_pk",
    "row_sk",
    "at",
    "actor",
)
_ATTRIBUTE = ("S", "N", "B", "L", "M", "BOOL", "NULL", "SS", "NS", "BS")

_FEED_ITEM = {
    "worker": "w",
    "service": "fast",
    "part": 0,
    "parts": 1,
    "sequence": 7,
    "last": False,
    "row_count": 1,
    "digest": 1,
    "rows": encode_rows([StatRow("a/b", "t", "c", "dispatched", 3, 4)]),
}

DECODERS: dict[str, Decoder] = {
    "ingress": Decoder(lambda text: check(Case("hostile", text)), TEXT, (), ("domain/screening.py:_decode", "domain/diagnosis.py:diagnose", "shield/tracing.py:_decode"), _METADATA, (SEEDS[0][0],)),
    "request": Decoder(_request, TEXT, (), ("control/decoding.py:faults_in",), ("queue_arn", "schema", "rate_limit", "limit", "expires_at")),
    "delivered command": Decoder(_deliver, TEXT, (), ("sdk/handling.py:_decoder", "sdk/handling.py:handle"), _METADATA),
    "burst of alerts": Decoder(_burst, ITEM, (), ("telemetry/alert_log.py:_burst",), ("tenant", "event_type", "target", "count", "first_at", "last_at")),
    "admitted": Decoder(decode_admitted, TEXT, (msgspec.DecodeError,), ("wire/commands.py:_admitted", "wire/commands.py:_read"), _METADATA, (_ADMITTED,)),
    "escalated": Decoder(decode_escalated, TEXT, (msgspec.DecodeError,), ("wire/commands.py:_escalated",), (*_METADATA, "reason"), (f'{{"command":{_ADMITTED},"reason":"cache_miss","escalated_at":1}}',)),
    "telemetry event": Decoder(decode_event, TEXT, (msgspec.DecodeError,), ("wire/events.py:_decoder", "wire/events.py:decode_event"), ("event", "event_id", "tenant"), (_EVENT,)),
    "telemetry event, bytes": Decoder(decode_event, BYTES, (msgspec.DecodeError,), (), (), (_EVENT.encode(),)),
    "canonical form": Decoder(canonicalise, BYTES, (ValueError,), ("wire/canonical.py:canonicalise",), (), (b'{"a":[1e3,"\\u00e9"]}',)),
    "time": Decoder(parse_time, TEXT, (), ("wire/times.py:seconds_of",), (), ("2027-01-15T08:00:00.5+01:00",)),
    "stats columns": Decoder(decode_columns, BYTES, (MalformedStats,), ("wire/stats.py:_columns", "wire/stats.py:decode_columns")),
    "stats rows": Decoder(decode_rows, BYTES, (MalformedStats,), ()),
    "feed item": Decoder(_feed_item, ITEM, (MalformedStats,), ("spark/items.py:counts_of", "spark/items.py:_fits"), (*items.HEAD, "rows"), (_FEED_ITEM,)),
    "feed attribute": Decoder(items.plain, ITEM, (), (), _ATTRIBUTE),
    "registry entry": Decoder(_entries, TEXT, (), ("registry/rows.py:_decoders", "registry/rows.py:decode_entry"), ("target", "command", "tenant", "queue_arn", "schema", "source", "sealed"), (_ROUTE,)),
    "changelog entry": Decoder(read_change, ITEM, (msgspec.ValidationError,), ("registry/changelog.py:read_change",), _ROW),
    "snapshot part": Decoder(_unpack_any, BYTES, (), ("registry/snapshot_parts.py:unpack",)),
    "snapshot pointer": Decoder(decode_pointer, BYTES, (PointerError,), ("registry/snapshot_pointer.py:_decode", "registry/snapshot_pointer.py:decode_pointer"), ("pointer", "signature", "kind", "parts")),
    "snapshot public key": Decoder(public_key_of, BYTES, (PointerError,), ("registry/snapshot_pointer.py:public_key_of",)),
    "sealed secret": Decoder(lambda blob: Sealer(None).unseal(blob, source="a/b", version_id="v"), BYTES, (UnsealError,), ()),
    "payload schema": Decoder(_schema, VALUE, (SchemaError,), (), ("type", "properties", "$ref", "items", "pattern")),
    "payload against a schema": Decoder(lambda blob: _CHECK(msgspec.Raw(blob)), BYTES, (), ("registry/schemas.py:compile_schema",), ("a",), (b'{"a":1}',)),
    "HTTP response": Decoder(_read_response, BYTES, (Malformed,), (), (), (_HTTP, _CHUNKED)),
    "AWS error answer": Decoder(lambda body: str(_fault("Op", Response(400, body, True))), BYTES, (), ("aws/lean/calls.py:_fault",), ("__type", "message", "CancellationReasons", "Item", "Code"), (b'{"__type":"x#ThrottlingException"}',)),
    "attribute": Decoder(attributes.decode, ITEM, (Permanent,), ("aws/attributes.py:_decode_bytes",), _ATTRIBUTE),
    "queue ARN": Decoder(parse_queue_arn, TEXT, (Permanent,), ()),
    "stream record": Decoder(_stream_record, IMAGE, (), (), _ROW),
    "outbox row": Decoder(read_row, ITEM, (msgspec.ValidationError,), ("outbox/values.py:read_row",), _ROW),
    "what an outbox row is about": Decoder(lambda text: burst_key_of(SimpleNamespace(body=text, tenant="t", event_type="e")), TEXT, (), ("outbox/notebook.py:_about", "outbox/notebook.py:_key"), ("target",), (_EVENT,)),
    "recovered command": Decoder(recover, TEXT, (), ("replay/recovered.py:recover",), _METADATA, (_ADMITTED,)),
    "replay name": Decoder(replay_name, TEXT, (), ("replay/recovered.py:replay_name",), ("replay-name",)),
    "trace context": Decoder(parse_traceparent, TEXT, (), (), (), ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",)),
    "settings": Decoder(_setting, TEXT, (ConfigError,), ("runtime/config.py:_convert",), (), ("0.5",)),
    "token": Decoder(_token, TEXT, (), ("gateway/tokens.py:read",), ("alg", "typ", "kid"), ('{"alg":"HS256"}',)),
    "claims": Decoder(principal_of, ITEM, (Unauthenticated,), (), ("sub", "roles", "tenant", "registration")),
    "redrive policy": Decoder(lambda text: dlq_of({"RedrivePolicy": text}), TEXT, (), ("control/route_checks.py:dlq_of",), ("deadLetterTargetArn",)),
    "queue policy": Decoder(_policy, TEXT, (), ("control/queue_policy.py:judge",), ("Statement", "Principal", "Action", "Resource", "Effect", "Condition", "AWS")),
    "tenant configuration": Decoder(decode_config, BYTES, (sdk_errors.ConfigError,), ("sdk/tenant_config.py:_decoder", "sdk/tenant_config.py:decode_config"), ("tenant", "services", "keys"), (_CONFIG,)),
    "signing key": Decoder(lambda blob: choose_signer(decode_config(blob), "a/b", 0.0), BYTES, (sdk_errors.ConfigError,), ("sdk/tenant_config.py:choose_signer",), (), (_CONFIG,)),
    "gateway's explanation": Decoder(_explained, BYTES, (), ("sdk/http_config.py:_explained",), ("title", "detail")),
    "handler's payload": Decoder(_payload, BYTES, (), ("sdk/payloads.py:decoder_of",)),
}  # fmt: skip
