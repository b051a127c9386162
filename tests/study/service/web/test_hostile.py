"""Hostile and broken requests: never an error of the server, and never a stack trace."""

from __future__ import annotations

import socket
import struct
from urllib.parse import urlsplit

import pytest

from icy.study.service import Study
from tests.study.service.helpers import rows
from tests.study.service.web.helpers import HOST, Browser
from tests.study.service.web.serving import reachable

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
OTHER_CHARSETS = (
    *("unicode_escape", "raw_unicode_escape", "utf-7", "utf-16", "utf-32", "latin-1", "cp037", "punycode", "idna"),
    *("hex", "rot13", "undefined", "nonsense", "", "utf-8; charset=utf-7", '"utf-16"'),
)


def part(name: str, value: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), value)


def send(browser: Browser, kind: str, answer: bytes) -> int:
    """Answer the item on screen with a form of a content type, and return the status."""
    action, fields = browser.filled("answer")
    if kind.startswith(MULTIPART):
        parts = [part(name, value.encode()) for name, value in fields.items() if name != "answer"]
        content = b"".join([*parts, part("answer", answer), b"--b--\r\n"])
    else:
        others = "&".join(f"{name}={value}" for name, value in fields.items() if name != "answer")
        content = others.encode() + b"&answer=" + answer
    return int(browser.client.post(action, content=content, headers={"content-type": kind}).status_code)


@pytest.mark.parametrize("charset", OTHER_CHARSETS)
@pytest.mark.parametrize("kind", [URLENCODED, MULTIPART])
def test_other_charsets_than_utf_8_are_refused(kind: str, charset: str, browser: Browser, of: Study) -> None:
    browser.start()
    assert send(browser, f"{kind}; charset={charset}", rb"\ud800") == 400
    assert rows(of, "SELECT state FROM trial") == [{"state": "open"}]


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", "; charset=UTF-8", '; charset="utf-8"', ";charset = utf8"])
@pytest.mark.parametrize("kind", [URLENCODED, MULTIPART])
def test_utf_8_is_read(kind: str, charset: str, browser: Browser, of: Study) -> None:
    browser.start()
    assert send(browser, kind + charset, "\uff41b\0c".encode()) == 200
    (trial,) = rows(of, "SELECT raw FROM trial")
    assert trial["raw"] == "\uff41bc"


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xe9", b"%ff", b"%ED%A0%80", b"%C0%AF"])
@pytest.mark.parametrize("kind", [URLENCODED, MULTIPART])
def test_invalid_utf_8_is_refused(kind: str, text: bytes, browser: Browser, of: Study) -> None:
    browser.start()
    if kind == URLENCODED or not text.startswith(b"%"):
        assert send(browser, kind, text) == 400
        assert rows(of, "SELECT state FROM trial") == [{"state": "open"}]


TEXTS = (
    "\0",
    "9" * 30,
    "1" * 5000,
    "-1",
    "1e400",
    "\u202e",
    "\x1b[2J",
    "\U0001f600" * 500,
    "½",
    "²",
    "\r\nX: y",
    "%zz",
)
FIELDS = ("answer", "trial", "reaction", "at", "attempt", "palette", "viewport", "tab", "kind", "text", "age", "form")


@pytest.mark.slow
def test_no_field_breaks_an_action(browser: Browser) -> None:
    browser.start()
    action, fields = browser.filled("answer")
    for name in ("demographics", "instructions", "comprehension", "colours", "answer", "next", "tab", "add", "note"):
        for text in TEXTS:
            for spoiled in (FIELDS[:-1], FIELDS[1:-1], FIELDS[-1:]):
                data = {**fields, **dict.fromkeys(spoiled, text)}
                assert browser.client.post(action.replace("/answer", f"/{name}"), data=data).status_code < 500


@pytest.mark.parametrize("text", ["%00", "%ff", "%zz", "%", "%ed%a0%80", "%C0%AF", "a" * 8000, "id=1&id=2", "=", "&&"])
def test_no_query_breaks_a_page(text: str, browser: Browser) -> None:
    for address in ("/pilot", "/", "/pilot/declined", "/pilot/p/x", "/static/study.css", "/pilot/researcher"):
        for query in (f"?{text}", f"?id={text}", f"?icy_test={text}", f"?{text}={text}"):
            assert browser.client.get(address + query).status_code < 500


def test_a_broken_referrer_gets_an_error_page(browser: Browser) -> None:
    browser.get("/pilot")
    del browser.client.headers["origin"]
    headers = {"referer": "http://[x", "sec-fetch-site": "same-origin"}
    assert browser.client.post("/pilot/enter", data={"form": "x"}, headers=headers).status_code == 403


def request(kind: str, extra: str, body: bytes) -> bytes:
    host = urlsplit(HOST).netloc
    head = ["POST /pilot/enter HTTP/1.1", f"Host: {host}", f"Origin: {HOST}", f"Content-Type: {kind}", extra, "", ""]
    return "\r\n".join(head).encode() + body


RAW = {
    "negative length": request(URLENCODED, "Content-Length: -5", b"a"),
    "length in words": request(URLENCODED, "Content-Length: abc", b"a"),
    "huge length": request(URLENCODED, f"Content-Length: {10**30}", b"a"),
    "two lengths": request(URLENCODED, "Content-Length: 1\r\nContent-Length: 2", b"ab"),
    "too short a length": request(URLENCODED, "Content-Length: 1", b"abc"),
    "bad chunk": request(URLENCODED, "Transfer-Encoding: chunked", b"zz\r\nabc"),
    "bad boundary": request("multipart/form-data; boundary=\xff", "Content-Length: 3", b"abc"),
    "no boundary": request("multipart/form-data", "Content-Length: 3", b"abc"),
    "nonsense": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
}
CUT = {
    "form": request(URLENCODED, "Content-Length: 5000", b"a=b"),
    "multipart": request(MULTIPART, "Content-Length: 5000", part("a", b"b")),
    "chunks": request(URLENCODED, "Transfer-Encoding: chunked", b"5\r\nab"),
    "headers": b"POST /pilot/enter HTTP/1.1\r\nHost: a",
}


def test_raw_requests_print_no_stack_trace(of: Study, capfd: pytest.CaptureFixture[str]) -> None:
    with reachable(of) as address:
        place = urlsplit(address)
        for name, content in RAW.items():
            with socket.create_connection((str(place.hostname), place.port or 0), 10) as client:
                client.sendall(content)
                assert client.recv(100).split()[1] in (b"400", b"403", b"413"), name
        for content in (*CUT.values(), *CUT.values()):
            for reset in (False, True):
                client = socket.create_connection((str(place.hostname), place.port or 0), 10)
                client.sendall(content)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
        with socket.create_connection((str(place.hostname), place.port or 0), 10) as client:
            client.sendall(CUT["form"])
            client.shutdown(socket.SHUT_WR)  # the client waits for a reply
            client.recv(100)
    assert capfd.readouterr().err == ""
