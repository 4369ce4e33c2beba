"""Test vectors of the signature, made with the code that verifies it."""

from __future__ import annotations

import base64
import json

from snavio.wire.canonical import NotCanonicalisableError, canonicalise
from snavio.wire.signing import SigningKey, framed

_SHORT = bytes(range(32))
_LONG = b"a secret longer than the block of SHA-256 is hashed before use, as RFC 2104 has it. "
_FIXED = {
    "version_id": "hmac-v1",
    "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "timestamp": "2026-11-18T06:30:00.123Z",
    "target": "discord-bot",
    "command": "notify-user",
}
# Name, what it is for, and the payload as some producer might write it.
_PAYLOADS = {
    "simple": ("an object with a string and a number", '{"user": 42, "text": "Hello"}'),
    "empty-object": ("nothing in it", "{ }"),
    "empty-array": ("nothing in it", "[ ]"),
    "empty-string": ("a payload need not be an object", '""'),
    "null": ("a payload need not be an object", "null"),
    "booleans": ("literals in an array", "[true, false, null]"),
    "key-order": (
        "names sort by UTF-16 code units: upper case first, digits as text",
        '{"b":1,"a":2,"B":3,"10":4,"9":5,"":6}',
    ),
    "key-order-surrogates": (
        "U+1F600 is written with surrogates, which sort before U+FB33",
        '{"\\ufb33":"dalet","\\ud83d\\ude00":"smile","\\u20ac":"euro"}',
    ),
    "unicode": (
        "text beyond ASCII stands as it is",
        '{"text":"Gr\\u00fc\\u00dfe, \\u4e16\\u754c \\ud83d\\ude80"}',
    ),
    "unicode-not-normalised": ("combining characters are left alone", '["\\u00e9","e\\u0301"]'),
    "escapes": (
        "the five short escapes, the rest of the controls as \\u00xx, and nothing else",
        '"\\b\\t\\n\\f\\r\\"\\\\\\/\\u0000\\u001f\\u007f\\u2028"',
    ),
    "integers": ("integers up to 2^53", "[0,-0,1,-1,9007199254740992,-9007199254740991]"),
    "numbers": (
        "the shortest form that reads back the same",
        "[1.0,1e3,0.1,1.5e-7,0.000001,123456789.125,100e-2]",
    ),
    "numbers-large": (
        "exponents from 1e21 and below 1e-6 on",
        "[1e20,1e21,1.7976931348623157e308,5e-324,1e-6,1e-7]",
    ),
    "numbers-inexact": (
        "an integer beyond 2^53 is the nearest double",
        "[9007199254740993,123456789012345678901234567890]",
    ),
    "nesting": (
        "objects in arrays in objects",
        '{"z":[{"y":{"x":[[],{},[1,[2,[3]]]]}},"w"],"a":{"c":null,"b":{"d":true}}}',
    ),
    "whitespace": (
        "whitespace between tokens means nothing",
        '{\n\t"a" : [ 1 , 2 ] ,\r\n "b" : "  kept  " }',
    ),
}
_REFUSED = {
    "duplicate-name": ("the same name twice", '{"a":1,"a":2}'),
    "lone-surrogate": ("half of a pair", '"\\ud800"'),
    "out-of-range": ("no double holds it", "1e400"),
}


def vectors_json() -> str:
    """The file other implementations read."""
    document = {
        "description": "Test vectors of the Snavio command signature. See signature-vectors.md.",
        "algorithm": "HMAC-SHA256, lower-case hex, over the UTF-8 bytes of `signed`",
        "signed": "SNAVIO1\\n<version_id>\\n<id>\\n<timestamp>\\n<target>\\n<command>\\n<RFC 8785 form of payload_json>",
        "vectors": [
            *(_vector(name, about, text, _SHORT) for name, (about, text) in _PAYLOADS.items()),
            _vector("long-secret", "a secret longer than a block", '{"user":42}', _LONG),
        ],
        "no_canonical_form": [
            {"name": name, "about": about, "payload_json": _refused(text)}
            for name, (about, text) in _REFUSED.items()
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def vectors_page() -> str:
    """The page that explains the file."""
    rows = "".join(f"| `{name}` | {about} |\n" for name, (about, _) in _PAYLOADS.items())
    refused = "".join(f"| `{name}` | {about} |\n" for name, (about, _) in _REFUSED.items())
    return f"""# Signature vectors

[`signature-vectors.json`](signature-vectors.json) lets an implementation in any language check itself, byte for byte,
before it sends its first command. [`examples/node/snavio.mjs`](../../examples/node/snavio.mjs) is one that does, in
about a hundred lines without dependencies.

For each entry of `vectors`:

1. Parse `payload_json` and write it in the canonical form of RFC 8785. It must equal `canonical`.
2. Join `SNAVIO1`, `version_id`, `id`, `timestamp`, `target`, `command` and the canonical payload with one line feed
   between them. As UTF-8 it must equal `signed`.
3. HMAC-SHA256 of those bytes, keyed with the bytes that `secret_b64` stands for, in lower-case hex. It must equal `hmac`.

| vector | what it shows |
|---|---|
{rows}| `long-secret` | a secret longer than a block |

The payloads of `no_canonical_form` have none: a producer must refuse them, as the platform does.

| payload | why |
|---|---|
{refused}"""


def _vector(name: str, about: str, text: str, secret: bytes) -> dict[str, str]:
    payload = canonicalise(text)
    frame = framed(
        _FIXED["version_id"], _FIXED["id"], _FIXED["timestamp"], _FIXED["target"], _FIXED["command"]
    )
    return {
        "name": name,
        "about": about,
        "secret_b64": base64.b64encode(secret).decode(),
        **_FIXED,
        "payload_json": text,
        "canonical": payload.decode(),
        "signed": (frame + payload).decode(),
        "hmac": SigningKey(secret).sign(frame, payload),
    }


def _refused(text: str) -> str:
    try:
        canonicalise(text)
    except NotCanonicalisableError:
        return text
    raise AssertionError(f"{text} has a canonical form after all")
