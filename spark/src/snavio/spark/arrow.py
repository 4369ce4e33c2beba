"""Record batches from what the store holds, column by column."""
# pyarrow ships no types: what it returns is opaque here and goes straight to Spark.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Batch: TypeAlias = Any
Array: TypeAlias = Any
Kind: TypeAlias = Any

_KINDS = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_BATCH_ROWS = 32_768


def kinds_of(schema: StructType) -> dict[str, Kind]:
    """The Arrow type of each column."""
    return {field.name: _KINDS[field.dataType.simpleString()] for field in schema.fields}


def words_at(words: Sequence[str], indices: Sequence[int]) -> Array:
    """A column of texts given by index."""
    return pa.array(words, pa.string()).take(pa.array(indices, pa.int32()))


def numbers(values: Sequence[int], kind: Kind) -> Array:
    """A column of whole numbers."""
    return pa.array(values, kind)


def batch_of_columns(kinds: Mapping[str, Kind], rows: int, values: Mapping[str, Any]) -> Batch:
    """A batch of so many rows. A value that is no column stands in every row; a missing one is null."""
    columns = [
        value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, kind), rows)
        for kind, value in ((kind, values.get(name)) for name, kind in kinds.items())
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kinds.items())))


def batch_of_rows(kinds: Mapping[str, Kind], rows: Sequence[Mapping[str, object]]) -> Batch:
    """A batch of these rows. A value that does not fit its column is null: it must not stop the reading of others."""
    columns = [
        pa.array([_fitting(row.get(name), kind) for row in rows], kind) for name, kind in kinds.items()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kinds.items())))


def merged(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows in batches of a size Spark likes; no more of them are held at a time than make one."""
    held: list[Batch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _BATCH_ROWS:
            yield from _combined(held)
            held, rows = [], 0
    if held:
        yield from _combined(held)


def _combined(batches: Sequence[Batch]) -> Iterator[Batch]:
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def _fitting(value: object, kind: Kind) -> object:
    match value:
        case bool():
            return value if kind == pa.bool_() else None
        case int() if pa.types.is_integer(kind):
            return value if value.bit_length() < kind.bit_width else None
        case str() if kind == pa.string():
            return value
        case _:
            return None
