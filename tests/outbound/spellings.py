"""Ways to write the addresses of things that must not be asked. `{port}` is that of a trap on this machine."""

LOOPBACK = [
    f"http://{host}:{{port}}/"
    for host in (
        *("127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "127.000.000.001", "127.0.0.1."),
        *("0177.0.0.1", "0177.0.0.01", "0177.1", "017700000001", "0x7f.0.0.1", "0x7f.1", "0x7f000001", "0X7F000001"),
        *(
            "0x7f.0x0.0x0.0x1",
            "2130706433",
            "2130706434",
            "127.0x1",
            "127.0.00.1",
            "0",
            "0.0.0.0",
            "0.0",
            "0x0",
            "00.0",
        ),
        *("[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        *("[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::ffff:127.1.2.3]"),
        *("localhost", "LOCALHOST", "LocalHost", "localhost."),
    )
] + [
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}",
    "http://127.0.0.1:{port}?x",
    "http://127.0.0.1:{port}#@example.com/",
    "http://127.0.0.1:{port}?@example.com/",
    "http://127.0.0.1:{port}/@example.com/",
    "http://127.0.0.1:0{port}/",
    "http://127\u30020\u30020\u30021:{port}/",
    "http://127\uff0e0\uff0e0\uff0e1:{port}/",
    "http://127\uff610\uff610\uff611:{port}/",
    "http://1\uff127.0.0.1:{port}/",
]
"""All of these lead to the trap if nobody looks."""

PRIVATE = [
    f"http://{host}:{{port}}/"
    for host in (
        *(
            "10.0.0.1",
            "10.255.255.255",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.0.1",
            "012.0.0.1",
            "0xa.1",
            "167772161",
        ),
        *("169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.170.2", "[fd00:ec2::254]"),
        *("100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "192.0.0.8", "192.0.2.1", "192.88.99.1"),
        *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1"),
        *("255.255.255.255", "0.0.0.1", "0.255.255.255"),
        *("[fe80::1]", "[fe80::1%25lo]", "[fec0::1]", "[fc00::1]", "[fdff::1]", "[ff02::1]", "[ff0e::1]", "[100::1]"),
        *("[2001:db8::1]", "[3fff::1]", "[5f00::1]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[4000::1]"),
        *(
            "[::127.0.0.1]",
            "[::ffff:0:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
        ),
        *("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]"),
        *("[2002:7f00:1::]", "[2002:a00:1::1]", "[2002:a9fe:a9fe::]", "[2002:808:808::]", "[2001:0:7f00:1::1]"),
        *("[2001:0:808:808::f5ff:fffe]", "[::1%25lo]", "[::7f00:1]"),
    )
]
"""Addresses of other networks, and addresses that carry another one."""

NAMED = [
    "http://rebind.test:{port}/",
    "http://127.0.0.1.nip.test:{port}/",
    "http://metadata.google.internal:{port}/",
    "http://example.com:{port}/",
    "http://xn--lcalhost-f2a.test:{port}/",
    "http://l\u043ecalhost.test:{port}/",
    "http://localhost%2e.test:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    "http://%6c%6f%63alhost:{port}/",
    "http://127.0.0.1%23.example.com:{port}/",
    "http://127.0.0.1\\.example.com:{port}/",
    "http://a" + "b" * 62 + ".test:{port}/",
    "http://" + "a" * 300 + ".test:{port}/",
]
"""Names, with a resolver that says of every one that it is here."""

REFUSED_AS_THEY_ARE = [
    "http://example.com@127.0.0.1:{port}/",
    "http://example.com:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@example.com/",
    "http://:password@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http://a@b@127.0.0.1:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\n:{port}/",
    "http://127.0.0.1:{port}\r\nHost: example.com\r\n/",
    " http://127.0.0.1:{port}/",
    "http://127.0.0.1\x00.example.com:{port}/",
    "http://127.0.0.1 :{port}/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "/127.0.0.1:{port}/",
    "http://:{port}/",
    "http://[::1:{port}/",
    "http://::1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://256.0.0.1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:0x50/",
    "file:///etc/passwd",
    "file://127.0.0.1:{port}/etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_x",
    "dict://127.0.0.1:{port}/x",
    "ldap://127.0.0.1:{port}/",
    "ws://127.0.0.1:{port}/",
    "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "data:text/plain,hello",
    "javascript:fetch('http://127.0.0.1:{port}/')",
    "jar:http://127.0.0.1:{port}/!/",
    "url:http://127.0.0.1:{port}/",
    "",
    "http",
    "http://",
]
"""No URL, no host, a scheme or a user that is not taken."""
