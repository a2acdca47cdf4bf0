"""Who is let in, what is refused, and that nothing of it stays on the disk."""

import struct
import zlib

import pytest
from PIL import Image

from ksame.errors import ExitCode
from ksame.studio.api import create_app
from ksame.studio.security import Access
from studio.conftest import HOST, Api, TestClient, tree


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(server, access):
    answer = server.get("/", params={"token": access.token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert access.token.lower() not in cookie, "the cookie is another secret"
    page = server.get("/")
    assert page.status_code == 200
    assert "ksame studio" in page.text


def test_without_token_or_cookie_nothing_is_answered(server, access):
    paths = [*server.app.openapi()["paths"], "/", "/static/app.js", "/api/openapi.json", "/?token=wrong", "/docs"]
    for path in paths:
        for method in ("GET", "POST", "DELETE", "PATCH", "PUT", "HEAD"):
            answer = server.request(method, path.replace("{project}", "0" * 16))
            assert answer.status_code == 401, (method, path)
    wrong = server.get("/api/projects", headers={"authorization": f"Bearer {access.token}x"})
    assert wrong.status_code == 401
    assert server.get("/api/projects", headers={"cookie": f"{access.cookie}=guess"}).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", ""])
def test_another_host_is_refused_also_with_the_token(api, host):
    """A name that was bound to 127.0.0.1 a moment ago (DNS rebinding) is another host."""
    assert api.http.get("/api/projects", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:8001"])
def test_another_site_is_refused_also_with_the_cookie(server, access, origin):
    server.get("/", params={"token": access.token})
    body = {"name": "theirs", "kind": "scene"}
    assert server.post("/api/projects", json=body, headers={"origin": origin}).status_code == 403
    assert server.get("/api/projects", headers={"origin": origin}).status_code == 403
    assert server.post("/api/projects", json=body).status_code == 403, "a cookie alone does not change anything"
    assert server.post("/api/projects", json=body, headers={"origin": f"http://{HOST}"}).status_code == 201


def test_every_answer_forbids_other_hosts_and_inline_script(api, server):
    for path in ("/", "/static/app.js", "/api/projects", "/api/projects/none", "/nothing"):
        headers = api.http.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
    page = api.http.get("/").text
    assert "<script>" not in page
    assert " style=" not in page
    assert "//" not in page.replace("<!--", ""), "nothing is loaded from elsewhere"


@pytest.mark.parametrize(
    "name",
    ["../../../outside.jpg", "/etc/outside.jpg", "..\\..\\outside.jpg", "a/../../outside.jpg", "C:\\outside.jpg",
     "out\x00side.jpg", "~/outside.jpg", "…/\u202egpj.jpg"],
)  # fmt: skip
def test_names_of_uploads_are_never_used_on_the_disk(api, root, tmp_path, media, name):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg", name=name)
    assert tree(root) == {f"{trial.project}/project.json", f"{trial.project}/media/000001.jpg"}
    assert not [path for path in tree(tmp_path) if "outside" in path]
    shown = trial("GET", "")["project"]["files"][0]["name"]
    assert shown.isprintable()


@pytest.mark.parametrize("project", ["..", "%2e%2e", "..%2f..", "0" * 15, "g" * 16, "%00" * 16, "A" * 16])
def test_names_of_projects_are_numbers(api, project):
    assert api.http.get(f"/api/projects/{project}").status_code in (404, 422)
    assert api.http.delete(f"/api/projects/{project}").status_code in (404, 405, 422)


def bomb(side: int) -> bytes:
    """A PNG of one colour: small on disk, huge in memory."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    press = zlib.compressobj(9)
    row = b"\0" * (1 + side // 8)
    rows = b"".join(press.compress(row) for _ in range(side)) + press.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("kind", "role"), [("scene", "media"), ("faces", "faces"), ("audit", "released")])
def test_a_bomb_is_refused_and_nothing_stays(api, root, tmp_path, kind, role):
    trial = api.begin(kind)
    path = tmp_path / "bomb.png"
    path.write_bytes(bomb(30_000))
    told = trial.add(path, role, expect=422)["detail"]
    assert "bomb.png" in told
    assert "too large" in told
    assert tree(root) == {f"{trial.project}/project.json"}


@pytest.mark.parametrize(
    ("name", "data"), [("note.txt", b"hello"), ("note.jpg", b"hello"), ("empty.mp4", b""), ("film.mp4", b"\0" * 999)]
)
def test_a_wrong_upload_is_refused_by_name_and_nothing_stays(api, root, tmp_path, name, data):
    trial = api.begin("scene")
    (tmp_path / name).write_bytes(data)
    told = trial.add(tmp_path / name, expect=422)["detail"]
    assert name in told
    assert str(root) not in told
    assert tree(root) == {f"{trial.project}/project.json"}


@pytest.mark.parametrize(("kind", "role"), [("faces", "faces"), ("audit", "originals"), ("audit", "released")])
@pytest.mark.parametrize("name", ["face.bmp", "face.heic", "film.mp4"])
def test_what_a_command_would_pass_over_in_a_folder_is_refused(api, root, tmp_path, kind, role, name):
    trial = api.begin(kind)
    Image.new("RGB", (40, 50)).save(tmp_path / name, "BMP")
    told = trial.add(tmp_path / name, role, expect=422)["detail"]
    assert "not a kind of file that can be used here" in told
    assert tree(root) == {f"{trial.project}/project.json"}


def test_five_gigabytes_are_refused_before_they_are_sent(api, root):
    trial = api.begin("scene")
    where = trial.path("/files?name=film.mp4&role=media")
    answer = api.http.post(where, headers={"content-length": "5000000000"}, content=b"")
    assert answer.status_code == 413
    assert "4,000,000,000" in answer.json()["detail"]
    assert tree(root) == {f"{trial.project}/project.json"}


def test_a_stream_over_the_limit_is_cut_off_and_nothing_stays(root):
    small = Access((HOST,), 100_000)
    with TestClient(create_app(root, small), base_url=f"http://{HOST}") as http:
        http.headers["authorization"] = f"Bearer {small.token}"
        trial = Api(http).begin("scene")
        where = trial.path("/files?name=film.mp4&role=media")
        answer = http.post(where, content=(b"\0" * 10_000 for _ in range(100)))
        assert answer.status_code == 413
        assert tree(root) == {f"{trial.project}/project.json"}
        long = http.post("/api/projects", content=(b" " * 100_000 for _ in range(30)))
        assert long.status_code == 413, "what uploads nothing is limited too"


def test_originals_are_deleted_when_asked_and_with_the_project(api, root, media):
    trial = api.begin("scene")
    for name in ("m12.jpg", "f99.jpg"):
        trial.add(media / name)
    trial("DELETE", "/files/1", 204, params={"role": "media"})
    assert tree(root) == {f"{trial.project}/project.json", f"{trial.project}/media/000002.jpg"}
    trial("DELETE", "/files", 204)
    assert tree(root) == {f"{trial.project}/project.json"}
    trial.add(media / "m12.jpg")
    trial("DELETE", "", 204)
    assert list(root.iterdir()) == []


def test_what_is_kept_is_readable_by_its_owner_only(api, root, media):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    for path in root.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
    assert (root / trial.project).stat().st_mode & 0o077 == 0


def test_a_vanished_or_broken_folder_is_told_and_no_server_error(api, root, media):
    trial = api.begin("scene")
    trial.add(media / "m12.jpg")
    folder = root / trial.project
    (folder / "media").rename(folder / "elsewhere")
    (folder / "media").write_text("a file where a folder was")
    assert "cannot be" in trial.add(media / "f99.jpg", expect=409)["detail"]
    folder.rename(root / "moved")
    assert "no such project" in trial("GET", "", 404)["detail"]
    assert trial.add(media / "f99.jpg", expect=404)
    assert trial.start("find", 404)
    (root / "moved").rename(folder)
    root.rename(root.with_name("unplugged"))
    assert "disk" in api.http.get("/api/projects").json()["detail"]
    assert api.http.post("/api/projects", json={"name": "x", "kind": "scene"}).status_code in (201, 409)


def test_the_studio_says_what_to_install(monkeypatch, tmp_path):
    import builtins

    from typer.testing import CliRunner

    from ksame.app.cli import app

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "uvicorn":
            raise ImportError(name="uvicorn")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = CliRunner().invoke(app, ["studio", str(tmp_path / "p")])
    assert result.exit_code == ExitCode.USAGE
    assert "pip install 'ksame[studio]'" in result.stderr
