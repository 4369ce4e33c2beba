"""A `Call` carried by the lean client: sign, exchange, decode."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import msgspec

from snavio.aws.errors import Permanent, Refused, Transient
from snavio.aws.faults import fault_of
from snavio.aws.lean.connection import Interrupted
from snavio.aws.lean.pool import Pool, Unreachable
from snavio.aws.lean.sigv4 import Signer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from snavio.aws.errors import SnavioError
    from snavio.aws.lean.http import Response
    from snavio.aws.lean.sigv4 import Keys

T = TypeVar("T")

_OK = 200
_KEYS_SECONDS = 1.0
"""How long credentials are used without asking for them again: they are renewed minutes before their end."""
_encode = msgspec.json.Encoder().encode
# Text that is no UTF-8 and what is nested too deeply are errors of Python's, not of msgspec's.
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class JsonService(msgspec.Struct, frozen=True):
    """How a service of AWS's JSON protocol is spoken to."""

    signing_name: str
    target: str
    content_type: str
    timeout: float
    """Seconds for a whole exchange; for SQS above its longest poll."""


SQS = JsonService("sqs", "AmazonSQS", "application/x-amz-json-1.0", 30)
DYNAMODB = JsonService("dynamodb", "DynamoDB_20120810", "application/x-amz-json-1.0", 5)


class LeanCall:
    """Carries the operations of one service at one endpoint."""

    def __init__(
        self,
        service: JsonService,
        *,
        endpoint_url: str,
        region: str,
        credentials: Callable[[], Awaitable[Keys]],
        tls: ssl.SSLContext | None,
        connect_timeout: float,
    ) -> None:
        endpoint = urlsplit(endpoint_url)
        is_tls = endpoint.scheme == "https"
        self._service = service
        self._credentials = credentials
        self._keys: Keys | None = None
        self._keys_at = 0.0
        self._signer = Signer(
            service=service.signing_name,
            region=region,
            host=endpoint.netloc,
            path=endpoint.path or "/",
            content_type=service.content_type,
        )
        self._pool = Pool(
            endpoint.hostname or "",
            endpoint.port or (443 if is_tls else 80),
            tls=tls if is_tls else None,
            connect_timeout=connect_timeout,
        )
        self._decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}

    async def aclose(self) -> None:
        """End every connection."""
        await self._pool.aclose()

    async def __call__(self, operation: str, parameters: Mapping[str, Any], answer: type[T], /) -> T:
        """The operation's answer, decoded as the type given."""
        now = time.time()
        keys = self._keys
        if keys is None or not 0 <= now - self._keys_at < _KEYS_SECONDS:
            keys = self._keys = await self._credentials()
            self._keys_at = now
        try:
            body = _encode(parameters)
        except (UnicodeEncodeError, TypeError) as error:
            raise Permanent(f"{operation}: {error}", code="SerializationException") from error
        head = self._signer.head(keys, target=f"{self._service.target}.{operation}", body=body, now=now)
        try:
            response = await self._pool.exchange(head + body, self._service.timeout)
        except Unreachable as fault:
            if isinstance(fault.__cause__, ssl.SSLError):
                raise Permanent(f"{operation}: {fault}", code="SSLError") from fault
            raise Refused(f"{operation}: {fault}") from fault
        except Interrupted as fault:
            raise Transient(f"{operation}: {fault}") from fault
        if response.status != _OK:
            raise _fault(operation, response)
        try:
            return self._decoder(answer).decode(response.body)
        except _UNREADABLE as error:
            raise Transient(f"{operation}: unreadable answer: {error}") from error

    def _decoder(self, answer: type[T]) -> msgspec.json.Decoder[T]:
        found = self._decoders.get(answer)
        if found is None:
            found = self._decoders[answer] = msgspec.json.Decoder(answer)
        return found


def _fault(operation: str, response: Response) -> SnavioError:
    try:
        decoded: Any = msgspec.json.decode(response.body)
    except _UNREADABLE:
        decoded = None
    # What stands between us and AWS may answer in its own way: the status says enough.
    answer = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
    return fault_of(
        operation,
        answer,
        code=str(answer.get("__type", "")),
        message=str(answer.get("message") or answer.get("Message") or ""),
        status=response.status,
    )
