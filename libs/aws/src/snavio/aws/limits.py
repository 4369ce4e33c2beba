"""AWS's own limits, checked before a call: an emulator is more lenient, and a refused batch fails as a whole."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from snavio.aws.errors import Permanent
from snavio.aws.ports import MAX_BATCH, MAX_BATCH_WRITE, MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from snavio.aws.values import Outgoing, Value

MAX_ATTRIBUTES = 10
MAX_WAIT_SECONDS = 20
MAX_VISIBILITY_SECONDS = 43_200
MAX_DELAY_SECONDS = 900
MAX_ITEM_BYTES = 409_600
MAX_TRANSACTION = 100
MAX_TOKEN = 36
MAX_SEGMENTS = 1_000_000

# SQS allows #x9 | #xA | #xD | #x20-#xD7FF | #xE000-#xFFFD | #x10000-#x10FFFF.
# This table turns a byte no allowed character has into 0 and any other into 1: the cheapest search there is.
_ALLOWED = bytes(chr(byte) in "\t\n\r" or byte >= ord(" ") for byte in range(256))
_ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws|amazon)\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_GROUP = re.compile(r"""[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}""")
_written = msgspec.json.Encoder().encode
# The type of an attribute counts towards its message; ours are all of this one.
_STRING_TYPE_BYTES = len("String")


def require(*, within: bool, code: str, message: str) -> None:
    """Raise `Permanent` with AWS's code unless the caller is within the limit."""
    if not within:
        raise Permanent(message, code=code)


def require_entries(count: int) -> None:
    """Refuse a batch longer than SQS takes."""
    require(
        within=count <= MAX_BATCH,
        code="TooManyEntriesInBatchRequest",
        message=f"A batch takes at most {MAX_BATCH} entries, not {count}.",
    )


def require_receive(max_messages: int, wait_seconds: int, visibility_seconds: int | None) -> None:
    """Refuse what ReceiveMessage would."""
    ranges = (
        ("max_messages", max_messages, 1, MAX_BATCH),
        ("wait_seconds", wait_seconds, 0, MAX_WAIT_SECONDS),
        ("visibility_seconds", visibility_seconds or 0, 0, MAX_VISIBILITY_SECONDS),
    )
    for name, value, low, high in ranges:
        require(
            within=low <= value <= high,
            code="InvalidParameterValue",
            message=f"{name} must be between {low} and {high}, not {value}.",
        )


def visibility_fault(seconds: int) -> Permanent | None:
    """Why SQS would refuse this visibility timeout, or None."""
    if 0 <= seconds <= MAX_VISIBILITY_SECONDS:
        return None
    return _invalid(f"A visibility timeout is between 0 and {MAX_VISIBILITY_SECONDS} s, not {seconds}.")


def are_plain(messages: Sequence[Outgoing]) -> bool:
    """Whether SQS takes all of these, in one batch, beyond doubt; where not, `measure` says of each what it is.

    Nearly every batch is plain, and seeing that of all its texts at once costs a fraction of measuring each.
    """
    texts: list[str] = []
    size = 0
    for message in messages:
        names_size = _measure_names(tuple(message.attributes))
        if (
            names_size is None
            or message.delay_seconds
            or (message.group is not None and not _is_group(message.group))
        ):
            return False
        size += names_size
        texts.append(message.body)
        texts += message.attributes.values()
    texts_size = _measure_text("".join(texts))
    return texts_size >= 0 and all(texts) and size + texts_size <= MAX_MESSAGE_BYTES


def measure(message: Outgoing) -> int | Permanent:
    """What SQS counts for a message (body, and name, type and value of each attribute), or why it would refuse it."""
    size = _measure_text(message.body)
    if size <= 0:
        return Permanent(
            "A message body is not empty and holds only characters SQS allows.", code="InvalidMessageContents"
        )
    if not 0 <= message.delay_seconds <= MAX_DELAY_SECONDS:
        return _invalid(f"A delay is between 0 and {MAX_DELAY_SECONDS} s, not {message.delay_seconds}.")
    if message.group is not None and not _is_group(message.group):
        return _invalid("A message group is 1 to 128 letters, digits or punctuation marks.")
    if len(message.attributes) > MAX_ATTRIBUTES:
        return _invalid(
            f"A message takes at most {MAX_ATTRIBUTES} attributes, not {len(message.attributes)}."
        )
    for name, value in message.attributes.items():
        if not _is_attribute_name(name):
            return _invalid(f"{name!r} cannot name a message attribute.")
        value_size = _measure_text(value)
        if value_size <= 0:
            return Permanent(
                f"Attribute {name} is not empty and holds only characters SQS allows.",
                code="InvalidMessageContents",
            )
        size += len(name) + _STRING_TYPE_BYTES + value_size
    if size > MAX_MESSAGE_BYTES:
        return _invalid(f"A message takes at most {MAX_MESSAGE_BYTES} bytes with its attributes, not {size}.")
    return size


