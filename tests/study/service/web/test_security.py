"""Security and privacy: every requirement of the service (spycodes-facts 15)."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from icy.study.service import Study
from icy.study.service.network import Limit, Serving, host_name
from icy.study.service.web import make_app, pages
from icy.study.service.web.desk import HEADERS, MOST_BODY, Desk, is_same_site
from tests.study.service.helpers import Clock, finish, loaded, rows, secrets_of, started, study
from tests.study.service.web.helpers import HOST, Browser, TestClient, browsing, served, without_limits

TELLING = ("meaning", "held", "holdout", "seed", "exposure", "answerable", "expected")


# -- secrets of the game -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_reply_contains_the_code_before_it_is_graded(browser: Browser, of: Study) -> None:
    """Before every answer, the test searches all replies so far, including headers and addresses."""
    browser.start()
    secrets, displayed = {*secrets_of(of)}, set[str]()
    while "answer" in browser.page.forms:
        for secret in secrets - displayed:
            assert not [text for _, text in browser.seen if re.search(rf"\b{secret}\b", text)], secret
        for address, text in browser.seen:
            assert not any(word in text.lower() or word in address.lower() for word in TELLING)
        browser.send("tab train")
        displayed |= set(browser.page.codes)
        browser.send("tab test")
        browser.client.get(browser.page.picture)
        browser.send("answer", answer="abc")
        displayed |= set(browser.page.codes)
        browser.send("next")
    assert len(secrets - displayed) > 20  # most codes were never shown


def test_a_page_does_not_depend_on_the_item(of: Study) -> None:
    """Another meaning, another code, held-out or ordinary: only the picture changes, and its address does not."""
    who = started(of)
    found, desk = loaded(of, who.id), Desk(of, without_limits())
    others = [
        {"meaning": 7, "code": "qqqqqq"},
        {"held_out": 1},
        {"image": 99},
        {"among_cards": (5, 5), "shown": (4, 4), "exposures": (9, 9), "own_exposures": 3},
    ]
    page = pages.stage_page(desk, who, "game", found).body
    for change in others:
        state = found.state.with_trial(replace(found.state.trial, **change))
        assert pages.stage_page(desk, who, "game", replace(found, state=state)).body == page


@pytest.mark.parametrize("palette", ["primary", "safe"])
def test_pictures_have_opaque_addresses_and_reveal_nothing(palette: str, browser: Browser, of: Study) -> None:
    browser.start()
    browser.send("display", palette=palette, sound="1")
    addresses = set()
    while "answer" in browser.page.forms:
        addresses.add(browser.page.picture)
        picture = browser.client.get(browser.page.picture)
        assert picture.headers["content-type"] == "image/svg+xml"
        assert re.search(r'alt="The shape of this question"', browser.text)
        assert not re.search("red|green|blue|circle|triangle|square|[0-9]{7,}", picture.text)
        browser.send("answer", answer="abc")
        browser.send("next")
    assert len(addresses) == 6
    assert all(re.fullmatch(r"/pilot/p/[0-9A-F]{32}/picture/[0-9A-F]{32}", address) for address in addresses)


def test_only_pictures_on_screen_are_served_and_only_to_their_person(browser: Browser, of: Study) -> None:
    browser.start()
    old, link = browser.page.picture, browser.address
    browser.send("answer", answer="abc")
    browser.send("next")
    assert browser.client.get(old).status_code == 404
    now = browser.page.picture
    assert browser.client.get(now).status_code == 200
    other = Browser(browser.client)
    other.enter()
    assert browser.client.get(now.replace(link.split("/")[-1], other.address.split("/")[-1])).status_code == 404
    assert browser.client.get(f"{link}/picture/{'0' * 32}").status_code == 404


# -- tokens, conditions, studies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "/stop", "/picture/" + "0" * 32])
@pytest.mark.parametrize("token", ["0" * 32, "x", "..%2F..%2Fetc", "' OR 1=1 --"])
def test_tokens_are_checked_on_every_call(token: str, end: str, browser: Browser) -> None:
    browser.start()
    assert browser.get(f"/pilot/p/{token}{end}").status_code == 404
    assert browser.post(f"/pilot/p/{token}/answer", {"answer": "x"}).status_code == 404


def test_a_form_is_valid_for_one_person_only(browser: Browser, of: Study) -> None:
    browser.start()
    mine = browser.page.forms["answer"]
    other = Browser(browser.client)
    other.start()
    theirs = other.page.forms["answer"]
    assert browser.post(theirs.action, {**mine.fields, "answer": "x"}).status_code == 403
    browser.post(theirs.action, {**theirs.fields, "trial": mine.fields["trial"], "answer": "x"})
    assert [row["state"] for row in rows(of, "SELECT state FROM trial")] == ["open", "open"]


def test_the_condition_is_the_servers_choice(of: Study) -> None:
    choice = "grammar=perm&dataset=eng&condition=eng%2Fperm&slot=3&seed=1&instance=1"
    with browsing(of) as browser:
        browser.get(f"/pilot?{choice}")
        browser.send("enter", agree="1", **dict(part.split("=") for part in choice.split("&")))
        game = loaded(of)
    assert (game.row["slot"], game.row["instance"]) == (0, 0)
    assert choice not in browser.text


@pytest.mark.parametrize(
    "address", ["/other", "/other/enter", "/pilot/nothing", "/..%2Fetc%2Fpasswd", "/static/../app.py"]
)
def test_unknown_addresses_show_an_error_page(address: str, browser: Browser) -> None:
    reply = browser.get(address)
    assert reply.status_code in (404, 405)
    assert "This page does not exist." in reply.text


def test_only_static_files_of_the_pages_are_served(browser: Browser) -> None:
    for name in ("study.css", "study.js", "star.svg", "icon.svg"):
        assert browser.get(f"/static/{name}").status_code == 200
    for name in ("app.py", "..%2Fapp.py", "%2e%2e/app.py", "nothing.css", "schema.sql"):
        assert browser.get(f"/static/{name}").status_code == 404


# -- answers and forms -------------------------------------------------------------------------------------------------


def test_typed_text_is_escaped(tmp_path: Path) -> None:
    of = study(tmp_path, title="<script>alert(1)</script>", people={"purpose": "<b onclick=x>"})
    (tmp_path / "pilot-information.md").write_text("# Hi\n\n<script>alert(2)</script> [x](javascript:alert(3))")
    with browsing(of) as browser:
        browser.get('/pilot?id="><script>alert(4)</script>')
        assert "<script>alert" not in browser.text
        assert "<b onclick" not in browser.text
        assert 'href="javascript:' not in browser.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": HOST, "sec-fetch-site": "cross-site"},
        {"origin": HOST, "sec-fetch-site": "same-site"},
        {"origin": "", "referer": "https://evil.example/a"},
        {"origin": ""},
    ],
    ids=str,
)
def test_forms_of_other_sites_are_refused(headers: dict[str, str], browser: Browser, of: Study) -> None:
    browser.start()
    given = {name: value for name, value in headers.items() if value}
    if not headers["origin"]:
        del browser.client.headers["origin"]
    assert browser.post(*browser.filled("answer", answer="abc"), headers=given).status_code == 403
    assert rows(of, "SELECT state FROM trial") == [{"state": "open"}]


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "same-origin"}, {"referer": f"{HOST}/pilot/p/x"}, {"origin": HOST.upper()}], ids=str
)
def test_forms_of_the_same_site_are_accepted(headers: dict[str, str], browser: Browser) -> None:
    browser.start()
    if "origin" not in headers:
        del browser.client.headers["origin"]
    assert browser.post(*browser.filled("answer", answer="abc"), headers=headers).status_code == 200


def test_behind_a_proxy_the_site_is_the_base_url(of: Study) -> None:
    with browsing(of, without_limits(base_url="https://study.example")) as browser:
        browser.get("/pilot")
        action, data = browser.filled("enter", agree="1")
        assert browser.post(action, data).status_code == 403  # sent from http://study.example
        assert browser.post(action, data, headers={"origin": "https://study.example"}).status_code == 200


SAME_SITES = [
    ("https://study.example:443", "https://study.example"),
    ("https://study.example/", "https://study.example"),
    ("HTTPS://Study.Example", "https://study.example"),
    ("https://study.example.", "https://study.example"),
    ("https://study.example", "https://study.example."),
    ("http://study.example:80", "http://study.example"),
    ("https://study.example:8443", "https://study.example:8443"),
    ("https://müller.example", "https://xn--mller-kva.example"),
    ("https://MÜLLER.example:443/", "https://xn--mller-kva.example"),
    ("https://straße.example", "https://xn--strae-oqa.example"),
    ("https://xn--mller-kva.example", "https://xn--mller-kva.example"),
    ("https://例え.example", "https://xn--r8jz45g.example"),
    ("https://[2001:DB8:0:0::1]", "https://[2001:db8::1]"),
    ("http://[::1]:80", "http://[::1]"),
    ("https://192.0.2.7:443", "https://192.0.2.7"),
]
OTHER_SITES = [
    ("https://study.example", "http://study.example"),
    ("https://study.example", "https://study.example:8443"),
    ("https://study.example:80", "https://study.example"),
    ("https://study.example", "https://study.example.evil.example"),
    ("https://müller.example", "https://muller.example"),
    ("https://study.example", "https://a@study.example"),
    ("https://study.example", "https://study.example:port"),
    ("https://[2001:db8::1]", "https://[2001:db8::2]"),
    ("https://study.example", "https://[::1"),
]


@pytest.mark.parametrize(("base", "origin"), SAME_SITES)
def test_spellings_of_one_site_are_equal(base: str, origin: str) -> None:
    serving = Serving(base_url=base)
    assert is_same_site({"origin": origin}, base)
    assert is_same_site({"referer": f"{origin}/pilot?id=1"}, base)
    assert host_name(urlsplit(origin).hostname or "") == serving.hosts[0]
    assert serving.address("pilot") == f"{base.rstrip('/')}/pilot"


@pytest.mark.parametrize(("base", "origin"), OTHER_SITES)
def test_different_sites_are_not_equal(base: str, origin: str) -> None:
    assert not is_same_site({"origin": origin}, base)


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("https://study.example", "study.example:443", True),
        ("https://study.example", "Study.Example.", True),
        ("http://study.example", "study.example:80", True),
        ("http://[::1]:8000", "[0:0::1]:8000", True),
        ("https://study.example", "study.example:80", False),
        ("http://localhost:8000", "localhost:8001", False),
        ("http://evil.example", "", False),
    ],
)
def test_without_a_base_url_the_site_is_the_host_of_the_request(origin: str, host: str, same: bool) -> None:
    assert is_same_site({"origin": origin, "host": host}) is same


@pytest.mark.parametrize(
    ("serving", "host", "status"),
    [
        (Serving(base_url="https://müller.example"), "xn--mller-kva.example", 303),
        (Serving(base_url="https://study.example:443"), "study.example", 303),
        (Serving(base_url="https://study.example"), "STUDY.example.:443", 303),
        (Serving(base_url="https://study.example"), "www.study.example", 400),
        (Serving(base_url="https://[2001:DB8::1]"), "[2001:db8::1]:443", 303),
        (Serving(), "[::1]:8000", 303),
        (Serving(), "127.0.0.1:8000", 303),
        (Serving(host="127.0.0.2"), "127.0.0.2:8000", 303),
        (Serving(), "evil.example", 400),
        (Serving(), "", 400),
        (Serving(), "a b", 400),
        (Serving(behind_proxy=True), "anything.example", 303),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_requests_are_answered_under_the_names_of_the_service(
    serving: Serving, host: str, status: int, of: Study
) -> None:
    with TestClient(make_app([of], without_limits(), serving.hosts)) as client:
        assert client.get("/", headers={"host": host}, follow_redirects=False).status_code == status


@pytest.mark.parametrize("token", ["", "0" * 32, None])
def test_forms_without_their_token_are_refused(token: str | None, browser: Browser, of: Study) -> None:
    browser.start()
    form = browser.page.forms["answer"]
    fields = {name: value for name, value in form.fields.items() if name != "form"}
    data = {**fields, "answer": "abc", **({} if token is None else {"form": token})}
    assert browser.post(form.action, data).status_code == 403
    assert browser.post("/pilot/enter", {"agree": "1", **({} if token is None else {"form": token})}).status_code == 403
    assert rows(of, "SELECT state FROM trial") == [{"state": "open"}]


def test_the_information_page_is_valid_for_a_day(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock)
    with browsing(of) as browser:
        browser.get("/pilot")
        clock.wait(hours=25)
        assert browser.post(*browser.filled("enter", agree="1")).status_code == 403
        browser.enter()
    (row,) = rows(of, "SELECT * FROM person")
    assert row["first_seen"] < row["consented"]


def test_get_requests_do_not_act(browser: Browser, of: Study) -> None:
    """A GET request for the address of an action does nothing."""
    browser.start()
    before = rows(of, "SELECT * FROM game")
    for action in ("answer", "next", "withdraw", "add"):
        assert browser.get(f"{browser.address.split('/answer')[0]}/{action}").status_code in (404, 405)
        browser.get(f"/pilot/p/{rows(of, 'SELECT token FROM person')[0]['token']}")
    assert rows(of, "SELECT * FROM game") == before


def test_large_and_strange_requests_are_refused(browser: Browser) -> None:
    browser.start()
    form = browser.page.forms["answer"]
    assert browser.post(form.action, {**form.fields, "answer": "x" * MOST_BODY}).status_code == 413
    many = {f"field{n}": "x" for n in range(100)}
    assert browser.post(form.action, {**form.fields, **many}).status_code == 400
    files = {"answer": ("name.txt", b"x")}
    assert browser.client.post(form.action, data=form.fields, files=files).status_code == 400
    assert browser.client.post(form.action, json={"answer": "x"}).status_code == 403  # it has no token
    assert browser.client.put(form.action).status_code == 405


def test_the_length_of_remarks_is_limited(browser: Browser, of: Study) -> None:
    browser.start()
    browser.play()
    browser.send("feedback", text="é" * 2500)
    assert len(rows(of, "SELECT text FROM feedback")[0]["text"]) == 2000


# -- headers and third parties -----------------------------------------------------------------------------------------


def test_every_reply_has_the_headers(browser: Browser) -> None:
    browser.start()
    for address in (
        browser.address,
        "/pilot",
        "/pilot/declined",
        "/nothing",
        "/static/study.css",
        browser.page.picture,
    ):
        headers = browser.client.get(address).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
        assert "set-cookie" not in headers
        assert set(HEADERS) <= {*headers, "cache-control"}
    assert browser.client.get(browser.address).headers["cache-control"] == "no-store"
    assert (
        browser.client.post("/pilot/enter", data={"x": "y" * MOST_BODY}).headers["x-content-type-options"] == "nosniff"
    )


def test_no_page_loads_from_third_parties(browser: Browser) -> None:
    browser.finish()
    texts = [text for _, text in browser.seen]
    texts += [browser.client.get(f"/static/{name}").text for name in ("study.css", "study.js")]
    for text in texts:
        found = re.findall(r"(?:https?:)?//[\w.-]+", text)
        assert [one for one in found if "w3.org" not in one and not one.startswith("// ")] == []
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|@import|url\(", text)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_requests_of_a_person_are_limited(of: Study) -> None:
    time = [0.0]
    web = without_limits(person=Limit(rate=1, burst=30, clock=lambda: time[0]))
    with browsing(of, web) as browser:
        browser.start()
        link, other = browser.address, Browser(browser.client)
        codes = [browser.get(link).status_code for _ in range(40)]
        assert codes[-1] == 429
        assert browser.reply.headers["retry-after"] == "5"
        assert "wait a few seconds" in browser.text
        other.enter()
        assert other.reply.status_code == 200
        time[0] += 1.5
        assert [browser.get(link).status_code for _ in range(2)] == [200, 429]


def test_newcomers_cannot_flood_a_study(of: Study) -> None:
    with browsing(of, without_limits(newcomers=Limit(rate=0, burst=2))) as browser:
        browser.get("/pilot")
        action, data = browser.filled("enter", agree="1")
        assert [browser.post(action, data).status_code for _ in range(3)] == [200, 200, 429]


def test_limits_drop_the_oldest_buckets() -> None:
    limit = Limit(rate=1, burst=1, clock=lambda: 0.0)
    for number in range(10_050):
        limit.allows(str(number))
    assert len(limit._buckets) == 10_000


def test_bots_are_refused(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock, pages={"least_seconds": 2})
    with browsing(of) as browser:
        browser.get("/pilot")
        action, data = browser.filled("enter", agree="1")
        assert browser.post(action, data).status_code == 400  # sent at once
        assert "very fast" in browser.text
        clock.wait(seconds=3)
        assert browser.post(action, {**data, "website": "x"}).status_code == 400  # a field that is invisible to people
        assert browser.post(action, {**data, "agree": ""}).status_code == 400  # without consent
        assert rows(of, "SELECT * FROM person") == []
        assert browser.post(action, data).status_code == 200


# -- the researcher's page ---------------------------------------------------------------------------------------------

LOCAL: dict[str, Any] = {"base_url": "http://localhost:8000", "client": ("127.0.0.1", 5)}


def basic(password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"me:{password}".encode()).decode()}


def test_the_researchers_page_is_off_by_default(of: Study) -> None:
    with served(of, without_limits(), **LOCAL) as client:
        assert client.get("/pilot/researcher").status_code == 404


def test_without_a_password_only_this_machine_sees_the_researchers_page(of: Study) -> None:
    web = without_limits(researcher=True)
    finish(of, started(of))
    with served(of, web, **LOCAL) as client:
        page = client.get("/pilot/researcher")
        assert "<td>1</td>" in page.text
        assert client.get("/pilot/researcher", headers={"x-forwarded-for": "1.2.3.4"}).status_code == 404
        assert client.get("/pilot/researcher", headers={"host": "study.example"}).status_code == 404
    with served(of, web, base_url="http://localhost:8000", client=("192.168.0.7", 5)) as client:
        assert client.get("/pilot/researcher").status_code == 404


def test_the_researchers_page_needs_its_password(of: Study) -> None:
    with served(of, without_limits(researcher=True, password="open sésame")) as client:
        found = client.get("/pilot/researcher")
        assert (found.status_code, found.headers["www-authenticate"][:5]) == (401, "Basic")
        for wrong in (basic("open"), basic(""), {"authorization": "Basic !"}, {"authorization": "Bearer x"}):
            assert client.get("/pilot/researcher", headers=wrong).status_code == 401
        assert client.get("/pilot/researcher", headers=basic("open sésame")).status_code == 200
        codes = [client.get("/pilot/researcher", headers=basic(str(n))).status_code for n in range(20)]
        assert codes[-1] == 429


def test_the_researchers_page_has_no_data_of_single_persons(of: Study) -> None:
    who = started(of, "WORKER")
    with served(of, without_limits(researcher=True), **LOCAL) as client:
        text = client.get("/pilot/researcher").text
    assert not any(secret in text for secret in (who.id, who.token, "WORKER"))


# -- privacy -----------------------------------------------------------------------------------------------------------


def test_no_address_and_no_browser_name_is_stored(of: Study) -> None:
    agent = "Mozilla/5.0 (X11; Strange) Unlikely/77.7"
    with browsing(of, client=("198.51.100.23", 4711), headers={"origin": HOST, "user-agent": agent}) as browser:
        browser.finish()
    of.database.scrub()
    held = b"".join(path.read_bytes() for path in of.database.path.parent.iterdir())
    for trace in (b"198.51.100.23", b"Unlikely", b"Strange"):  # without the port: a time may contain the same digits
        assert trace not in held


def test_consent_has_the_information_that_the_law_requires(browser: Browser, of: Study) -> None:
    browser.get("/pilot")
    people = of.plan.people
    for text in (people.purpose, people.controller, people.contact, people.retention, "have your data deleted"):
        assert text in browser.text
    browser.send("enter", agree="1")
    (row,) = rows(of, "SELECT consent_version, consented, text FROM person JOIN consent ON version = consent_version")
    assert (row["consent_version"], row["text"]) == (of.plan.consent_version, of.plan.information_text)


def test_error_pages_reveal_no_internals(of: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("secret inside")

    with browsing(of, raise_server_exceptions=False) as browser:
        browser.start()
        monkeypatch.setattr(pages, "_result", broken)
        reply = browser.post(*browser.filled("answer", answer="abc"))
        assert reply.status_code == 500
        assert "secret" not in reply.text
        assert "Nothing that you did before is lost" in reply.text
        assert "default-src 'none'" in reply.headers["content-security-policy"]


# -- money -------------------------------------------------------------------------------------------------------------
