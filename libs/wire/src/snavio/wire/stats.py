"""The fairness feed: what each worker counted in a minute, as compact items of the aggregation store.

A count says how many commands of (source, target, command) had one outcome: dispatched within one latency bucket, or
rejected for one reason. Everything downstream is a sum of counts, so histograms, rejections and dispatches merge alike.

A worker closes its window every `WINDOW_SECONDS` and writes it even when empty, numbered in sequence; on drain it
writes the open window as its last. While the store takes writes, a process that dies loses the window it had open, a
minute and the few seconds until it would have been closed, and no more; dying in the very write, that window or some
parts of it, and the moment since. While the store takes none, it also loses the closed windows it kept, the latest ten;
older ones go before, and the worker says so. The feed shows each: a gap in the numbers, a window with fewer parts than it
says, or a sequence that stops without a last item. A closed window is never added to, so writing it again, late or twice,
changes nothing. The worker's id is that of one run of one process, never used again.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec

from snavio.wire.latency import LAST_BUCKET, latency_bucket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WINDOW_SECONDS = 60
SHARDS = 16
"""Partitions of a window in the store; each worker always writes to the same one."""
RETENTION_SECONDS = 2 * 24 * 3600
MAX_ITEM_BYTES = 350_000
"""What an item may weigh, safely under the store's 400 KB."""
MAX_ITEM_ROWS = 2**15
"""How many rows an item may hold: more go into further parts."""
MAX_WORD_LENGTH = 256
"""How long a text of a row may be. Twice the longest name there can be; of anything longer only the start is written."""
DISPATCHED = "dispatched"
"""The outcome of a delivered command; every other outcome is the reason of a rejection."""
NO_BUCKET = -1
"""The bucket of a rejection: only what was dispatched has a latency."""

FORMAT = 1
_MAX_DECODED_BYTES = 4 * 1024 * 1024
"""What an item may weigh inflated: a few hundred bytes can otherwise become anything."""

Service: TypeAlias = Literal["fast", "slow"]
_Index: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_MOST_COUNTED = 2**40
"""By a worker in a minute: far above anything real, and far enough below 64 bits that no sum over items overflows."""
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=_MOST_COUNTED)]
_Bucket: TypeAlias = Annotated[int, msgspec.Meta(ge=NO_BUCKET, le=LAST_BUCKET)]
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_WORD_LENGTH)]
_Words: TypeAlias = Annotated[list[_Word], msgspec.Meta(max_length=4 * MAX_ITEM_ROWS)]
_Indices: TypeAlias = Annotated[list[_Index], msgspec.Meta(max_length=MAX_ITEM_ROWS)]
_Buckets: TypeAlias = Annotated[list[_Bucket], msgspec.Meta(max_length=MAX_ITEM_ROWS)]
_Counts: TypeAlias = Annotated[list[_Count], msgspec.Meta(max_length=MAX_ITEM_ROWS)]


class MalformedStats(ValueError):  # noqa: N818 - reads as what the item is
    """An item's rows cannot be read; the message says why, in one sentence."""


class StatRow(msgspec.Struct, frozen=True, gc=False, order=True):
    """So many commands with one outcome, from one worker in one window."""

    source: str
    target: str
    command: str
    outcome: str
    bucket: int
    count: int