def split_by_bytes(sizes: Sequence[int]) -> Iterable[range]:
    """Consecutive runs of at most ten entries whose sizes together fit one SQS batch."""
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and (total + size > MAX_MESSAGE_BYTES or index - start == MAX_BATCH):
            yield range(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield range(start, len(sizes))


def require_items(items: Sequence[dict[str, Value]]) -> None:
    """Refuse a batch with an item larger than DynamoDB keeps."""
    try:
        # Twice its JSON is more than DynamoDB counts of any item: nearly always there is nothing to measure.
        if len(_written(items)) * 2 <= MAX_ITEM_BYTES:
            return
    except (UnicodeEncodeError, OverflowError, TypeError):
        pass
    for item in items:
        require_item(item)


def require_item(item: dict[str, Value]) -> None:
    """Refuse an item larger than DynamoDB keeps."""
    size = item_bytes(item)
    require(
        within=size <= MAX_ITEM_BYTES,
        code="ValidationException",
        message=f"An item takes at most {MAX_ITEM_BYTES} bytes with its attribute names, not {size}.",
    )


def require_batch_write(count: int) -> None:
    """Refuse a batch write longer than DynamoDB takes."""
    require(
        within=count <= MAX_BATCH_WRITE,
        code="ValidationException",
        message=f"A batch write takes at most {MAX_BATCH_WRITE} items, not {count}.",
    )


def require_transaction(count: int, token: str | None) -> None:
    """Refuse a transaction longer than DynamoDB takes, or a token it cannot keep."""
    require(
        within=1 <= count <= MAX_TRANSACTION,
        code="ValidationException",
        message=f"A transaction takes 1 to {MAX_TRANSACTION} writes, not {count}.",
    )
    require(
        within=token is None or 1 <= len(token) <= MAX_TOKEN,
        code="ValidationException",
        message=f"A token takes 1 to {MAX_TOKEN} characters.",
    )


def require_segment(segment: int, segments: int) -> None:
    """Refuse to scan a segment that is none."""
    require(
        within=0 <= segment < segments <= MAX_SEGMENTS,
        code="ValidationException",
        message=f"There is no segment {segment} of {segments}.",
    )


def item_bytes(item: dict[str, Value]) -> int:
    """About what DynamoDB counts for an item: names and values, three bytes a list or map, one for each element."""
    total = 0
    for name, value in item.items():
        total += len(name) if name.isascii() else _text_bytes(name)
        if isinstance(value, str) and value.isascii():
            total += len(value)
        else:
            total += _value_bytes(value)
    return total


def _value_bytes(value: Value) -> int:
    if isinstance(value, str):
        return _text_bytes(value)
    if isinstance(value, bytes):
        return len(value)
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int | float):
        return len(str(value)) // 2 + 2
    if isinstance(value, dict):
        return 3 + len(value) + item_bytes(value)
    return 3 + len(value) + sum(_value_bytes(element) for element in value)


def _text_bytes(text: str) -> int:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Permanent("Text with a lone surrogate has no UTF-8 form.", code="ValidationException") from None


def _measure_text(text: str) -> int:
    """The bytes of a text, or -1 when it holds a character SQS does not allow."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return -1
    if raw.translate(_ALLOWED).find(0) >= 0:
        return -1
    if not text.isascii() and ("\ufffe" in text or "\uffff" in text):
        return -1
    return len(raw)


# Names and groups recur; looking one up is far cheaper than matching it again.
@lru_cache(maxsize=1024)
def _is_attribute_name(name: str) -> bool:
    return _ATTRIBUTE_NAME.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _measure_names(names: tuple[str, ...]) -> int | None:
    """What the names and types of a message's attributes count, or None when SQS would refuse them."""
    if len(names) > MAX_ATTRIBUTES or not all(map(_is_attribute_name, names)):
        return None
    return sum(len(name) + _STRING_TYPE_BYTES for name in names)


@lru_cache(maxsize=4096)
def _is_group(group: str) -> bool:
    return _GROUP.fullmatch(group) is not None


def _invalid(message: str) -> Permanent:
    return Permanent(message, code="InvalidParameterValue")
