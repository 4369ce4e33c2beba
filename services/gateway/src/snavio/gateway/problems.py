"""Every refusal as an RFC 9457 problem document. Its `type` is stable: clients may branch on it."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from snavio.aws.errors import SnavioError, Transient
from snavio.control.problems import Conflict, ControlError, Fault, Forbidden, Invalid, Missing, Unavailable
from snavio.gateway.tokens import Unauthenticated
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log

MEDIA_TYPE = "application/problem+json"
_URN = "urn:snavio:problem:"
_STATUS: dict[type[ControlError], HTTPStatus] = {
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    Forbidden: HTTPStatus.FORBIDDEN,
    Missing: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
_RETRY_SECONDS = "2"


class FaultDocument(msgspec.Struct, frozen=True):
    """One of several things wrong."""

    type: str
    title: str
    detail: str
    pointer: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem document."""

    type: str
    title: str
    status: int
    detail: str
    problems: list[FaultDocument] | msgspec.UnsetType = msgspec.UNSET
    """One for each fault found."""
    report: Any = msgspec.UNSET
    """What a route's registration found out, where it was refused."""


class Malformed(ControlError):  # noqa: N818 - as its siblings
    """The body is not JSON."""


class TooManyRequests(ControlError):  # noqa: N818 - as its siblings
    """The caller goes too fast."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__("too-many-requests", "Too many requests; wait a little.")
        self.retry_after_seconds = retry_after_seconds


def problem(
    status: int, kind: str, detail: str, *, faults: tuple[Fault, ...] = (), report: object = None
) -> Problem:
    """The document for a refusal of this kind."""
    documents = [
        FaultDocument(_URN + fault.kind, _title(fault.kind), fault.detail, fault.pointer) for fault in faults
    ]
    return Problem(
        _URN + kind,
        _title(kind),
        int(status),
        detail,
        documents or msgspec.UNSET,
        msgspec.UNSET if report is None else report,
    )


class ProblemHandlers:
    """What the API answers when something is raised."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @property
    def by_type(self) -> dict[int | type[Exception], Any]:
        """As Litestar takes them."""
        return {
            Unauthenticated: self.unauthenticated,
            ControlError: self.refused,
            SnavioError: self.failed,
            ValidationException: self.parameters,
            HTTPException: self.http,
            Exception: self.unexpected,
        }

    def unauthenticated(self, request: Request[Any, Any, Any], error: Unauthenticated) -> Response[Problem]:
        """401, with the scheme to use."""
        del request
        return _respond(
            problem(HTTPStatus.UNAUTHORIZED, "unauthenticated", str(error)), {"WWW-Authenticate": "Bearer"}
        )

    def refused(self, request: Request[Any, Any, Any], error: ControlError) -> Response[Problem]:
        """What the control plane refuses, each kind with its status."""
        del request
        if isinstance(error, TooManyRequests):
            wait = str(math.ceil(error.retry_after_seconds))
            return _respond(
                problem(HTTPStatus.TOO_MANY_REQUESTS, error.kind, error.detail), {"Retry-After": wait}
            )
        status = _STATUS.get(type(error), HTTPStatus.BAD_REQUEST)
        faults = error.faults if isinstance(error, Invalid) else ()
        report = error.report if isinstance(error, Invalid) else None
        headers = {"Retry-After": _RETRY_SECONDS} if isinstance(error, Unavailable) else {}
        return _respond(problem(status, error.kind, error.detail, faults=faults, report=report), headers)

    def failed(self, request: Request[Any, Any, Any], error: SnavioError) -> Response[Problem]:
        """AWS did not do as asked. The request may be sent again: it goes on where it stopped."""
        self._log.error(LogEvent.HTTP_FAILED, error=error, path=request.url.path)
        if isinstance(error, Transient):
            detail = "AWS did not answer in time; send the same request again."
            return _respond(
                problem(HTTPStatus.SERVICE_UNAVAILABLE, "aws-unavailable", detail),
                {"Retry-After": _RETRY_SECONDS},
            )
        detail = "AWS refused a step of this; once the cause is removed, the same request goes on from there."
        return _respond(problem(HTTPStatus.BAD_GATEWAY, "aws-refused", detail), {})

    def parameters(self, request: Request[Any, Any, Any], error: ValidationException) -> Response[Problem]:
        """Path and query parameters of the wrong form."""
        del request
        found: Any = error.extra if isinstance(error.extra, list) else []
        faults = tuple(
            Fault("bad-value", f"{each.get('message', 'Not acceptable')}.", f"/{each.get('key', '')}")
            for each in found
        )
        return _respond(
            problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", "The request has faults.", faults=faults
            ),
            {},
        )

    def http(self, request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
        """What the framework refuses: no such path, wrong method, too large a body."""
        del request
        status = HTTPStatus(error.status_code)
        kind = status.phrase.lower().replace(" ", "-")
        return _respond(problem(status, kind, error.detail or status.phrase), dict(error.headers or {}))

    def unexpected(self, request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
        """A fault of ours; the caller learns no more than that."""
        self._log.error(LogEvent.HTTP_FAILED, error=error, path=request.url.path)
        detail = "Something went wrong here; it has been logged."
        return _respond(problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", detail), {})


def _respond(document: Problem, headers: dict[str, str]) -> Response[Problem]:
    return Response(document, status_code=document.status, media_type=MEDIA_TYPE, headers=headers)


def _title(kind: str) -> str:
    words = kind.replace("-", " ")
    return words[:1].upper() + words[1:]
