"""Which addresses may be connected to."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.errors import InvalidInput
from farhand.outbound.address import Peers, is_public, unwrapped

PUBLIC = [
    *(
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "9.9.9.9",
    ),
    *("11.0.0.1", "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.1", "192.0.1.1", "192.167.255.255"),
    *("192.169.0.1", "198.17.255.255", "198.20.0.1", "223.255.255.254"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2620:fe::fe", "2003::1", "2001:200::1"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
]
NOT_PUBLIC = [
    *("0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.0"),
    *("127.255.255.255", "169.254.0.0", "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255"),
    *("192.0.2.0", "192.88.99.0", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.0"),
    *("203.0.113.0", "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255"),
    *(
        "::",
        "::1",
        "::2",
        "::ffff:0:1.1.1.1",
        "::8.8.8.8",
        "64:ff9b:1::8.8.8.8",
        "100::",
        "fc00::",
        "fdff::",
        "fe80::1",
    ),
    *("fe80::1%1", "2606:4700:4700::1111%1", "fec0::1", "ff02::1", "ff0e::1", "2001::1", "2001:1ff::1", "2001:db8::1"),
    *("2002:808:808::1", "3fff::1", "4000::1", "5f00::1", "8000::1", "1fff::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:100.64.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_every_other_address_is_not(address: str) -> None:
    assert not is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_in_every_dress(address: IPv4Address) -> None:
    for dress in ("::ffff:{}", "64:ff9b::{}"):
        assert unwrapped(ip_address(dress.format(address))) == address
        assert is_public(ip_address(dress.format(address))) == is_public(address)


@given(st.ip_addresses(v=6))
def test_whatever_the_library_calls_private_is_not_public(address: IPv6Address) -> None:
    assert not is_public(address) or unwrapped(address).is_global


@given(st.ip_addresses(v=4))
def test_whatever_the_library_calls_private_is_not_public_either(address: IPv4Address) -> None:
    assert not is_public(address) or (address.is_global and not address.is_multicast and not address.is_reserved)


def allowed(peers: Peers, host: str, address: str, port: int = 8443) -> bool:
    return peers.allow(host, ip_address(address), port)


def test_without_peers_only_the_public_is_allowed() -> None:
    assert allowed(Peers(), "a.example", "8.8.8.8")
    assert not allowed(Peers(), "a.example", "10.0.0.1")


def test_a_named_peer_is_allowed_at_its_port_and_wherever_it_is() -> None:
    peers = Peers(["keys.internal:8443"])
    for host in ("keys.internal", "KEYS.internal", "keys.internal."):
        assert allowed(peers, host, "10.0.0.1")
        assert allowed(peers, host, "127.0.0.1")
        assert allowed(peers, host, "fd00::1")
    assert not allowed(peers, "keys.internal", "10.0.0.1", 443)
    assert not allowed(peers, "other.internal", "10.0.0.1")
    assert not allowed(peers, "x.keys.internal", "10.0.0.1")
    assert not allowed(peers, "10.0.0.1", "10.0.0.1")


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:169.254.1.1"],
)
def test_a_name_is_no_way_to_the_metadata_of_a_cloud_or_to_everybody(address: str) -> None:
    assert not allowed(Peers(["keys.internal:8443"]), "keys.internal", address)


def test_a_peer_by_its_address_is_allowed_under_every_name_at_its_port() -> None:
    peers = Peers(["10.0.0.1:8443", "[fd00::1]:8443"])
    for address in ("10.0.0.1", "::ffff:10.0.0.1", "fd00::1"):
        assert allowed(peers, "whatever", address)
        assert not allowed(peers, "whatever", address, 443)
    assert not allowed(peers, "whatever", "10.0.0.2")


def test_a_network_is_allowed_at_every_port() -> None:
    peers = Peers(["10.1.0.0/16", "fd00::/8"])
    assert allowed(peers, "whatever", "10.1.2.3", 1)
    assert allowed(peers, "whatever", "fd12::1", 65535)
    assert not allowed(peers, "whatever", "10.2.0.1")


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "keys.internal",
        "keys.internal:",
        "keys.internal:0",
        "keys.internal:65536",
        ":443",
        "https://keys.internal:443",
        "user@keys.internal:443",
        "10.1.2.3/8",
        "keys.internal:https",
        "a b:1",
        "[fd00::1]",
        "fd00::1:x",
    ],
)
def test_an_entry_that_is_no_peer_is_named(entry: str) -> None:
    with pytest.raises(InvalidInput, match="is no peer"):
        Peers([entry])
