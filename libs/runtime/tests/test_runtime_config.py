from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Meta

from snavio.runtime.common_config import CommonConfig
from snavio.runtime.config import FOREIGN, SERVICES, load, settings_of
from snavio.runtime.config_docs import document
from snavio.runtime.errors import ConfigError


class Mode(Enum):
    ADAPTIVE = "adaptive"
    COLD_ONLY = "cold-only"


class ShieldConfig(CommonConfig, frozen=True, kw_only=True):
    replay_window_seconds: Annotated[float, Meta(gt=0, le=3600, description="How old a command may be")] = (
        60.0
    )
    attempts: Annotated[int, Meta(ge=1, description="Tries")] = 3
    strict: Annotated[bool, Meta(description="Strictness")] = False
    mode: Annotated[Mode, Meta(description="Path")] = Mode.ADAPTIVE
    colour: Annotated[Literal["red", "blue"] | None, Meta(description="Colour")] = None
    banned: Annotated[tuple[str, ...], Meta(description="Sources refused")] = ()
    ports: Annotated[list[Annotated[int, Meta(ge=1)]] | None, Meta(description="Ports")] = None
    pepper: Annotated[str, Meta(min_length=8, description="Salt", extra={"secret": True})] = "default-pepper"

    def __post_init__(self) -> None:
        if self.attempts > 100 and self.strict:
            raise ValueError("SNAVIO_SHIELD_ATTEMPTS: at most 100 when strict")


def shield(**environ: str) -> ShieldConfig:
    return load(ShieldConfig, environ, service="shield")


