"""Provision, where there is no command line: `python -m snavio.provisioning`.

Account, region and endpoint come from the standard AWS variables, the prefix from `SNAVIO_PREFIX`. Prints the report as
one line of JSON.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
from aiobotocore.session import AioSession

from snavio.aws.errors import SnavioError
from snavio.provisioning.apply import Report, apply
from snavio.provisioning.caller import names_here
from snavio.provisioning.describe import describe


async def _provision() -> Report:
    session = AioSession()
    return await apply(
        describe(await names_here(session, os.environ.get("SNAVIO_PREFIX") or "snavio")), session
    )


def main() -> int:
    """Apply the description once."""
    try:
        report = asyncio.run(_provision())
    except SnavioError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the one sentence a person needs
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
