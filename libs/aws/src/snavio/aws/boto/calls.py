"""A `Call` carried by aiobotocore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import botocore
import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snavio.aws.boto.clients import Clients

T = TypeVar("T")


_method = cast("Callable[[str], str]", botocore.xform_name)  # pyright: ignore[reportUnknownMemberType]


class BotoCall:
    """Carries the operations of one service."""

    def __init__(self, clients: Clients, service: str) -> None:
        self._clients = clients
        self._service = service

    async def __call__(self, operation: str, parameters: Mapping[str, Any], answer: type[T], /) -> T:
        """The operation's answer, decoded as the type given."""
        client = await self._clients.port(self._service)
        with translated(operation):
            response = await getattr(client, _method(operation))(**parameters)
        try:
            return msgspec.convert(response, answer)
        except msgspec.ValidationError as error:
            raise Transient(f"{operation}: unreadable answer: {error}") from error
