"""The three flows in a real Chromium: what a person does, sees and gets."""

import io
import json
import shutil
import zipfile

import pytest
from PIL import Image

from browser import BROWSER, needs_browser
from ksame.privacy.findings import passed
from ksame.vault import new_identity
from ksame.verification import verify

api = pytest.importorskip("playwright.sync_api")
pytestmark = [needs_browser, pytest.mark.slow]

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
MINUTES = 90_000


@pytest.fixture(scope="module")
def chromium():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, studio):
    """Open tabs of one person; whatever they ask of another host, or complain of, is a failure."""
    address, _ = studio
    home = address.partition("?")[0]
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    foreign, errors = [], []

    def opened(where=""):
        page = context.new_page()
        page.set_default_timeout(MINUTES)
        page.on("filechooser", lambda chooser: None)  # asked for late, it comes after the first key
        page.on("request", lambda r: foreign.append(r.url) if not r.url.startswith((home, "blob:")) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if "Content Security Policy" in m.text else None)
        page.goto(where or address)
        page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    context.close()
    assert foreign == []
    assert errors == []


def got(page, name):
    """Download a file by its name."""
    with page.expect_download() as waiting:
        page.click(f"a[data-name='{name}'] >> nth=0")
    with open(waiting.value.path(), "rb") as stream:  # noqa: PTH123 -- the browser's own name
        return stream.read()


