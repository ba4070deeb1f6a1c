"""Which addresses may be connected to: those of the public Internet, and the peers that the operator has listed. Pure.

`ipaddress` alone is not enough: what it calls global differs between versions of Python, and it does not look into
addresses that carry another one.
"""

import re
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from farhand.core.errors import InvalidInput

Address: TypeAlias = IPv4Address | IPv6Address

_NOT_PUBLIC = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network; Linux connects to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, RFC 6598
        "127.0.0.0/8",
        "169.254.0.0/16",  # link local; where clouds keep their metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments, RFC 6890; metadata of one cloud
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4, RFC 7526
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
_GIVEN_OUT = IPv6Network("2000::/3")  # all that is given out to anybody, RFC 4291
_NOT_PUBLIC_6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries an IPv4 address; given up by RFC 7526
        "3fff::/20",
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: what a name has where only IPv6 is spoken
_PEER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/@\s]+):(?P<port>\d{1,5})")


def unwrapped(address: Address) -> Address:
    """The address itself, or the IPv4 address that it stands for."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether an address is one of the public Internet."""
    found = unwrapped(address)
    if isinstance(found, IPv4Address):
        return found.is_global and not any(found in network for network in _NOT_PUBLIC)
    if found.scope_id or found not in _GIVEN_OUT:
        return False
    return found.is_global and not any(found in network for network in _NOT_PUBLIC_6)


def _is_unicast(address: Address) -> bool:
    """Whether an address is that of one machine, and not only of this very link."""
    found = unwrapped(address)
    return not (found.is_multicast or found.is_unspecified or found.is_link_local or found == _BROADCAST)


_BROADCAST = IPv4Address("255.255.255.255")


class Peers:
    """Those whom the operator allows besides the public: `host:port`, `address:port` or a network."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._addresses: set[tuple[Address, int]] = set()
        self._names: set[tuple[str, int]] = set()
        for entry in entries:
            self._add(entry)

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry))
        except ValueError:
            parts = _PEER.fullmatch(entry)
            if parts is None or not 0 < int(parts["port"]) < 65536:
                raise InvalidInput(
                    f"{entry!r} is no peer: write host:port, as in keys.internal:8443, or a network, as in 10.1.0.0/16"
                ) from None
            host, port = parts["host"].strip("[]"), int(parts["port"])
            try:
                self._addresses.add((ip_address(host), port))
            except ValueError:
                self._names.add((named(host), port))

    def allow(self, host: str, address: Address, port: int) -> bool:
        """Whether this address, found under this name, may be connected to."""
        found = unwrapped(address)
        if is_public(found) or (found, port) in self._addresses:
            return True
        if any(found in network for network in self._networks):
            return True
        return (named(host), port) in self._names and _is_unicast(found)


def named(host: str) -> str:
    """A host's name as it is compared."""
    return host.lower().rstrip(".")
