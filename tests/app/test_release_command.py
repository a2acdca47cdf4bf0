import json
import os
import shutil
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from PIL import Image

from ksame import METHODS, Linkage
from ksame.faces.reading import decode_png
from ksame.files import EPOCH
from ksame.privacy.certificate import Certificate

# Five bytes and more: shorter words turn up in compressed pictures by chance.
SECRETS = [b"photo", b"-Zk9-", b"citizen", b"n-Qx7", b"femme", b"homme", b"e-Wq3", b"n-Wq4", b"m-Wq5", b"d-Wq6"]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def findings(result) -> dict[str, bool | None]:
    return {f["name"]: f["passed"] for f in json.loads(result.stdout)["findings"]}


def nothing_left(folder: Path, *kept: str) -> bool:
    return sorted(p.name for p in folder.iterdir() if p.name != "state") == sorted(kept)


def test_the_folder_holds_faces_certificate_and_sheet_and_nothing_else(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    faces = {f"faces/{i:06d}.png" for i in range(1, 13)}
    assert set(contents(tmp_path / "out")) == faces | {"certificate.json", "contact-sheet.png"}
    assert nothing_left(tmp_path, "out")


def test_a_signed_release_has_a_signature_more(published):
    assert {p.name for p in published.folder.iterdir()} == {
        "faces",
        "certificate.json",
        "certificate.sig",
        "contact-sheet.png",
    }


def test_every_released_face_has_k_copies_to_the_byte(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 4, code=0)
    files = [data for name, data in contents(tmp_path / "out").items() if name.startswith("faces/")]
    assert len(files) == 12
    assert min(files.count(data) for data in files) >= 4
    assert decode_png(files[0]).shape == (32, 24, 3)


def test_all_times_are_the_same_constant(published, run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    assert {p.stat().st_mtime for p in [tmp_path / "out", *(tmp_path / "out").rglob("*")]} == {EPOCH}


def test_no_file_name_subject_or_label_is_anywhere_in_the_release(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 2, "--select", "gender", code=0)
    for name, data in contents(tmp_path / "out").items():
        assert not [secret for secret in SECRETS if secret in data or secret.decode() in name], name


def test_metadata_of_the_originals_does_not_reach_the_release(run, people, tmp_path):
    shutil.copytree(people, tmp_path / "in")
    exif = Image.Exif()
    exif[0x010E] = "Wq7 Long Road"
    for path in (tmp_path / "in").glob("*.png"):
        Image.open(path).save(path, exif=exif, dpi=(72, 72))
    run("release", tmp_path / "in", "-o", tmp_path / "out", "-k", 3, code=0)
    assert not [name for name, data in contents(tmp_path / "out").items() if b"Wq7 Long" in data or b"eXIf" in data]


def test_the_certificate_meets_the_shipped_schema(published):
    jsonschema.validate(published.certificate, Certificate.shipped_schema())


def test_the_shipped_schema_is_the_models_own():
    assert Certificate.shipped_schema() == Certificate.model_json_schema(by_alias=True)


def test_the_schema_refuses_what_does_not_belong(published):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**published.certificate, "subjects": ["ann"]}, Certificate.shipped_schema())


@pytest.mark.parametrize(
    "name", [name for name in METHODS if "pixel" in METHODS[name].codings or name == "k-same-eigen"]
)
def test_every_recipe_releases_certifies_tells_nothing_and_verifies(run, people, tmp_path, name):
    levels = {"eigen-reduce": ("--level", 4), "noise": ("--level", 200), "noise-bw": ("--level", 200)}
    words = levels.get(name, ("-k", 3) if "k" in METHODS[name].parameters else ())
    link = tmp_path / "linkage.json"
    result = run("release", people, "-o", tmp_path / "out", "-m", name, *words, "--link-table", link)
    assert result.exit_code in (0, 3), result.stderr
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_bytes())
    jsonschema.validate(certificate, Certificate.shipped_schema())
    assert certificate["method"]["name"] == name
    for data in contents(tmp_path / "out").values():
        assert not [secret for secret in SECRETS if secret in data]
    run("verify", tmp_path / "out", "--linkage", link, "--originals", people, code=0)


