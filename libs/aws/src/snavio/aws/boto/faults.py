"""Whatever aiobotocore raises, as the errors of `snavio.aws.errors`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import aiohttp
from botocore import exceptions as boto

from snavio.aws.errors import Permanent, Refused, Transient
from snavio.aws.faults import fault_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from snavio.aws.errors import SnavioError

# The request never left, so it has not acted.
_UNSENT = (
    boto.ConnectTimeoutError,
    boto.EndpointConnectionError,
    boto.ProxyConnectionError,
    boto.CredentialRetrievalError,
    boto.MetadataRetrievalError,
)
_INTERRUPTED = (
    boto.HTTPClientError,
    boto.IncompleteReadError,
    boto.ResponseStreamingError,
    aiohttp.ClientError,
    TimeoutError,
    OSError,
)


@contextmanager
def translated(operation: str) -> Generator[None]:
    """Raise within as this raises without: everything of botocore's translated, the rest untouched."""
    try:
        yield
    except boto.ClientError as error:
        answer = cast("dict[str, Any]", error.response)
        raise client_fault(operation, answer) from error
    except _UNSENT as error:
        raise Refused(f"{operation}: {error}") from error
    except (boto.NoCredentialsError, boto.PartialCredentialsError) as error:
        raise Permanent(f"{operation}: {error}", code="NoCredentials") from error
    except _INTERRUPTED as error:
        raise Transient(f"{operation}: {error or type(error).__name__}") from error
    except boto.BotoCoreError as error:
        raise Permanent(f"{operation}: {error}", code=type(error).__name__) from error


def client_fault(operation: str, answer: dict[str, Any]) -> SnavioError:
    """The error for botocore's parsed error answer."""
    error: dict[str, Any] = answer.get("Error", {})
    metadata: dict[str, Any] = answer.get("ResponseMetadata", {})
    return fault_of(
        operation,
        answer,
        code=str(error.get("Code", "")),
        message=str(error.get("Message", "")),
        status=int(metadata.get("HTTPStatusCode", 0)),
    )