def verified(data, folder):
    """Unpack what is to be published, and check it against the certificate."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return verify(folder)


def ended(page, number):
    page.wait_for_selector(f"#job-{number}:not([data-state=running])")
    return page.get_attribute(f"#job-{number}", "data-state")


def people(page):
    return [each.get_attribute("data-person") for each in page.query_selector_all(".person")]


def corrected(page, *steps):
    """Click through a correction, and wait until it is there."""
    before = page.inner_text("#people")
    for step in steps:
        page.click(step)
    page.wait_for_function("before => document.querySelector('#people').innerText !== before", arg=before)


def test_photographs_and_video(tab, studio, media, tmp_path):
    _, root = studio
    page = tab()
    assert page.url.endswith("/#/") or "token" not in page.url, "the token is gone from the address"
    page.click("#new-scene")
    (tmp_path / "letter.jpg").write_text("no picture")
    page.set_input_files("#input-media", [media / "two-people.mp4", media / "m12.jpg", tmp_path / "letter.jpg"])
    page.wait_for_selector("#upload-errors .note")
    assert "letter.jpg" in page.inner_text("#upload-errors")
    assert page.inner_text("#file-list summary") == "2 files", "the wrong one was not taken"
    page.click("#find")
    page.wait_for_selector(".person")
    assert people(page) == ["P1", "P2", "P3"]
    assert len(page.query_selector_all("#people .bar")) == 2, "a timeline for each track of the film"
    for image in page.query_selector_all(".thumbs img"):
        image.scroll_into_view_if_needed()
        page.wait_for_function("image => image.complete && image.naturalWidth === 176", arg=image)

    # Who is who, and what is a face
    page.click("#correct-P3 summary")
    page.select_option("#merge-P3", "P1")
    corrected(page, "#merge-go-P3")
    assert people(page) == ["P1", "P2"]
    corrected(page, "#undo")
    assert people(page) == ["P1", "P2", "P3"]
    page.click("#correct-P2 >> summary")
    page.fill(".person[data-person=P2] input[type=number]", "40")
    corrected(page, ".person[data-person=P2] button:has-text('Split')")
    assert people(page) == ["P1", "P2", "P3", "P4"]
    page.click("#correct-P4 summary")
    corrected(page, ".person[data-person=P4] button:has-text('Not a face')", "#sure-yes")
    assert people(page) == ["P1", "P2", "P3"]
    corrected(page, "#undo")
    page.select_option("#preview-file", label="two-people.mp4")
    page.wait_for_selector(".view img[alt^='two-people.mp4']")
    page.click("#draw summary")
    page.query_selector(".view").scroll_into_view_if_needed()
    stage = page.query_selector(".view").bounding_box()
    page.mouse.move(stage["x"] + 5, stage["y"] + 5)
    page.mouse.down()
    page.mouse.move(stage["x"] + 60, stage["y"] + 70, steps=4)
    page.mouse.up()
    assert 45 <= int(page.input_value("#draw-width")) <= 65
    page.fill("#draw-last", "9")
    corrected(page, "#draw-go")
    assert people(page)[-1] == "P5"
    assert "10 of them at risk" in page.inner_text(".person[data-person=P5]")

    # What becomes of whom
    page.check("#wish-P1-keep", force=True)
    page.wait_for_selector("text=P1 stays as they are")
    page.fill("#k", "3")
    page.press("#k", "Tab")
    page.wait_for_selector("#promise >> text=3 people share the face of somebody who does not exist")
    page.click("#preview-go")
    page.wait_for_selector("text=These are the pixels")
    page.focus("#cut")
    page.keyboard.press("Home")
    assert page.evaluate("getComputedStyle(document.querySelector('.after')).clipPath") == "inset(0px 0px 0px 0%)"
    first = page.get_attribute(".view img.after", "src")
    page.click("#another")
    page.wait_for_function("src => document.querySelector('.view img.after').src !== src", arg=first)
    page.wait_for_selector("text=These are the pixels")
    assert page.eval_on_selector_all("#another-for option", "all => all.map((each) => each.value)") == [
        "",
        "P2",
        "P3",
        "P4",
    ]
    second = page.get_attribute(".view img.after", "src")
    page.select_option("#another-for", "P2")
    page.click("#another")
    page.wait_for_function("src => document.querySelector('.view img.after').src !== src", arg=second)
    page.wait_for_selector("text=These are the pixels")

    # Run: progress, cancel, resume in another tab, reload in mid-job
    other = tab(page.url)
    page.click("#start")
    page.wait_for_selector("#job-2 progress[value]")
    assert page.is_disabled("#wish-P1-keep"), "nothing changes under a running job"
    page.wait_for_selector(".view img.after", state="hidden")
    page.evaluate("document.querySelector('#cancel-2').dataset.same = 'yes'")
    words = page.inner_text("#job-2 .progress-words")
    page.wait_for_function("words => document.querySelector('#job-2 .progress-words').textContent !== words", arg=words)
    assert page.get_attribute("#cancel-2", "data-same") == "yes", "what is about to be pressed is not drawn anew"
    page.click("#cancel-2", force=True)  # at once: the job may end while the page settles
    assert ended(page, 2) == "interrupted"
    other.bring_to_front()
    other.click("#resume-2")
    other.wait_for_selector("#job-2[data-state=running]")
    other.close()
    page.bring_to_front()
    page.reload()
    page.wait_for_selector("#job-2[data-state=running] progress")
    assert ended(page, 2) == "withheld", "the box that was drawn is masked instead"
    assert "added by hand" in page.inner_text("#job-2")

    # What is written
    done = verified(got(page, "publish.zip"), tmp_path / "release")
    assert passed(done), done
    assert sorted(path.suffix for path in (tmp_path / "release").iterdir()) == [".jpg", ".json", ".mp4"]
    certificate = json.loads(got(page, "certificate.json"))
    assert (certificate["k"], certificate["counts"]["kept"]) == (3, 1)
    assert b"added by hand" in got(page, "out.at-risk.csv")
    page.click("#command-2 summary")
    said = page.inner_text("#command-2 code")
    assert "ksame deidentify media/" in said
    assert "--another P2" in said

    # Nothing is lost, and everything can be deleted
    page.goto(page.url.partition("#")[0] + "#/")
    page.click("a:has-text('Photographs and video')")
    page.wait_for_selector("#job-2")
    page.click("#delete-originals")
    page.click("#sure-yes")
    page.wait_for_selector("text=Add files first.")
    assert not list(root.glob("*/media/*"))
    page.click("#delete-project")
    page.click("#sure-yes")
    page.wait_for_selector("text=None yet.")
    assert not list(root.iterdir())


def test_a_set_of_faces(tab, portraits, tmp_path):
    page = tab()
    page.click("#new-faces")
    page.set_input_files("#input-faces", portraits)
    page.wait_for_selector("text=17 files added")
    page.select_option("#method", "k-same-pixel")
    page.fill("#k", "4")
    page.press("#k", "Tab")
    page.wait_for_selector("#promise >> text=1/4")
    page.fill("#select", "gender")
    page.press("#select", "Tab")
    page.wait_for_selector("#small")
    page.click("#vault summary")
    page.fill("#recipient", "age1nobody")
    page.press("#recipient", "Tab")
    page.wait_for_selector("#alert >> text=public key of age")
    page.fill("#recipient", new_identity().recipient)
    with page.expect_response(lambda answer: answer.request.method == "PATCH" and answer.ok):
        page.press("#recipient", "Tab")
    page.click("#start")
    assert ended(page, 1) == "done", page.inner_text("#job-1")
    assert page.inner_text("#job-1 .secret li:has(a[data-name='vault.age'])"), "it is not among what is published"
    assert got(page, "vault.age").startswith(b"ksame")
    done = verified(got(page, "publish.zip"), tmp_path / "release")
    assert passed(done), done
    certificate = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert certificate["promise"]["bound"] == 0.25
    with Image.open(io.BytesIO(got(page, "contact-sheet.png"))) as sheet:
        assert min(sheet.size) > 50
    page.click("#audit-1")
    assert ended(page, 2) in ("done", "withheld"), page.inner_text("#job-2")
    assert b"<html" in got(page, "report.html")


def test_two_folders_are_audited(tab, portraits, tmp_path):
    for side, size in (("before", (50, 67)), ("after", (5, 7))):
        (tmp_path / side).mkdir()
        for path in portraits.glob("*.png"):
            Image.open(path).resize(size).resize((50, 67)).save(tmp_path / side / path.name)
    page = tab()
    page.click("#new-audit")
    page.set_input_files("#input-originals", tmp_path / "before")
    page.wait_for_selector("text=16 files added")
    page.set_input_files("#input-released", tmp_path / "after")
    page.wait_for_selector("#file-list summary:has-text('32 files')")
    with page.expect_response(lambda answer: answer.request.method == "PATCH" and answer.ok):
        page.click("#attacker-sface")
    page.click("#start")
    assert ended(page, 1) in ("done", "withheld"), page.inner_text("#job-1")
    assert b"<html" in got(page, "report.html")
    assert json.loads(got(page, "audit.json"))["counts"]["pairs"] == 16
    with page.expect_popup() as popup:
        page.click("#job-1 a:has-text('Open')")
    report = popup.value
    report.wait_for_load_state()
    assert report.query_selector_all("h1, h2"), "the report is shown in a tab of its own"
    report.close()


def test_a_vanished_disk_is_told(tab, studio, media):
    _, root = studio
    page = tab()
    page.click("#new-scene")
    page.set_input_files("#input-media", media / "m12.jpg")
    page.wait_for_selector("text=1 file added")
    (project,) = root.iterdir()
    shutil.move(project, root.parent / "unplugged")
    page.click("#find")
    page.wait_for_selector("#alert >> text=no such project")
    page.goto(page.url.partition("#")[0] + "#/")
    page.wait_for_selector("text=None yet.")
    shutil.move(root.parent / "unplugged", project)
    page.reload()
    page.click("a:has-text('Photographs and video')")
    page.wait_for_selector("#file-list >> text=m12.jpg")
    (project / "jobs").write_text("a file where the folder should be")
    page.click("#find")
    page.wait_for_selector("#alert >> text=cannot be written")


def test_everything_works_with_the_keyboard(tab, media):
    """No mouse: begin, choose a file, look, keep somebody, release."""
    page = tab()
    page.keyboard.press("Tab")
    for _ in range(8):
        if page.evaluate("document.activeElement.id") == "new-scene":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#choose-media")
    page.focus(".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main", "to the content of the same page"
    page.focus("#choose-media")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(media / "m12.jpg")
    page.wait_for_selector("#find:not([disabled])")
    page.focus("#find")
    page.keyboard.press("Enter")
    page.wait_for_selector(".person")
    page.focus("#wish-P1-replace")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=P1 stays as they are")
    assert page.evaluate("document.activeElement.id") == "wish-P1-keep", "the focus stays where it was"
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=P1 stays as they are", state="detached")
    page.focus("#start")
    page.keyboard.press("Space")
    assert ended(page, 2) == "done"