@pytest.mark.parametrize(
    "words",
    [
        ("-k", 3, "--grouping", "mdav+refine"),
        ("-k", 3, "--distance", "eigen"),
        ("-k", 3, "--distance", "eigen", "--components", 1),
        ("-m", "k-same-eigen", "-k", 3, "--components", 4),
        ("-m", "k-same-eigen", "-k", 3, "--components", 0.5),
        ("-m", "k-same-furthest", "-k", 3, "--coding", "pixel", "--condition", "paper"),
        ("-m", "epsilon-map", "--over", "blur", "--epsilon", 0.5),
        ("-m", "epsilon-k-map", "-k", 3, "--lambda", 0.5, "--models", "images"),
        ("-m", "epsilon-k-map", "-k", 3, "--epsilon", 1e-5),
        ("-m", "pixelate", "--level", 8),
        ("-m", "blackout", "--level", 0.5),
        ("-k", 3, "--select", "gender"),
        ("-k", 3, "--select", "kind", "--small-classes", "merge"),
        ("-k", 3, "--select", "kind", "--small-classes", "drop"),
        ("-m", "average", "--select", "gender"),
    ],
    ids=lambda words: " ".join(str(w) for w in words),
)
def test_what_was_released_with_options_verifies_from_its_certificate(run, people, tmp_path, words):
    link = tmp_path / "linkage.json"
    result = run("release", people, "-o", tmp_path / "out", *words, "--link-table", link, "--seed", 1)
    assert result.exit_code in (0, 3), result.stderr
    checked = run("verify", tmp_path / "out", "--linkage", link, "--originals", people, "--json", code=0)
    assert findings(checked)["recomputed"] is True
    assert findings(checked)["certificate, recomputed"] is True


@pytest.mark.parametrize("method", ["epsilon-map", "epsilon-k-map"])
def test_a_reference_of_other_people_is_needed_again_to_verify(run, people, strangers, tmp_path, method):
    link = tmp_path / "linkage.json"
    words = ("-m", method, "--reference", strangers, "--link-table", link)
    assert run("release", people, "-o", tmp_path / "out", *words).exit_code in (0, 3)
    check = ("verify", tmp_path / "out", "--linkage", link, "--originals", people, "--json")
    found = {f["name"]: f["passed"] for f in json.loads(run(*check, code=0).stdout)["findings"]}
    assert found["recomputed"] is None
    found = {
        f["name"]: f["passed"] for f in json.loads(run(*check, "--reference", strangers, code=0).stdout)["findings"]
    }
    assert found["recomputed"] is True


def test_faces_are_registered_to_a_size(run, people, tmp_path):
    link = tmp_path / "linkage.json"
    run("release", people, "-o", tmp_path / "out", "-k", 3, "--size", "20x28", "--link-table", link, code=0)
    assert decode_png((tmp_path / "out" / "faces" / "000001.png").read_bytes()).shape == (28, 20, 3)
    run("verify", tmp_path / "out", "--linkage", link, "--originals", people, "--size", "20x28", code=0)


def test_several_images_of_a_person_give_one_face(run, pairs, tmp_path):
    result = run("release", pairs, "-o", tmp_path / "out", "-k", 3, "--json", code=0)
    counts = json.loads(result.stdout)["certificate"]["counts"]
    assert (counts["originals"], counts["subjects"], counts["released"], counts["merged"]) == (12, 6, 6, 6)


def test_a_label_that_varies_within_people_is_kept(run, pairs, tmp_path):
    result = run("release", pairs, "-o", tmp_path / "out", "-k", 3, "--select", "mood", "--json", code=0)
    assert json.loads(result.stdout)["certificate"]["counts"]["released"] == 12


def test_people_who_do_not_exist_need_no_folder(run, tmp_path):
    run("release", "synthetic:6", "-o", tmp_path / "out", "-k", 3, code=0)
    assert decode_png((tmp_path / "out" / "faces" / "000001.png").read_bytes()).shape == (224, 176, 3)


def test_json_goes_to_stdout_and_names_nobody(run, people, tmp_path):
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, "--json", code=0)
    told = json.loads(result.stdout)
    assert (told["schema"], told["version"]) == ("ksame/release", 1)
    assert (told["withheld"], told["unreadable"]) == ([], [])
    assert told["certificate"]["promise"]["bound"] <= 1 / 3
    assert not [secret for secret in SECRETS if secret.decode() in result.stdout]


