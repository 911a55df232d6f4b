"""Nobody but the person at this machine gets an answer."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from shoal.studio.app import create_app
from shoal.studio.desks import Desks

from .studio_client import ACCESS, BASE, Tab

PAGES = ("/", "/static/swap.js", "/ping")


@pytest.fixture
def stranger(desks: Desks) -> TestClient:
    return TestClient(create_app(desks, ACCESS), base_url=BASE, follow_redirects=False)


@pytest.mark.parametrize("path", PAGES)
def test_without_token_or_cookie_there_is_no_answer(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "Open the address that 'shoal studio' printed" in answer.text


def test_the_token_is_swapped_for_a_cookie_that_scripts_cannot_read(stranger: TestClient) -> None:
    answer = stranger.get(ACCESS.address)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"shoal-studio-{ACCESS.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ACCESS.token not in cookie
    assert stranger.get("/").status_code == 200


def test_a_wrong_token_opens_nothing(stranger: TestClient) -> None:
    assert stranger.get("/?token=guess").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1:9999"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_foreign_host_origin_or_site_is_refused_with_the_cookie_too(
    tab: Tab, headers: dict[str, str]
) -> None:
    assert tab.client.get("/ping").status_code == 200
    assert tab.client.get("/ping", headers=headers).status_code == 403
    assert tab.client.post("/desk", headers=headers).status_code == 403


def test_what_changes_something_needs_a_header_that_forms_cannot_send(tab: Tab) -> None:
    plain = TestClient(tab.client.app, base_url=BASE, cookies=dict(tab.client.cookies))
    assert plain.get("/ping").status_code == 200
    assert plain.post("/desk").status_code == 403


def test_answers_carry_a_strict_policy_and_are_not_kept(tab: Tab) -> None:
    headers = tab.client.get("/").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["..%2fguard.py", "../guard.py", "%2e%2e/app.py", "..\\app.py", "none.js"])
def test_only_the_files_of_the_page_are_served(tab: Tab, path: str) -> None:
    answer = tab.client.get(f"/static/{path}")
    assert answer.status_code == 404
    assert "import" not in answer.text


@pytest.mark.parametrize("name", ["../../etc", "nobody-here", "a", "x" * 100])
def test_an_unknown_desk_is_gone(tab: Tab, name: str) -> None:
    answer = tab.client.post(f"/desk/{name}/step/data", json={})
    assert answer.headers.get("x-shoal-gone") == "1" or answer.status_code == 404


def test_there_is_no_websocket(tab: Tab) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), tab.client.websocket_connect("/desk"):
        pass
