"""The machine at the other end of a connection, as the server has it. Headers have no say in this."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from farhand.asgi.access.base import Connection


def peer_of(connection: Connection) -> IPv4Address | IPv6Address | None:
    """Its address; None for a socket of this machine and for what is no address."""
    client = connection.scope.get("client")
    if not client:
        return None
    try:
        address = ip_address(client[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
