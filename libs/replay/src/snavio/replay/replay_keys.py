"""The platform's own key for replayed commands, kept in the registry beside those of producers.

No producer can be registered under the name it belongs to, so nobody else can sign a command as replayed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from snavio.aws.errors import SnavioError
from snavio.domain.models import Key
from snavio.domain.screening import REPLAYER
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.replay.resigning import ReplayKey
from snavio.wire.names import Names
from snavio.wire.signing import SigningKey

FIRST_VERSION = "replay-v1"
_SECRET_BYTES = 32


class NoReplayKeyError(SnavioError):
    """There is no key to sign replayed commands with."""


async def ensure_replay_key(
    store: RegistryStore, sealer: Sealer, names: Names, *, clock: Callable[[], float], actor: str
) -> None:
    """Make the key unless there is one. Needs the right to write the registry."""
    if await store.keys(REPLAYER):
        return
    seals = await store.seal_keys()
    if seals:
        seal = max(seals, key=lambda seal: seal.created_at)
        await sealer.open(seal)
    else:
        seal = await sealer.new_key(names.secrets_key, clock())
        await store.put_seal_key(seal, actor=actor)
    sealed = sealer.seal(
        os.urandom(_SECRET_BYTES), seal_id=seal.id, source=REPLAYER, version_id=FIRST_VERSION
    )
    # Losing the race to another is as good: a key is there.
    await store.add_key(
        Key(source=REPLAYER, version_id=FIRST_VERSION, sealed=sealed, created_at=clock()), actor=actor
    )


async def replay_key(store: RegistryStore, sealer: Sealer) -> ReplayKey:
    """The newest key, opened. Raises `NoReplayKeyError`."""
    keys = await store.keys(REPLAYER)
    if not keys:
        raise NoReplayKeyError("There is no replay key yet: the monitor makes it in its first minute.")
    for seal in await store.seal_keys():
        await sealer.open(seal)
    newest = max(keys, key=lambda key: key.created_at)
    secret = sealer.unseal(newest.sealed, source=REPLAYER, version_id=newest.version_id)
    return ReplayKey(newest.version_id, SigningKey(secret))
