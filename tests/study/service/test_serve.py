"""Where the service listens, and who may see the researcher's page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import InvalidSettingError
from icy.study.service.serve import Serving, app_of
from tests.study.service.helpers import study


def test_by_default_only_this_machine_is_served() -> None:
    found = Serving()
    assert (found.host, found.is_local, found.researcher, found.behind_proxy) == ("127.0.0.1", True, False, False)
    assert "*" not in found.hosts
    assert found.address("pilot") == "http://127.0.0.1:8000/pilot"


def test_addresses_are_those_that_people_use() -> None:
    found = Serving(base_url="https://study.example/", root_path="/spy", behind_proxy=True)
    assert found.address("pilot") == "https://study.example/spy/pilot"
    assert found.hosts[0] == "study.example"
    assert Serving(host="::1").address("pilot") == "http://[::1]:8000/pilot"


@pytest.mark.parametrize(
    "given", [{"host": "0.0.0.0"}, {"behind_proxy": True}, {"base_url": "https://study.example"}], ids=str
)
def test_whoever_others_can_reach_needs_a_password(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match="ICY_STUDY_PASSWORD"):
        Serving(researcher=True, **given)
    assert Serving(researcher=True, password="x", **given).researcher


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"base_url": "study.example"}, "is like https://study.example"),
        ({"base_url": "https://study.example/spy"}, "what follows the name is --root-path"),
        ({"root_path": "spy"}, "begins with a slash"),
        ({"port": 0}, "The port must be"),
        ({"port": 70_000}, "The port must be at most 65535"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        Serving(**given)


def test_a_missing_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("icy.study.service.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(InvalidSettingError, match=r'pip install "icy-toolkit\[study\]"'):
        app_of([study(tmp_path)], Serving())