def test_json_names_what_was_withheld(run, people, tmp_path):
    words = ("-k", 3, "--select", "kind", "--small-classes", "drop", "--json")
    told = json.loads(run("release", people, "-o", tmp_path / "out", *words, code=3).stdout)
    assert [w["source"] for w in told["withheld"]] == ["photo-Zk9-0000.png", "photo-Zk9-0001.png"]
    assert "fewer than 3 people" in told["withheld"][0]["reason"]
    assert told["certificate"]["counts"]["withheld"] == 2
    assert "rare" not in json.dumps(told["certificate"])


def test_talk_goes_to_stderr(run, people, tmp_path):
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    assert result.stdout == ""
    assert "12 faces of 12 people written to" in result.stderr
    assert "Not promised" in result.stderr


def test_a_seed_repeats_every_byte_whatever_was_released_before(run, people, tmp_path):
    folders = []
    for i, state in enumerate(("first", "second", "second")):
        folder = tmp_path / f"out-{i}"
        words = ("release", people, "-o", folder, "-k", 3, "--seed", 11)
        result = run(*words, code=0, env={"KSAME_STATE": str(tmp_path / state)})
        assert "earlier release" not in result.stderr
        folders.append(contents(folder))
    assert folders[0] == folders[1] == folders[2]


def test_without_a_seed_the_secret_is_fresh(run, people, tmp_path):
    seeds = set()
    for i in range(2):
        run("release", people, "-o", tmp_path / f"{i}", "-k", 3, "--link-table", tmp_path / f"{i}.json", code=0)
        seeds.add(Linkage.read(tmp_path / f"{i}.json").seed)
    assert len(seeds) == 2


def test_the_order_of_the_originals_does_not_show(run, people, tmp_path):
    """With a grouping that draws no lots, files listed in another order give the same release."""
    shutil.copytree(people, tmp_path / "in")
    head, *rows = (people / "labels.csv").read_text().splitlines()
    (tmp_path / "in" / "labels.csv").write_text("\n".join([head, *rows[::-1]]) + "\n")
    for name, folder in (("a", people), ("b", tmp_path / "in")):
        run("release", folder, "-o", tmp_path / name, "-m", "average", code=0)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_the_link_table_is_for_its_owner_only(run, people, tmp_path):
    link = tmp_path / "linkage.json"
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, "--link-table", link, code=0)
    assert link.stat().st_mode & 0o777 == 0o600
    assert "privacy warning" in result.stderr
    table = Linkage.read(link)
    assert table.release_digest == json.loads((tmp_path / "out" / "certificate.json").read_bytes())["digest"]
    assert sorted(source for face in table.faces for source in face.sources) == sorted(
        p.name for p in people.glob("*.png")
    )


def test_a_link_table_is_never_overwritten(run, people, tmp_path):
    link = tmp_path / "linkage.json"
    link.write_text("precious")
    words = ("release", people, "-o", tmp_path / "out", "-k", 3, "--link-table", link, "--force")
    assert "never overwritten" in run(*words, code=2).stderr
    assert link.read_text() == "precious"
    assert nothing_left(tmp_path, "linkage.json")


def test_a_link_table_that_cannot_be_written_leaves_no_release_either(run, people, tmp_path):
    words = ("release", people, "-o", tmp_path / "out", "-k", 3, "--link-table", tmp_path / "nowhere" / "linkage.json")
    assert "linkage.json: cannot be written" in run(*words, code=1).stderr
    assert nothing_left(tmp_path)


