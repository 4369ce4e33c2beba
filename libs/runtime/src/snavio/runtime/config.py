"""Settings from the environment, as one frozen Struct a service.

A field of `CommonConfig` is read from `SNAVIO_<FIELD>`, and `SNAVIO_<SERVICE>_<FIELD>` overrides it for one service; a
service's own fields have only the second form. Fields may name other variables with `Meta(extra={"env": [...]})`, and
hide their value from errors and documentation with `Meta(extra={"secret": True})`. An empty variable counts as unset;
lists are separated by commas.

One environment may serve every process: variables of other services are ignored, any other `SNAVIO_*` variable that
nothing reads is refused.
"""

from __future__ import annotations

import difflib
import math
import types
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec

from snavio.runtime.common_config import CommonConfig
from snavio.runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec.structs import FieldInfo

C = TypeVar("C", bound=CommonConfig)

PREFIX = "SNAVIO_"
SERVICES = ("shield", "fast", "slow", "outbox", "monitor", "gateway")
PARTS = ("aws", "bench", "bus", "cli", "demo", "dispatch", "embedded", "registry", "sdk", "spark", "test")
CLIENT = ("source", "token", "url")
"""`SNAVIO_URL` and its like, which a person exports for the command line and the SDK."""
FOREIGN = (*SERVICES, *PARTS, *CLIENT)
"""First words of variables that belong to some part of Snavio, perhaps not the one that is starting."""

_SHOWN = 60


class Setting(msgspec.Struct, frozen=True):
    """One field of a config Struct as the environment sees it."""

    field: str
    variables: tuple[str, ...]
    """Every variable read, the one that wins first."""
    type: Any
    default: Any
    required: bool
    secret: bool
    description: str


def settings_of(config: type[CommonConfig], service: str) -> tuple[Setting, ...]:
    """Every setting of the Struct, in the order of its fields."""
    shared = set(CommonConfig.__struct_fields__)
    return tuple(
        _setting(field, service, shared=field.name in shared) for field in msgspec.structs.fields(config)
    )


def load(config: type[C], environ: Mapping[str, str], *, service: str) -> C:
    """The service's settings. Raises `ConfigError` naming every wrong or unknown variable at once."""
    settings = settings_of(config, service)
    problems: list[str] = []
    values: dict[str, Any] = {}
    for setting in settings:
        name, raw = _lookup(setting, environ)
        if raw is None:
            if setting.required:
                problems.append(f"{setting.variables[0]}: required ({setting.description})")
            continue
        try:
            values[setting.field] = _convert(raw, setting.type)
        except (msgspec.ValidationError, ValueError) as error:
            problems.append(_complaint(name, raw, setting, str(error)))
    known = [variable for setting in settings for variable in setting.variables]
    problems += [_unknown(name, known) for name in sorted(environ) if _is_unknown(name, known)]
    if problems:
        raise ConfigError(service, problems)
    try:
        return config(**values)
    except ValueError as error:  # a rule between fields, from __post_init__
        raise ConfigError(service, [str(error)]) from error


def _setting(field: FieldInfo, service: str, *, shared: bool) -> Setting:
    info = msgspec.inspect.type_info(field.type)
    extra: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    if isinstance(info, msgspec.inspect.Metadata):
        extra = cast("dict[str, Any]", info.extra or {})
        schema = cast("dict[str, Any]", info.extra_json_schema or {})
    name = field.name.upper()
    variables = [f"{PREFIX}{service.upper()}_{name}"]
    if "env" in extra:
        variables = list(cast("Sequence[str]", extra["env"]))
    elif shared:
        variables.append(f"{PREFIX}{name}")
    default = field.default
    if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return Setting(
        field=field.name,
        variables=tuple(variables),
        type=field.type,
        default=default,
        required=default is msgspec.NODEFAULT,
        secret=bool(extra.get("secret", False)),
        description=str(schema.get("description", "")),
    )


def _lookup(setting: Setting, environ: Mapping[str, str]) -> tuple[str, str | None]:
    for variable in setting.variables:
        if raw := environ.get(variable):
            return variable, raw
    return setting.variables[0], None


def _convert(raw: str, type_: Any) -> Any:
    value: Any = [part.strip() for part in raw.split(",") if part.strip()] if _is_list(type_) else raw
    converted = msgspec.convert(value, type_, strict=False)
    if isinstance(converted, float) and not math.isfinite(converted):
        raise ValueError("Expected a finite number")
    return converted


def _is_list(type_: Any) -> bool:
    origin = get_origin(type_)
    if origin in {list, tuple, set, frozenset}:
        return True
    # Annotated keeps its type as the first argument and its metadata after it; unions hold only types.
    if origin in {Union, types.UnionType} or hasattr(type_, "__metadata__"):
        return any(_is_list(part) for part in get_args(type_))
    return False


def _complaint(name: str, raw: str, setting: Setting, error: str) -> str:
    about = f" ({setting.description})" if setting.description else ""
    if setting.secret:
        return f"{name}: not acceptable; its value is secret and not shown{about}"
    shown = raw if len(raw) <= _SHOWN else raw[:_SHOWN] + "…"
    reason = error.replace("`", "").replace(", got str", "")
    if choices := _choices(setting.type):
        reason = f"Expected one of {', '.join(choices)}"
    return f"{name}={shown!r}: {reason[:1].lower()}{reason[1:]}{about}"


def _choices(type_: Any) -> list[str]:
    info = msgspec.inspect.type_info(type_)
    while isinstance(info, msgspec.inspect.Metadata):
        info = info.type
    if isinstance(info, msgspec.inspect.LiteralType):
        return [str(value) for value in info.values]
    if isinstance(info, msgspec.inspect.EnumType):
        return [str(member.value) for member in info.cls]
    return []


def _is_unknown(name: str, known: Sequence[str]) -> bool:
    if not name.startswith(PREFIX) or name in known:
        return False
    # A part that reads some variables of a family answers for the whole family.
    return _family(name) not in FOREIGN or _family(name) in {
        _family(ours) for ours in known if ours.startswith(PREFIX)
    }


def _family(name: str) -> str:
    return name.removeprefix(PREFIX).partition("_")[0].lower()


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{name}: unknown variable{hint}"
