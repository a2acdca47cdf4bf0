"""What the documentation says, is so."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from tools.docs_pages import PAGES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])}
RUN = re.compile(r"<!-- run -->\n```sh\n(.*?)```", re.S)
RUNNING = {path: RUN.findall(text) for path, text in TEXTS.items() if RUN.search(text)}


@pytest.mark.parametrize("name", PAGES)
def test_pages_made_from_the_code_are_up_to_date(name):
    assert PAGES[name]() == (DOCS / name).read_text(encoding="utf-8"), "run: python -m tools.docs_pages docs"


def anchors(text):
    """Return the anchors of a page, as its headings give them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_model_datum_and_dependency_has_its_licence():
    from ksame.models.catalogue import CATALOGUE

    page = TEXTS[DOCS / "licences.md"]
    for model in CATALOGUE.values():
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{model.name}`"))
        assert model.licence in line
    for datum in (files("ksame") / "data").iterdir():
        assert datum.name.startswith("__") or f"| `{datum.name}" in page, datum
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(r"^dependencies = \[.*?(?=^dev = )", project, re.S | re.M)  # and the extras of users
    for name in re.findall(r'"([\w-]+)[>=]', needed[0]):
        assert re.search(rf"\b{name}\b", page), name


def test_the_promise_names_the_frames_whose_surroundings_count():
    from ksame.scene.render import STEP

    told = (ROOT / "docs" / "scenes.md").read_text(encoding="utf-8")
    assert f"at least one frame of {STEP}," in told
    assert f"in that frame and at most {STEP - 1} before and after it" in told


def test_the_citation_is_of_this_version():
    from ksame.version import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_link_is_dead(page):
    text = re.sub(r"```.*?```", "", TEXTS[page], flags=re.S)
    for target, _, anchor in re.findall(r"\]\(([^)#\s]*)(#([^)\s]*))?\)", text):
        if target.startswith("http"):
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(TEXTS[place]), f"{page}: {target}#{anchor}"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f": {page.relative_to(DOCS)}\n" in navigation, page


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_and_option_exists(page):
    from ksame.app.cli import load

    for line in re.findall(r"^ksame [a-z].*$", "\n".join(re.findall(r"```sh\n(.*?)```", TEXTS[page], re.S)), re.M):
        words = shlex.split(line, comments=True)
        command, rest = load(words[1]), words[2:]
        if inner := getattr(command, "commands", None):
            command, rest = inner[rest[0]], rest[1:]
        known = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
        for word in rest:
            option = word.partition("=")[0]
            assert not option.startswith("-") or option in known, line


@pytest.fixture
def desk(tmp_path):
    """Return a folder with media of people who do not exist, as the pages suppose them."""
    samples = files("ksame.data") / "samples"
    (tmp_path / "film.mp4").write_bytes((samples / "two-people.mp4").read_bytes())
    (tmp_path / "photos").mkdir()
    for sample in samples.iterdir():
        if sample.name.endswith(".jpg"):
            (tmp_path / "photos" / sample.name).write_bytes(sample.read_bytes())
    shutil.copytree(tmp_path / "photos", tmp_path / "demo" / "scenes" / "before")  # as `make demo` leaves them
    shutil.copy(tmp_path / "film.mp4", tmp_path / "demo" / "scenes" / "before" / "two-people.mp4")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda path: path.stem)
def test_what_a_page_shows_runs_as_it_stands(page, desk):
    ksame = shutil.which("ksame", path=str(Path(sys.executable).parent))
    for line in (line for block in RUNNING[page] for line in block.splitlines()):
        words = shlex.split(line, comments=True)
        assert words[0] == "ksame", line
        done = subprocess.run([ksame, *words[1:]], cwd=desk, capture_output=True, text=True)
        assert done.returncode in (0, 3), f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_the_site_is_built_and_asks_no_other_host(tmp_path):
    pytest.importorskip("zensical", reason="the site is built with zensical, of the extra dev")
    for part in ("docs", "src"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("*.npz", "*.onnx", "__pycache__"))
    for part in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / part, tmp_path / part)
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:[^\"]*)", page.read_text("utf-8"))
        assert not loaded, page