def test_force_replaces_an_earlier_release(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    before = contents(tmp_path / "out")
    run("release", people, "-o", tmp_path / "out", "-k", 6, "--force", code=0)
    assert contents(tmp_path / "out") != before
    run("verify", tmp_path / "out", code=0)
    assert nothing_left(tmp_path, "out")


def test_force_does_not_replace_anything_else(run, people, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    run("release", people, "-o", tmp_path / "out", "-k", 3, "--force", code=2)
    assert contents(tmp_path / "out") == {"thesis.tex": b"precious"}


def test_a_failed_replacement_leaves_the_earlier_release(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    before = contents(tmp_path / "out")
    run("release", people, "-o", tmp_path / "out", "-k", 13, "--force", code=2)
    assert contents(tmp_path / "out") == before


def test_the_earlier_release_comes_back_when_the_new_one_cannot_take_its_place(run, people, tmp_path, monkeypatch):
    out, rename = tmp_path / "out", Path.rename
    run("release", people, "-o", out, "-k", 3, code=0)
    before = contents(out)

    def refuse(path, target):
        if Path(target) == out and not path.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    run("release", people, "-o", out, "-k", 6, "--force", code=1)
    assert contents(out) == before
    assert nothing_left(tmp_path, "out")


def test_a_second_release_of_the_same_people_warns_and_says_so_in_the_certificate(run, people, tmp_path):
    first = run("release", people, "-o", tmp_path / "1", "-k", 3, "--link-table", tmp_path / "1.json", code=0)
    assert "earlier release" not in first.stderr
    second = run("release", people, "-o", tmp_path / "2", "-k", 4, code=0)
    assert "12 of 12 pictures are part of an earlier release" in second.stderr
    (note,) = json.loads((tmp_path / "2" / "certificate.json").read_bytes())["warnings"]
    assert "--after" in note


def some_of(people, folder, rows):
    """Copy the people whose rows of labels.csv are asked for."""
    shutil.copytree(people, folder)
    lines = (people / "labels.csv").read_text().splitlines()
    (folder / "labels.csv").write_text("\n".join([lines[0], *(lines[1 + i] for i in rows)]) + "\n")
    return folder


def test_a_series_over_three_years_verifies_at_every_step(run, people, tmp_path):
    years = [
        some_of(people, tmp_path / "in1", range(7)),
        some_of(people, tmp_path / "in2", [0, 1, 2, 5, 7, 8, 9]),
        some_of(people, tmp_path / "in3", [1, 3, 10, 11, 4]),
    ]
    for i, folder in enumerate(years, start=1):
        out, link = tmp_path / f"out{i}", tmp_path / f"{i}.json"
        after = ("--after", tmp_path / f"{i - 1}.json") if i > 1 else ()
        result = run("release", folder, "-o", out, "-k", 3, "--link-table", link, *after, code=3 if i == 3 else 0)
        assert "earlier release made on this machine" not in result.stderr
        found = run("verify", out, "--linkage", link, "--originals", folder, "--json", code=0)
        assert findings(found)["recomputed"] is True
        assert findings(found)["certificate, recomputed"] is True
    assert "withheld photo-Zk9-0010.png: newcomers wait: 2 are fewer than the 3 people" in result.stderr
    shown = [Counter(p.read_bytes() for p in (tmp_path / f"out{i}" / "faces").iterdir()) for i in (1, 2, 3)]
    assert shown[0] <= shown[1] <= shown[2], "every face again, in as many copies"
    assert Linkage.read(tmp_path / "3.json").history[-1].number == 3


def test_a_second_branch_of_a_series_warns(run, people, tmp_path):
    early = some_of(people, tmp_path / "in", range(6))
    run("release", early, "-o", tmp_path / "1", "-k", 3, "--link-table", tmp_path / "1.json", code=0)
    words = ("release", people, "--after", tmp_path / "1.json")
    assert "earlier release" not in run(*words, "-o", tmp_path / "2a", "-k", 3, code=0).stderr
    assert (
        "6 of 12 pictures are part of an earlier release" in run(*words, "-o", tmp_path / "2b", "-k", 6, code=0).stderr
    )


def test_one_photograph_under_two_names_is_refused_or_one_person(run, people, tmp_path):
    double, link = some_of(people, tmp_path / "in", range(12)), tmp_path / "1.json"
    shutil.copy(double / "photo-Zk9-0004.png", double / "photo-Zk9-0009.png")
    words = ("release", double, "-o", tmp_path / "out", "-k", 3, "--link-table", link)
    told = run(*words, code=5).stderr.replace("\n", " ")
    assert "photo-Zk9-0004.png" in told
    assert "--same-person" in told
    run(*words, "--same-person", code=0)
    assert len(Linkage.read(link).people) == 11
    run("verify", tmp_path / "out", "--linkage", link, "--originals", double, code=0)


def test_newcomers_exchanged_with_others_in_the_link_table_are_found(run, people, tmp_path):
    early = some_of(people, tmp_path / "in", range(6))
    run("release", early, "-o", tmp_path / "1", "-k", 3, "--link-table", tmp_path / "1.json", code=0)
    link = tmp_path / "2.json"
    run("release", people, "-o", tmp_path / "2", "-k", 3, "--after", tmp_path / "1.json", "--link-table", link, code=0)
    table = json.loads(link.read_text())
    old, new = (next(f for f in table["faces"] if f["since"] == i) for i in (1, 2))
    for key in ("subject", "sources"):
        old[key], new[key] = new[key], old[key]
    link.write_text(json.dumps(table))
    run("verify", tmp_path / "2", "--linkage", link, "--originals", people, code=4)


@pytest.mark.parametrize("line", ["no json", "[]", "{}", '{"release": 1, "faces": 7}', "\x00"])
def test_a_damaged_memory_is_named_and_nothing_is_released(run, people, tmp_path, state, line):
    run("release", people, "-o", tmp_path / "1", "-k", 3, code=0)
    with (state / "released.jsonl").open("a") as file:
        file.write(line + "\n")
    result = run("release", people, "-o", tmp_path / "2", "-k", 4, code=5)
    assert "released.jsonl, line 2: the memory of earlier releases cannot be read" in " ".join(result.stderr.split())
    assert not (tmp_path / "2").exists()


def test_another_size_is_the_same_people(run, people, tmp_path):
    run("release", people, "-o", tmp_path / "1", "-k", 3, code=0)
    result = run("release", people, "-o", tmp_path / "2", "-k", 4, "--size", "40x54", code=0)
    assert "of 12 pictures are part of an earlier release" in result.stderr


def test_a_memory_that_cannot_be_kept_is_a_warning(run, people, tmp_path, state):
    state.write_text("a file where the folder should be")
    result = run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    assert "could not be remembered" in result.stderr


def test_the_memory_holds_no_names_and_no_pictures(run, people, state, tmp_path):
    run("release", people, "-o", tmp_path / "out", "-k", 3, code=0)
    assert {p.name: p.stat().st_mode & 0o777 for p in state.iterdir()} == {"key": 0o600, "released.jsonl": 0o600}
    (record,) = [json.loads(line) for line in (state / "released.jsonl").read_text().splitlines()]
    assert len(record["faces"]) == 12
    assert not [secret for secret in SECRETS if secret in (state / "released.jsonl").read_bytes()]


def test_warnings_are_shown_once(run, people, tmp_path):
    merge = ("-k", 3, "--select", "kind", "--small-classes", "merge")
    run("release", people, "-o", tmp_path / "1", "-k", 4, code=0)
    result = run("release", people, "-o", tmp_path / "2", *merge, code=0)
    assert "earlier release" in result.stderr
    assert result.stderr.count("Select merged") == 1


def test_released_images_depend_on_pixels_not_on_file_format(run, people, tmp_path):
    shutil.copytree(people, tmp_path / "in")
    table = (people / "labels.csv").read_text()
    for path in (tmp_path / "in").glob("*.png"):
        Image.open(path).save(path.with_suffix(".tif"))
        path.unlink()
    (tmp_path / "in" / "labels.csv").write_text(table.replace(".png", ".tif"))
    for name, folder in (("a", people), ("b", tmp_path / "in")):
        run("release", folder, "-o", tmp_path / name, "-k", 3, "--seed", 2, code=0)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_the_folder_may_be_published_as_it_is(run, people, tmp_path):
    """Readable by all, whatever the temporary folder was."""
    old = os.umask(0o022)
    try:
        run("release", people, "-o", tmp_path / "deep" / "er" / "out", "-k", 3, code=0)
    finally:
        os.umask(old)
    out = tmp_path / "deep" / "er" / "out"
    assert {p.stat().st_mode & 0o777 for p in (out, out / "faces")} == {0o755}
    assert {p.stat().st_mode & 0o777 for p in out.rglob("*.*")} == {0o644}
    assert np.asarray(Image.open(out / "contact-sheet.png")).ndim == 3