def problems(**environ: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        shield(**environ)
    return caught.value.problems


def test_an_empty_environment_gives_the_defaults():
    assert shield() == ShieldConfig()
    assert shield(SNAVIO_POLLS="", SNAVIO_SHIELD_MODE="") == ShieldConfig()


@pytest.mark.parametrize(
    ("variable", "raw", "field", "value"),
    [
        ("SNAVIO_PREFIX", "acme", "prefix", "acme"),
        ("SNAVIO_SHIELD_REPLAY_WINDOW_SECONDS", "2.5", "replay_window_seconds", 2.5),
        ("SNAVIO_SHIELD_REPLAY_WINDOW_SECONDS", "90", "replay_window_seconds", 90.0),
        ("SNAVIO_SHIELD_ATTEMPTS", "7", "attempts", 7),
        ("SNAVIO_SHIELD_STRICT", "true", "strict", True),
        ("SNAVIO_SHIELD_STRICT", "0", "strict", False),
        ("SNAVIO_SHIELD_MODE", "cold-only", "mode", Mode.COLD_ONLY),
        ("SNAVIO_SHIELD_COLOUR", "blue", "colour", "blue"),
        ("SNAVIO_SHIELD_BANNED", "a/b, c/d,", "banned", ("a/b", "c/d")),
        ("SNAVIO_SHIELD_PORTS", "80,443", "ports", [80, 443]),
        ("SNAVIO_SHIELD_PREFIX", "own", "prefix", "own"),
        ("AWS_REGION", "eu-north-1", "region", "eu-north-1"),
        ("AWS_DEFAULT_REGION", "eu-north-1", "region", "eu-north-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "endpoint", "http://127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", "otlp_endpoint", "http://collector:4318"),
    ],
)
def test_a_variable_sets_its_field(variable, raw, field, value):
    assert getattr(shield(**{variable: raw}), field) == value


def test_a_services_own_variable_overrides_the_shared_one():
    assert shield(SNAVIO_POLLS="7", SNAVIO_SHIELD_POLLS="9").polls == 9
    assert shield(AWS_REGION="a", AWS_DEFAULT_REGION="b").region == "a"


def test_every_problem_is_named_at_once():
    found = problems(
        SNAVIO_POLLS="many",
        SNAVIO_SHIELD_ATTEMPTS="0",
        SNAVIO_SHIELD_MODE="warm",
        SNAVIO_SHIELD_STRICT="perhaps",
        SNAVIO_SHIELD_PORTS="80,x",
        SNAVIO_DRAIN_SECONDS="inf",
        SNAVIO_NONSENSE="1",
        SNAVIO_SHIELD_ATTEMTPS="3",
    )
    assert sorted(problem.partition("=")[0].partition(":")[0] for problem in found) == [
        "SNAVIO_DRAIN_SECONDS",
        "SNAVIO_NONSENSE",
        "SNAVIO_POLLS",
        "SNAVIO_SHIELD_ATTEMPTS",
        "SNAVIO_SHIELD_ATTEMTPS",
        "SNAVIO_SHIELD_MODE",
        "SNAVIO_SHIELD_PORTS",
        "SNAVIO_SHIELD_STRICT",
    ]
    said = "\n".join(found)
    assert "SNAVIO_SHIELD_MODE='warm': expected one of adaptive, cold-only" in said
    assert "SNAVIO_SHIELD_ATTEMTPS: unknown variable; did you mean SNAVIO_SHIELD_ATTEMPTS?" in said
    assert "(Concurrent long polls on a queue)" in said


def test_variables_of_other_services_are_ignored_but_a_strangers_are_not():
    shield(
        SNAVIO_FAST_ANYTHING="1",
        SNAVIO_OUTBOX_ATTEMPTS="x",
        SNAVIO_AWS_ENDPOINT_URL="x",
        SNAVIO_TOKEN="x",
        SNAVIOX="1",
        PATH="x",
    )
    assert problems(SNAVIO_SHEILD_ATTEMPTS="1") == (
        "SNAVIO_SHEILD_ATTEMPTS: unknown variable; did you mean SNAVIO_SHIELD_ATTEMPTS?",
    )


def test_who_reads_some_variables_of_a_family_answers_for_all_of_it():
    class Caching(CommonConfig, frozen=True, kw_only=True):
        refresh: Annotated[float, Meta(description="Pace", extra={"env": ["SNAVIO_REGISTRY_REFRESH"]})] = 1.0

    environ = {"SNAVIO_REGISTRY_REFERSH": "2"}
    load(CommonConfig, environ, service="outbox")
    with pytest.raises(ConfigError, match=r"did you mean SNAVIO_REGISTRY_REFRESH\?"):
        load(Caching, environ, service="shield")


def test_a_required_variable_that_is_missing_is_named():
    class Needy(CommonConfig, frozen=True, kw_only=True):
        topic: Annotated[str, Meta(description="Where to publish")]

    with pytest.raises(ConfigError, match=r"SNAVIO_OUTBOX_TOPIC: required \(Where to publish\)"):
        load(Needy, {}, service="outbox")


def test_a_rule_between_fields_is_reported_like_any_other():
    assert problems(SNAVIO_SHIELD_ATTEMPTS="101", SNAVIO_SHIELD_STRICT="1") == (
        "SNAVIO_SHIELD_ATTEMPTS: at most 100 when strict",
    )


def test_a_secret_is_never_echoed():
    (problem,) = problems(SNAVIO_SHIELD_PEPPER="hush")
    assert problem.startswith("SNAVIO_SHIELD_PEPPER: ")
    assert "hush" not in problem
    table = document(ShieldConfig, "shield")
    assert "default-pepper" not in table
    assert "default-pepper" not in repr(ShieldConfig())


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\0"), max_size=20))
def test_any_value_is_either_an_acceptable_integer_or_refused_by_name(raw):
    try:
        polls = load(ShieldConfig, {"SNAVIO_POLLS": raw}, service="shield").polls
    except ConfigError as error:
        assert len(error.problems) == 1
        assert error.problems[0].startswith("SNAVIO_POLLS=")
    else:
        assert 1 <= polls <= 100
        assert not raw or int(raw) == polls


@given(st.sampled_from([name for name in SERVICES if name != "fast"]), st.from_regex(r"\A[A-Z_]{1,12}\Z"))
def test_whatever_another_service_calls_its_variables_is_none_of_ours(service, field):
    load(CommonConfig, {f"SNAVIO_{service.upper()}_{field}": "x"}, service="fast")


@given(st.from_regex(r"\A(FAST_)?[A-Z]{1,12}_?\Z"))
def test_a_name_nobody_reads_is_refused(field):
    name = f"SNAVIO_{field}"
    known = {variable for setting in settings_of(CommonConfig, "fast") for variable in setting.variables}
    assume(name not in known)
    assume(field.rstrip("_").lower() not in FOREIGN)
    with pytest.raises(ConfigError) as caught:
        load(CommonConfig, {name: "x"}, service="fast")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [name]


def test_the_table_documents_every_variable_with_its_limits_and_default():
    table = document(ShieldConfig, "shield")
    assert (
        "| `SNAVIO_SHIELD_REPLAY_WINDOW_SECONDS` | number (> 0, ≤ 3600) | `60.0` | How old a command may be |"
        in table
    )
    assert "| `SNAVIO_SHIELD_MODE` | `adaptive` or `cold-only` | `adaptive` | Path |" in table
    assert "| `SNAVIO_SHIELD_PORTS` | list of integer (≥ 1), separated by commas | unset | Ports |" in table
    assert "| `AWS_REGION`, `AWS_DEFAULT_REGION` |" in table
    for setting in settings_of(ShieldConfig, "shield"):
        assert setting.description, f"{setting.field} has no description"
        assert table.count(f"`{setting.variables[0]}`") == 1
