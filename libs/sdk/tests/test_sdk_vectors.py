"""The signature vectors are those of the code that verifies signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib.util
import json
from pathlib import Path

import pytest

from snavio.sdk.outgoing import prepare
from snavio.wire.canonical import NotCanonicalisableError, canonicalise

ROOT = Path(__file__).parents[3]
FILE = json.loads((ROOT / "docs/reference/signature-vectors.json").read_text())


def test_the_file_is_what_the_code_makes():
    spec = importlib.util.spec_from_file_location("vectors", ROOT / "tools/generate/vectors.py")
    vectors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(vectors)
    assert json.loads(vectors.vectors_json()) == FILE


@pytest.mark.parametrize("vector", FILE["vectors"], ids=lambda vector: vector["name"])
def test_a_vector_follows_from_the_contract_alone(vector):
    """With the standard library in place of our signing code."""
    parts = [vector[part] for part in ("version_id", "id", "timestamp", "target", "command", "canonical")]
    assert vector["signed"] == "\n".join(["SNAVIO1", *parts])
    key = base64.b64decode(vector["secret_b64"])
    assert vector["hmac"] == hmac.new(key, vector["signed"].encode(), hashlib.sha256).hexdigest()
    assert canonicalise(vector["payload_json"]).decode() == vector["canonical"]


def test_the_sdk_sends_the_canonical_forms():
    for vector in FILE["vectors"]:
        if vector["name"] != "numbers-inexact":  # the SDK refuses those rather than change them
            payload = prepare("discord-bot", "notify-user", json.loads(vector["payload_json"])).payload
            assert payload == vector["canonical"]


@pytest.mark.parametrize("refused", FILE["no_canonical_form"], ids=lambda refused: refused["name"])
def test_what_has_no_canonical_form_is_refused(refused):
    with pytest.raises(NotCanonicalisableError):
        canonicalise(refused["payload_json"])


def test_simple_unicode_numbers_nesting_and_empty_are_covered():
    names = {vector["name"] for vector in FILE["vectors"]}
    assert {"simple", "unicode", "numbers", "nesting", "empty-object"} <= names
