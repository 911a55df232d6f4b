"""Only the user of this machine gets an answer."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from starlette.testclient import TestClient

from shoal.errors import OutputError
from shoal.studio import app as serving
from shoal.studio.app import Access, create_app, hand_over, own_folder
from shoal.studio.session import StudioSessions

from .studio_client import ACCESS, BASE, Tab

PAGES = ("/", "/static/swap.js", "/ping")


@pytest.fixture
def stranger(sessions: StudioSessions) -> TestClient:
    return TestClient(create_app(sessions, ACCESS), base_url=BASE, follow_redirects=False)


@pytest.mark.parametrize("path", PAGES)
def test_without_token_or_cookie_there_is_no_answer(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "Open the newest address that 'shoal studio' printed" in answer.text


def test_the_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(stranger: TestClient) -> None:
    address = ACCESS.new_address()
    answer = stranger.get(address)
    assert answer.status_code == 200
    # its script leads on to an address without the token
    assert "<script src='/static/enter.js'" in answer.text
    assert 'location.replace("/")' in stranger.get("/static/enter.js").text
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"shoal-studio-{ACCESS.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert address.partition("=")[2] not in cookie + answer.text
    assert stranger.get("/").status_code == 200


def test_a_token_works_once(sessions: StudioSessions) -> None:
    renewed: list[str] = []
    access = Access(8000, renewed=renewed.append)
    app = create_app(sessions, access)
    address = access.new_address()
    first, second = (TestClient(app, base_url=BASE) for _ in range(2))
    assert first.get(address).status_code == 200
    assert first.get("/ping").status_code == 200
    # whoever reads the address later gets nothing by it
    assert second.get(address).status_code == 403
    assert second.get("/ping").status_code == 403
    # the terminal shows another one, for a browser that lost its cookie
    assert len(renewed) == 1
    assert renewed[0] != address
    assert second.get(renewed[0]).status_code == 200
    assert second.get("/ping").status_code == 200


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"sec-purpose": "prefetch"}),
        ("GET", {"sec-fetch-dest": "iframe"}),
        ("GET", {"origin": "null"}),
        ("GET", {"host": "evil.example:8000"}),
    ],
)
def test_only_the_person_who_opens_the_page_spends_the_token(
    stranger: TestClient, method: str, headers: dict[str, str]
) -> None:
    address = ACCESS.new_address()
    assert stranger.request(method, address, headers=headers).status_code == 403
    # a browser that comes from a file is at no site
    assert stranger.get(address, headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_the_browser_is_started_with_a_file_that_only_this_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    lines: list[str] = []
    told: list[str] = []
    shown: list[tuple[int, int, str]] = []

    class Timer:
        def __init__(self, seconds: float, call: object, line: tuple[str]) -> None:
            self.line = line

        def start(self) -> None:
            lines.extend(self.line)
            path = Path(unquote(urlparse(self.line[0]).path))
            modes = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
            shown.append((*modes, path.read_text("utf-8")))

    class Stopped:
        def run(self, sockets: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(serving.threading, "Timer", Timer)
    monkeypatch.setattr(serving, "server", lambda sessions, access: Stopped())
    serving.serve(None, 0, browser=True, ready=lambda address, again: told.append(address))
    # what other users see of the browser names neither a token nor the port's address
    assert lines[0].startswith("file:///")
    assert "token" not in lines[0]
    file_mode, folder_mode, text = shown[0]
    assert (file_mode, folder_mode) == (0o600, 0o700)
    token = text.partition("?token=")[2].partition("'")[0]
    assert len(token) > 20
    # the terminal has a token of its own, and the file is gone at the end
    assert token not in told[0]
    assert list((tmp_path / "shoal").iterdir()) == []


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "shoal").mkdir(mode=0o755)
    with pytest.raises(OutputError, match="must be accessible to you alone"):
        own_folder()
    (tmp_path / "shoal").rmdir()
    (tmp_path / "shoal").symlink_to(tmp_path)
    with pytest.raises(OutputError, match="must be accessible to you alone"):
        own_folder()


def test_a_file_that_somebody_laid_there_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept", "utf-8")
    (tmp_path / "studio-8000.html").symlink_to(other)
    path = hand_over(Access(8000), tmp_path)
    assert not path.is_symlink()
    assert other.read_text("utf-8") == "kept"


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
    assert tab.client.post("/session", headers=headers).status_code == 403


@pytest.mark.parametrize("headers", [{}, {"x-shoal": "1"}, {"x-shoal": "guess"}])
def test_what_changes_something_needs_a_key_that_only_the_page_of_this_port_has(
    tab: Tab, headers: dict[str, str]
) -> None:
    # another program on this machine gets the cookie: browsers send it to every port
    plain = TestClient(tab.client.app, base_url=BASE, cookies=dict(tab.client.cookies), headers=headers)
    assert plain.get("/ping").status_code == 200
    assert plain.post("/session").status_code == 403
    assert plain.put(f"/session/{tab.name}/file", content=b"a\n1\n").status_code == 403
    # nor does it learn the key from what it may read
    assert ACCESS.key not in plain.get("/").text + plain.get("/static/enter.js").text
    assert plain.post("/session", headers={"x-shoal": ACCESS.key}).status_code == 200


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
def test_an_unknown_session_is_gone(tab: Tab, name: str) -> None:
    answer = tab.client.post(f"/session/{name}/step/data", json={})
    assert answer.headers.get("x-shoal-gone") == "1" or answer.status_code == 404


def test_there_is_no_websocket(tab: Tab) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), tab.client.websocket_connect("/session"):
        pass
