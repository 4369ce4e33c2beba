"""The names of a platform's resources, read from what its gateway says of a tenant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from snavio.aws.errors import Permanent
from snavio.wire.names import Names

_emit_role = re.compile(r"arn:([^:]+):iam::(\d{12}):role/(.+)").fullmatch


def names_of(tenant: Mapping[str, Any], region: str) -> Names:
    """The names, from a tenant's document. The platform may be in another account than the caller."""
    found = _emit_role(tenant["emit_role_arn"])
    suffix = f"-emit-{tenant['tenant']}"
    if found is None or not found[3].endswith(suffix):
        raise Permanent(f"{tenant['emit_role_arn']} is not the ARN of an emit role.")
    return Names(prefix=found[3].removesuffix(suffix), region=region, account=found[2], partition=found[1])
