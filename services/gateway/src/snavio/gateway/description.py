"""The API's own description, completed with what the framework cannot know: every refusal is a problem document."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from snavio.gateway.problems import MEDIA_TYPE, Problem
from snavio.wire.names import COMMAND_PATTERN, NAME_PATTERN

_PLACE = "#/components/schemas/{name}"
_ALWAYS = {
    "401": "The token does not prove who is asking.",
    "403": "The caller may not do this.",
    "429": "Too many requests; `Retry-After` says how long to wait.",
    "502": "AWS refused a step; once the cause is removed, the same request goes on from there.",
    "503": "AWS did not answer in time; send the same request again.",
}
_OF_SOMETHING = {
    "404": "What the request is about does not exist, or not for this caller.",
    "422": "The request has faults; every one is named.",
}
_WITH_BODY = {"400": "The body is not JSON.", "413": "The body is too large."}
_OF_CHANGE = {"409": "Somebody else holds the name, or the state of things does not allow this."}
_PATTERNS = {
    "tenant": NAME_PATTERN,
    "service": NAME_PATTERN,
    "target": NAME_PATTERN,
    "command": COMMAND_PATTERN,
}


class Description(JsonRenderPlugin):
    """Serves the completed description."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document as JSON."""
        return super().render(request, completed(openapi_schema))


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its refusals, the form of the names in its paths, and patterns as every reader has them."""
    found: dict[str, Any] = _portable(document)
    (problem,), components = msgspec.json.schema_components([Problem], ref_template=_PLACE)
    found["components"]["schemas"] |= components
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            if operation.get("security") == []:
                # Health tells the same document whether all is well or not.
                operation["responses"]["503"] = {
                    **operation["responses"]["200"],
                    "description": "Not at the moment.",
                }
                continue
            responses = {code: told for code, told in operation["responses"].items() if code != "400"}
            for code, meaning in _refusals(path, method, operation).items():
                responses[code] = {"description": meaning, "content": {MEDIA_TYPE: {"schema": problem}}}
            operation["responses"] = dict(sorted(responses.items()))
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in _PATTERNS:
                    parameter["schema"]["pattern"] = f"^{_PATTERNS[parameter['name']]}$"
    return found


def _refusals(path: str, method: str, operation: dict[str, Any]) -> dict[str, str]:
    told = dict(_ALWAYS)
    if "{" in path or operation.get("parameters") or "requestBody" in operation:
        told |= _OF_SOMETHING
    if "requestBody" in operation:
        told |= _WITH_BODY
    if method != "get":
        told |= _OF_CHANGE
    return told


def _portable(value: Any) -> Any:
    r"""A copy in which no pattern ends in `\Z`, which only Python reads as the end."""
    if isinstance(value, dict):
        return {
            name: f"{each[:-2]}$" if name == "pattern" and str(each).endswith("\\Z") else _portable(each)
            for name, each in value.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(value, list):
        return [_portable(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value
