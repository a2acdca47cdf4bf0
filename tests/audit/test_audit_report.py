"""The page: whole, harmless, honest about what it holds."""

import re
from html.parser import HTMLParser

import pytest

from ksame.audit import AuditConfig, AuditResult, audit, render_report, write_report
from ksame.audit.charts import cmc_chart
from ksame.audit.report import require_place
from ksame.errors import OutputError, UsageError

VOID = {"meta", "link", "img", "br"}


class Balanced(HTMLParser):
    """Notes what is opened and not closed, and every address the page would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.addresses = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def page(blur_audit) -> str:
    return render_report(blur_audit)


def test_verdict_first_then_attacks_faces_use(page):
    order = [
        "must stay with the publisher",
        "Of 14 people",
        "<h2>Attacks",
        "<h2>Most exposed",
        "<h2>Utility",
        "<h2>How",
    ]
    places = [page.index(words) for words in order]
    assert places == sorted(places)


def test_the_page_is_well_formed_and_fetches_nothing(page):
    parser = Balanced()
    parser.feed(page)
    assert not parser.wrong
    assert not parser.open
    assert parser.addresses
    assert all(address.startswith("data:") for address in parser.addresses)
    assert not re.search(r"https?://|@import|url\(|<script|javascript:", page)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page


def test_names_from_files_are_escaped(blur_audit):
    nasty = blur_audit.exposed[0].model_copy(update={"subject": "<script>alert(1)</script>", "released": 'a"b.png'})
    page = render_report(blur_audit.model_copy(update={"exposed": (nasty,)}))
    assert "<script" not in page
    attack = blur_audit.attacks[0].model_copy(update={"recogniser": "<b>&"})
    assert "&lt;b&gt;&amp;" in cmc_chart([attack], None)


def test_a_report_from_numbers_alone_has_no_pictures(blur_audit):
    page = render_report(AuditResult.from_json(blur_audit.to_json()))
    assert "data:image" not in page
    assert "Of 14 people" in page


def test_promise_and_operating_characteristic_show_where_there_are_any(k_audit, page, album, blurred, blur_audit):
    kept = render_report(k_audit)
    assert "Promise holds" in kept or "Too few faces to say" in kept
    assert "promised: at most" in kept
    assert "Nothing promised" in page
    assert "Privacy against utility" not in page
    both = audit(album, blurred, AuditConfig(attackers=["eigenfaces"], scenarios=["naive"]), compare=[blur_audit])
    assert "Privacy against utility" in render_report(both)


def test_report_and_numbers_are_written_for_the_owner_only(blur_audit, tmp_path):
    write_report(blur_audit, tmp_path / "new" / "report.html")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["audit.json", "report.html"]
    for path in (tmp_path / "new").iterdir():
        assert path.stat().st_mode & 0o077 == 0
    assert AuditResult.from_json((tmp_path / "new" / "audit.json").read_bytes()).verdict == blur_audit.verdict


def test_a_place_that_cannot_be_written(blur_audit, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        write_report(blur_audit, tmp_path / "file" / "report.html")


@pytest.mark.parametrize("name", ["released/report.html", "released/deep/report.html", "report.pdf", "old.html"])
def test_places_for_a_report(tmp_path, name):
    (tmp_path / "released").mkdir()
    (tmp_path / "old.html").write_text("an earlier report")
    with pytest.raises(UsageError, match="must not lie among|HTML file|--force"):
        require_place(tmp_path / name, tmp_path / "released", force=False)
    require_place(tmp_path / "old.html", tmp_path / "released", force=True)
