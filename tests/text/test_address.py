"""Addresses of servers, and the proxies on the way to them."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest

from icy.core.errors import InvalidSettingError
from icy.s2b import TextRequest, TextSettings, text_model
from icy.text.interface import Address, ServerError, proxy_to, read_address
from tests.text.server import YES, failed, said, serving

QUICK: dict[str, Any] = {"backoff": 0.002, "timeout": 5.0, "retries": 2}
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PORT, HOST, START = (
    "a port that is not a number",
    "a host that no server can have",
    "no http:// or https:// at its start",
)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("http://a..b/v1#m", HOST),
        (f"http://{'a' * 64}.example/v1#m", HOST),
        ("http://[::1/v1#m", HOST),
        ("http://a$b/v1#m", HOST),
        ("http://ex*mple/v1#m", HOST),
        ("http://localhost:abc/v1#m", PORT),
        ("http://localhost:99999/v1#m", PORT),
        ("http://localhost:0/v1#m", PORT),
        ("http://localhost:١/v1#m", PORT),
        ("http://#m", "no host"),
        ("http://:8000/v1#m", "no host"),
        (" http://localhost/v1#m", "a blank"),
        ("http://local host/v1#m", "a blank"),
        ("http://localhost\n/v1#m", "a blank"),
        ("http://localhost\x00/v1#m", "a blank"),
        ("ftp://localhost/v1#m", START),
        ("localhost:8000/v1#m", START),
        ("api.example.com/v1#m", START),
        ("http:/localhost/v1#m", START),
        ("http:localhost#m", START),
        ("://localhost/v1#m", START),
        ("http://localhost:1/v1", "no model"),
        ("http://localhost:1/v1#", "no model"),
    ],
)
def test_wrong_addresses_are_refused_at_once(name: str, fault: str) -> None:
    with pytest.raises(InvalidSettingError, match=rf"URL#MODEL, as in http://localhost:8000/v1#llama;.* has {fault}"):
        text_model(name)


@pytest.mark.parametrize(
    "name",
    [
        "http://user:pw@host/v1#m",
        "http://[user:pw@host/v1#m",
        "ftp://user:pw@host/v1#m",
        "http://h/v1?key=pw#m",
        "http://h/v1?api-version=1&key=pw#m",
    ],
)
def test_possible_secrets_are_refused_and_not_printed(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="must not hold a password or a query") as raised:
        text_model(name)
    assert "pw" not in str(raised.value).replace("password", "")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("http://localhost:8000/v1#a/b", ("http://localhost:8000/v1", "a/b", "http://localhost:8000/v1")),
        ("http://localhost/v1/#m", ("http://localhost/v1", "m", "http://localhost/v1")),
        ("HTTPS://Example.com#m#2", ("HTTPS://Example.com", "m#2", "HTTPS://Example.com")),
        ("http://[::1]:80/v1#m", ("http://[::1]:80/v1", "m", "http://[::1]:80/v1")),
        ("http://my_host:1/v1#my m", ("http://my_host:1/v1", "my m", "http://my_host:1/v1")),
        ("http://müller.example/ä#m", ("http://müller.example/ä", "m", "http://müller.example/ä")),
        ("http://h/v1/chat/completions#m", ("http://h/v1", "m", "http://h/v1")),
        ("http://h/a%20b#m", ("http://h/a%20b", "m", "http://h/a%20b")),
    ],
)
def test_right_addresses(name: str, address: tuple[str, str, str]) -> None:
    url, model, target = address
    assert read_address(name) == Address(url, model, f"{target}/chat/completions")
    assert text_model(name).identity()["server"] == url


def test_an_address_of_azure_has_a_version() -> None:
    url, version = "https://mine.openai.azure.com/openai/deployments/d", "?api-version=2024-10-21"
    found = read_address(f"{url}{version}#m")
    assert found == Address(f"{url}{version}", "m", f"{url}/chat/completions{version}")
    assert read_address(f"{url}/chat/completions{version}#m") == found
    with serving(lambda asked: said(YES)) as server:
        text_model(f"{server.url}{version}#m").reply(TextRequest("?", {}))
    assert server.asked[0].path == f"/v1/chat/completions{version}"


# -- proxies -----------------------------------------------------------------------------------------------------------

DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("variables", "target", "proxy"),
    [
        ({"http_proxy": DEAD}, "http://h/v1", (DEAD, "http_proxy")),
        ({"HTTP_PROXY": DEAD}, "http://h/v1", (DEAD, "HTTP_PROXY")),
        ({"HTTP_PROXY": DEAD}, "https://h/v1", None),
        ({"HTTPS_PROXY": DEAD}, "https://h/v1", (DEAD, "HTTPS_PROXY")),
        ({"ALL_PROXY": DEAD}, "http://h/v1", (DEAD, "ALL_PROXY")),
        ({"all_proxy": DEAD, "https_proxy": "http://p:3"}, "https://h/v1", ("http://p:3", "https_proxy")),
        ({"HTTP_PROXY": "p:3128"}, "http://h/v1", ("http://p:3128", "HTTP_PROXY")),
        ({"HTTP_PROXY": "http://me:secret@p:3128/"}, "http://h/v1", ("http://p:3128", "HTTP_PROXY")),
        ({"HTTP_PROXY": DEAD, "NO_PROXY": "h"}, "http://h/v1", None),
        ({"HTTP_PROXY": DEAD, "NO_PROXY": "x,.b.example"}, "http://a.b.example:8000/v1", None),
        ({"ALL_PROXY": DEAD, "NO_PROXY": "*"}, "http://h/v1", None),
        ({"ALL_PROXY": DEAD, "NO_PROXY": "h:1"}, "http://h:2/v1", (DEAD, "ALL_PROXY")),
        ({"ALL_PROXY": ""}, "http://h/v1", None),
        ({}, "http://h/v1", None),
    ],
    ids=str,
)
def test_proxy_selection(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], target: str, proxy: tuple[str, str] | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = proxy_to(target)
    assert (None if found is None else (found.url, found.source)) == proxy


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("socks5://me:secret@127.0.0.1:1080", START),
        ("http://127.0.0.1:abc", PORT),
        ("http://a..b:3128", HOST),
        ("me:secret@", "no host"),
        ("http://p q", "a blank"),
    ],
)
def test_a_proxy_that_cannot_be_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, value: str, fault: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    what = rf"The proxy .* of ALL_PROXY has {fault}.*list h in NO_PROXY"
    with pytest.raises(InvalidSettingError, match=what) as raised:
        text_model("http://h/v1#m")
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("NO_PROXY", "h")
    text_model("http://h/v1#m")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://me:secret@127.0.0.1:9")
    model = text_model("http://h.example/v1#m", TextSettings(**QUICK))
    with pytest.raises(ServerError) as raised:
        model.reply(TextRequest("?", {}))
    assert re.fullmatch(
        rf"http://h\.example/v1 \(through the proxy http://127\.0\.0\.1:9 of {variable}\) cannot be reached: the proxy "
        rf"fails \(.*refused.*\)\. Correct {variable}, or list h\.example in NO_PROXY\.",
        str(raised.value),
    )
    assert model.retried == 0


def test_a_proxy_that_does_not_lead_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda asked: failed(407)) as server:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, server.url.removesuffix("/v1"))
        with pytest.raises(ServerError, match=r"of https_proxy\) cannot be reached: the proxy fails \(502 Bad"):
            text_model("https://h.example/v1#m").reply(TextRequest("?", {}))
        with pytest.raises(ServerError, match=r"of http_proxy\) answers with status 407.*http_proxy=http://NAME:PASS"):
            text_model("http://h.example/v1#m").reply(TextRequest("?", {}))
    assert server.asked[0].path == "http://h.example/v1/chat/completions"


@pytest.mark.parametrize("url", ["http://😀.com", "http://a_b.ü.com", f"http://h/{'x' * 70_000}"])
def test_addresses_that_no_request_can_have_are_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidSettingError, match="is not a possible address") as raised:
        text_model(f"{url}#m")
    assert len(str(raised.value)) < 300


def test_answers_come_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda asked: said(YES) if asked.number else failed(503)) as server:
        monkeypatch.setenv("ALL_PROXY", server.url.removesuffix("/v1").replace("//", "//me:a#/@b%25@"))
        reply = text_model("http://h.example/v1#m", TextSettings(**QUICK)).reply(TextRequest("?", {}))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        text_model(f"{server.url}#m", TextSettings(**QUICK)).reply(TextRequest("?", {}))
    assert reply.raw == YES
    assert [one.path.partition("/v1")[0] for one in server.asked] == ["http://h.example", "http://h.example", ""]
    login = b64encode(b"me:a#/@b%").decode()
    assert [one.headers.get("Proxy-Authorization") for one in server.asked] == [*[f"Basic {login}"] * 2, None]
