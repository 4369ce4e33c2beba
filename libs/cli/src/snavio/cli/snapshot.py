"""`snavio snapshot`."""

from __future__ import annotations

import asyncio
import time

import click
import msgspec
from aiobotocore.session import AioSession
from rich.console import Console
from rich.table import Table

from snavio.aws.boto.session import open_aws
from snavio.aws.errors import SnavioError
from snavio.cli.output import as_json, write_json
from snavio.domain.freshness import TtlPolicy
from snavio.provisioning.caller import names_here
from snavio.registry.sealing import Sealer
from snavio.registry.snapshot_pointer import Pointer
from snavio.registry.snapshot_signing import KmsSigner
from snavio.registry.snapshots import SnapshotPolicy, SnapshotReader
from snavio.registry.view import Registry


class _Found:
    """Keeps what the reader says."""

    def __init__(self) -> None:
        self.pointer: Pointer | None = None
        self.refusal = ""

    def snapshot_loaded(self, pointer: Pointer) -> None:
        """It is fit for use."""
        self.pointer = pointer

    def snapshot_refused(self, kind: str, reason: str, detail: str) -> None:
        """It is not."""
        self.refusal = f"The snapshot is refused ({kind}, {reason}): {detail}"


@click.command(short_help="Check the latest snapshot of the registry as a worker would.")
@click.option(
    "--prefix", envvar="SNAVIO_PREFIX", default="snavio", show_default=True, help="First part of every name."
)
@as_json
def snapshot(*, prefix: str, json: bool) -> None:
    """Read the latest snapshot of the registry exactly as a worker does at cold start, and say what is in it.

    Ends with code 1 and the reason when a worker would refuse it.

    \b
    Examples:
      snavio snapshot
      snavio snapshot --json
    """  # noqa: D301 - \b tells click to keep the lines that follow
    pointer = asyncio.run(_checked(prefix))
    if json:
        write_json(pointer)
        return
    table = Table("part", "entries", "bytes", "sha256", box=None, header_style="bold")
    for kind, part in sorted(pointer.parts.items()):
        table.add_row(str(kind), str(part.entries), str(part.size_bytes), part.sha256[:16])
    console = Console()
    console.print(table)
    age = time.time() - pointer.generated_at
    console.print(
        f"\nVersion {pointer.version_id}, up to change {pointer.seq}, {age:.0f} s old: fit for use."
    )


async def _checked(prefix: str) -> Pointer:
    session = AioSession()
    names = await names_here(session, prefix)
    found = _Found()
    async with open_aws(session=session, region=names.region) as aws:
        reader = SnapshotReader(
            aws.objects,
            aws.tables,
            names,
            KmsSigner(aws.client, names.snapshots_key),
            SnapshotPolicy(),
            clock=time.time,
            observer=found,
        )
        # With a sealer, so that the part of keys is read too; nothing in it is opened.
        await reader.load_into(Registry(TtlPolicy(), Sealer(aws.vault)))
    if found.pointer is None:
        raise SnavioError(found.refusal)
    return msgspec.structs.replace(found.pointer, retired=[])
