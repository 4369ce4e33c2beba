"""The control plane's API as commands call it."""

from __future__ import annotations

import email.utils
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from snavio.aws.errors import SnavioError
from snavio.cli.connection import Connection, connect

_TIMEOUT_SECONDS = 60


class _Fault(msgspec.Struct):
    detail: str = ""
    pointer: str = ""


class Problem(msgspec.Struct):
    """The parts of a problem document a person wants to read."""

    type: str = ""
    title: str = ""
    detail: str = ""
    problems: list[_Fault] = []


class ProblemError(SnavioError):
    """The gateway's refusal, in its own words, every fault on a line of its own."""

    def __init__(self, status: int, problem: Problem) -> None:
        lines = [problem.detail or problem.title or f"The gateway answered {status}."]
        lines += [
            f"  {fault.pointer.removeprefix('/') or 'request'}: {fault.detail}" for fault in problem.problems
        ]
        super().__init__("\n".join(lines))
        self.status = status
        self.kind = problem.type.rpartition(":")[2]


class UnreachableError(SnavioError):
    """The gateway did not answer."""


class Answer(msgspec.Struct, frozen=True):
    """A document with the time the gateway said it is."""

    document: Any
    date: float | None


class Gateway:
    """One platform's API with one token."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def call(self, method: str, path: str, body: object = None, **query: object) -> Any:
        """The answer's document. Raises `ProblemError` or `UnreachableError`. Query values of None are left out."""
        return self.ask(method, path, body, **query).document

    def ask(self, method: str, path: str, body: object = None, **query: object) -> Answer:
        """The same with the gateway's clock."""
        given = {name: value for name, value in query.items() if value is not None}
        url = f"{self.connection.url}{path}{'?' + urlencode(given) if given else ''}"
        request = urllib.request.Request(  # noqa: S310 - the URL is the operator's own
            url,
            method=method,
            data=None if body is None else msgspec.json.encode(body),
            headers={
                "Authorization": f"Bearer {self.connection.token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                raw = answer.read()
                return Answer(msgspec.json.decode(raw) if raw else None, _date(answer.headers["Date"]))
        except urllib.error.HTTPError as error:
            with error:
                raise ProblemError(error.code, _problem(error.read())) from None
        except (urllib.error.URLError, TimeoutError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise UnreachableError(
                f"The gateway at {self.connection.url} cannot be reached: {reason}."
            ) from error

    def for_tenant(self, tenant: str) -> Gateway:
        """The same platform with the tenant's own token; an operator has one issued."""
        if self.connection.tenant == tenant:
            return self
        issued = self.call("POST", f"/api/v1/tenants/{name(tenant)}/token")
        return Gateway(msgspec.structs.replace(self.connection, token=issued["token"]))


def gateway() -> Gateway:
    """The platform's API, found as `snavio.cli.connection` says."""
    return Gateway(connect())


def name(part: str) -> str:
    """A name as a part of a path, whatever was typed."""
    return quote(part, safe="")


def source_path(source: str) -> str:
    """`tenant/service` as two parts of a path."""
    return "/".join(name(part) for part in source.split("/", 1))


def _problem(body: bytes) -> Problem:
    try:
        return msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        return Problem()


def _date(header: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(header).timestamp() if header else None
    except ValueError:
        return None
