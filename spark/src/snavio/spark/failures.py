"""What goes wrong around the jobs, as opposed to in them: told in a sentence, and often over a minute later."""

from __future__ import annotations

import re

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError
from pyspark.errors import PySparkException

from snavio.aws.errors import SnavioError

_AROUND = (SnavioError, BotoCoreError, ClientError, PySparkException, OSError)
_HINT = (
    " Name region and credentials by the standard AWS variables; `snavio spark` also finds the platform that"
    " `snavio up` runs from the same directory."
)
# The line that ends a traceback, in which Spark wraps whatever a Python worker raises.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")


class JobFailedError(SnavioError):
    """A job that could not be done, with the reason in a sentence."""


def is_around(error: Exception) -> bool:
    """Whether an error is AWS's, Spark's or the machine's, and none of ours."""
    # What the JVM raises has a class of py4j, a part of PySpark.
    return isinstance(error, _AROUND) or type(error).__module__.startswith("py4j.")


def sentence(error: Exception) -> str:
    """What went wrong, on one line: the cause, without the way it came."""
    text = str(error)
    raised = _RAISED.findall(text)
    if raised:
        kind, _, said = raised[-1].partition(": ")
        cause, short = said or kind, kind.rpartition(".")[2]
    else:
        lines = [line.strip(" \t:") for line in text.splitlines()]
        said = [line for line in lines if line and not line.startswith("An error occurred while calling")]
        cause, short = said[0] if said else type(error).__name__, type(error).__name__
    hint = _HINT if short in _UNTOLD else ""
    return f"{cause.rstrip('.')}.{hint}"


_UNTOLD = {kind.__name__ for kind in (NoRegionError, NoCredentialsError)}