class Columns(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Rows in columns: each text once in `words`, and by index in the columns. All columns have the same length."""

    words: _Words
    source: _Indices
    target: _Indices
    command: _Indices
    outcome: _Indices
    bucket: _Buckets
    count: _Counts


class StatsItem(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One item of the aggregation store; its fields are the attributes."""

    pk: str
    sk: str
    window: int
    """Seconds since the epoch, a multiple of `WINDOW_SECONDS`."""
    shard: int
    worker: str
    service: Service
    part: int
    parts: int
    sequence: int
    """0 for the first window this worker wrote, then one more for each."""
    last: bool
    """The worker drained: silence after this item is no loss."""
    row_count: int
    digest: int
    """CRC-32 of `rows`: whether an item changed can be told without reading it whole."""
    rows: bytes
    expires_at: int


class Tally:
    """The counts of one worker in its open window. Not thread-safe; one event loop owns it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str, int]] = Counter()

    def dispatched(self, source: str, target: str, command: str, latency_ms: float) -> None:
        """A command was delivered, so long after it was sent."""
        self._counts[source, target, command, DISPATCHED, latency_bucket(latency_ms)] += 1

    def rejected(self, source: str, target: str, command: str, reason: str) -> None:
        """A command was refused; the reason is that of its telemetry event."""
        self._counts[source, target, command, reason, NO_BUCKET] += 1

    def close(self) -> list[StatRow]:
        """What was counted since the last close, in a fixed order; counting starts anew."""
        counts, self._counts = self._counts, Counter()
        return [StatRow(*key, count) for key, count in sorted(counts.items())]


def window_of(now: float) -> int:
    """The window a moment belongs to."""
    return int(now) // WINDOW_SECONDS * WINDOW_SECONDS


def shard_of(worker: str) -> int:
    """The partition of each window this worker writes to, the same in every process and release."""
    return zlib.crc32(worker.encode()) % SHARDS


def partition_key(window: int, shard: int) -> str:
    """The partition key of one shard of one window."""
    return f"{window}#{shard:02d}"


def encode_window(
    rows: Sequence[StatRow],
    *,
    worker: str,
    service: Service,
    window: int,
    sequence: int,
    last: bool = False,
    retention_seconds: int = RETENTION_SECONDS,
    max_bytes: int = MAX_ITEM_BYTES,
) -> list[StatsItem]:
    """The items of a closed window: at least one, each light enough for the store and for whoever reads it.

    The same rows give the same items. Raises `ValueError` for a window that is not aligned, or a worker id that cannot be
    part of a key.
    """
    if window % WINDOW_SECONDS:
        raise ValueError(f"A window starts at a multiple of {WINDOW_SECONDS} s, not at {window}.")
    if not worker or "#" in worker:
        raise ValueError(f"A worker id is not empty and has no '#': {worker!r}.")
    pieces = list(_pieces(rows, max_bytes))
    shard = shard_of(worker)
    return [
        StatsItem(
            pk=partition_key(window, shard),
            sk=f"{worker}#{part}",
            window=window,
            shard=shard,
            worker=worker,
            service=service,
            part=part,
            parts=len(pieces),
            sequence=sequence,
            last=last,
            row_count=count,
            digest=zlib.crc32(encoded),
            rows=encoded,
            expires_at=window + retention_seconds,
        )
        for part, (count, encoded) in enumerate(pieces)
    ]


def encode_rows(rows: Iterable[StatRow]) -> bytes:
    """Rows as the `rows` attribute of an item: a format byte, then deflated MessagePack columns."""
    return _deflated(_packed(rows))


def decode_columns(encoded: bytes) -> Columns:
    """The columns of an item's `rows`, checked: indices and sums are in range, lengths agree. Raises `MalformedStats`."""
    if not encoded:
        raise MalformedStats("The rows are empty.")
    if encoded[0] != FORMAT:
        raise MalformedStats(f"The rows have format {encoded[0]}, this release reads {FORMAT}.")
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(encoded[1:], _MAX_DECODED_BYTES)
        if not inflater.eof:
            cause = "too large" if len(body) >= _MAX_DECODED_BYTES else "cut short"
            raise MalformedStats(f"The rows are {cause}.")
        columns = _columns.decode(body)
    except zlib.error as error:
        raise MalformedStats("The rows cannot be inflated.") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedStats(f"The rows are not columns of counts: {error}.") from error
    indices = (columns.source, columns.target, columns.command, columns.outcome)
    if any(len(column) != len(columns.count) for column in (*indices, columns.bucket)):
        raise MalformedStats("The columns differ in length.")
    if any(column and max(column) >= len(columns.words) for column in indices):
        raise MalformedStats("A column points past the last word.")
    if sum(columns.count) > _MOST_COUNTED:
        raise MalformedStats("The counts add up to more than a worker can do in a window.")
    return columns


def decode_rows(encoded: bytes) -> list[StatRow]:
    """The rows of an item's `rows` attribute. Raises `MalformedStats`."""
    c = decode_columns(encoded)
    return [
        StatRow(
            c.words[c.source[i]],
            c.words[c.target[i]],
            c.words[c.command[i]],
            c.words[c.outcome[i]],
            c.bucket[i],
            count,
        )
        for i, count in enumerate(c.count)
    ]


_columns = msgspec.msgpack.Decoder(Columns)


def _packed(rows: Iterable[StatRow]) -> bytes:
    words: dict[str, int] = {}
    columns = Columns([], [], [], [], [], [], [])
    for row in rows:
        columns.source.append(words.setdefault(row.source, len(words)))
        columns.target.append(words.setdefault(row.target, len(words)))
        columns.command.append(words.setdefault(row.command, len(words)))
        columns.outcome.append(words.setdefault(row.outcome, len(words)))
        columns.bucket.append(row.bucket)
        columns.count.append(row.count)
    columns.words.extend(word[:MAX_WORD_LENGTH] for word in words)
    return msgspec.msgpack.encode(columns)


def _deflated(packed: bytes) -> bytes:
    return bytes([FORMAT]) + zlib.compress(packed, level=6)


def _pieces(rows: Sequence[StatRow], max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Halve until each piece is within all that a reader accepts: rarely more than once, and the same way each time."""
    if len(rows) <= MAX_ITEM_ROWS:
        packed = _packed(rows)
        encoded = _deflated(packed)
        if len(rows) <= 1 or (len(packed) < _MAX_DECODED_BYTES and len(encoded) <= max_bytes):
            yield len(rows), encoded
            return
    middle = len(rows) // 2
    yield from _pieces(rows[:middle], max_bytes)
    yield from _pieces(rows[middle:], max_bytes)
