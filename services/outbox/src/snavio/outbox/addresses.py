"""Which addresses a webhook may lead to: public ones, and those an operator allows by name. Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Prefixes of IPv6 that carry an IPv4 address, and where in the address it stands.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The networks an operator allows; `ValueError` names one that is none."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    """Whether a webhook may connect to an address."""
    try:
        address = _unwrapped(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return False
    if any(address in network for network in allowed):
        return True
    return address.is_global and not address.is_multicast and not address.is_reserved


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one that would be translated to it, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and (address in _COMPATIBLE or any(address in prefix for prefix in _NAT64)):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return inner or address
