"""Work in threads, in processes and on a Dask cluster gives the same bytes; a worker that dies loses nothing."""

import os
import pickle
import signal
import threading
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib.resources import files
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import av
import numpy as np
import pytest
from PIL import Image

import ksame
from ksame.errors import InputError, KsameError, UsageError
from ksame.progress import silent
from ksame.scene.config import Job, JobConfig
from ksame.scene.job import _decide as decide_job
from ksame.scene.job import _Run, run
from ksame.scene.media.segments import _SegmentEncoder
from ksame.scene.release import ReleaseOptions
from ksame.scene.render import first_needed
from ksame.scene.stages import JobFile, StageRun, choose_block, view_file
from ksame.scene.store import Store
from ksame.scene.track import load_tracks, save_tracks
from ksame.scene.track.storage import SHAPES
from ksame.scene.track.tracks import Person, Track, Tracks
from ksame.scene.workers import CancelledError, CancelToken, Tools
from ksame.scene.writing import WriteTask, render_part, write_file
from ksame.scheduling import Scheduler, check_scheduler, open_scheduler

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'ksame[cluster]'")
SAMPLES = files("ksame.data") / "samples"


def two_workers():
    """Return a Dask cluster with two workers of one thread."""
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster that was there before, and whose workers live on."""
    with two_workers() as cluster:
        yield cluster


@pytest.fixture
def mortal():
    """A cluster of its own for a test whose workers die: on a busy machine it takes long until others come."""
    with two_workers() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Two photographs and a clip of six frames."""
    folder = tmp_path_factory.mktemp("originals")
    for name in ("f99.jpg", "m12.jpg"):
        with Image.open(str(SAMPLES / name)) as picture:
            picture.resize((240, 240)).save(folder / name)
    with av.open(str(SAMPLES / "two-people.mp4")) as film, av.open(str(folder / "clip.mp4"), "w") as clip:
        stream = clip.add_stream("libx264", rate=25, options={"crf": "20"})
        stream.width, stream.height = 320, 240
        for i, frame in enumerate(film.decode(video=0)):
            if i == 6:
                break
            small = frame.reformat(width=320, height=240, format="yuv420p")
            small.pts, small.time_base = i, Fraction(1, 25)
            clip.mux(stream.encode(small))
        clip.mux(stream.encode(None))
    return folder


def deidentify(originals, output, scheduler="local", *, seen=None, **config):
    def note(what, done, total):
        if seen is not None:
            seen.append((what, done, total))

    return ksame.deidentify_media(
        originals,
        output,
        config=JobConfig(k=2, scheduler=scheduler, workers=2, **config),
        options=ReleaseOptions(keep_names=True),
        seed=3,
        on_progress=note,
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def serial(originals, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "out"
    deidentify(originals, folder)
    return contents(folder)


@pytest.mark.parametrize("scheduler", ["processes", "tcp"])
def test_processes_and_a_cluster_write_the_same_bytes_as_threads(scheduler, originals, serial, cluster, tmp_path):
    seen = []
    address = cluster.scheduler_address if scheduler == "tcp" else scheduler
    release = deidentify(originals, tmp_path / "out", address, seen=seen)
    assert release.certificate.counts.replaced > 0
    assert contents(tmp_path / "out") == serial
    assert set(serial) == {*(path.name for path in originals.iterdir()), "certificate.json"}
    for stage in ("detecting faces", "reading faces", "writing"):
        assert [done for what, done, total in seen if what == stage and total == 3] == [0, 1, 2, 3]
    assert not list(tmp_path.glob(".*")), "the work in progress is gone"
    assert all(file.source.is_relative_to(originals) for file in release.files)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A recording of 21 frames in which heads move, small."""
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    with av.open(str(SAMPLES / "two-people.mp4")) as whole, av.open(str(path), "w") as film:
        stream = film.add_stream("libx264", rate=25, options={"crf": "20"})
        stream.width, stream.height = 240, 180
        for i, frame in zip(range(21), whole.decode(video=0), strict=False):
            small = frame.reformat(width=240, height=180, format="yuv420p")
            small.pts, small.time_base = i, Fraction(1, 25)
            film.mux(stream.encode(small))
        film.mux(stream.encode(None))
    return path


def rendered(film, output, scheduler="local", seen=None):
    deidentify(film, output, scheduler, seen=seen)
    return output.read_bytes(), output.with_name("film.certificate.json").read_bytes()


@pytest.fixture(scope="module")
def film_in_one_go(film, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ksame.scene.job.SEGMENT", 8)
        return rendered(film, tmp_path_factory.mktemp("serial") / "film.mp4")


def test_a_recording_is_rendered_in_parts_to_the_same_bytes(film, film_in_one_go, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("ksame.scene.job.SEGMENT", 8)
    seen = []
    assert rendered(film, tmp_path / "film.mp4", cluster.scheduler_address, seen) == film_in_one_go
    assert ("rendering", 2, 2) in seen
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.certificate.json", "film.mp4"]


def test_a_worker_killed_in_a_part_changes_no_byte(film, film_in_one_go, cluster, tmp_path, monkeypatch):
    """It dies in the middle of its second segment; whoever is given the part goes on after the first."""
    monkeypatch.setattr("ksame.scene.job.SEGMENT", 8)
    monkeypatch.setattr("ksame.scene.job.render_part", render_and_die)
    assert rendered(film, tmp_path / "film.mp4", cluster.scheduler_address) == film_in_one_go
    assert (tmp_path / "died").read_text() == "000001.nut"
    assert (tmp_path / "again").read_text() == "16"


def test_parts_that_nobody_could_render_are_rendered_where_the_file_is_written(
    film, film_in_one_go, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr("ksame.scene.job.SEGMENT", 8)
    monkeypatch.setattr("ksame.scene.job.render_part", cannot_render)
    assert rendered(film, tmp_path / "film.mp4", cluster.scheduler_address) == film_in_one_go


def cannot_render(run, task):
    raise InputError(f"{task}: not now")


def render_and_die(run, task):
    """Die when the part from the second segment on has one complete, and note with which frame it goes on then."""
    note = run.store.folder.parent
    if task.segments.start == 0:
        return render_part(run, task)
    if (note / "died").exists():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ksame.scene.writing.first_needed", lambda index: _noted(note / "again", index))
            return render_part(run, task)
    encode = _SegmentEncoder.encode

    def die(self, frame, timestamp):
        encode(self, frame, timestamp)
        if self._path.name == "000002.nut":
            (note / "died").write_text(next(path.name for path in self._path.parent.glob("000001.nut")))
            os.kill(os.getpid(), signal.SIGKILL)

    _SegmentEncoder.encode = die
    return render_part(run, task)


def _noted(file, index):
    file.write_text(str(index))
    return first_needed(index)


def square_slowly(folder, number):
    """Say who works on a number, and take a while the first time."""
    mark = Path(folder) / f"{number}-{os.getpid()}"
    again = any(Path(folder).glob(f"{number}-*"))
    mark.touch()
    time.sleep(0.05 if again else 1.0)
    return number**2


def always_dies(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_is_killed_loses_nothing(mortal, tmp_path):
    def kill_one():
        while not (working := list(tmp_path.glob("0-*"))):
            time.sleep(0.01)
        os.kill(int(working[0].name.split("-")[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with open_scheduler(mortal.scheduler_address) as scheduler:
        squares = scheduler.map(partial(square_slowly, str(tmp_path)), range(6), "squaring")
    killer.join()
    assert squares == [0, 1, 4, 9, 16, 25]
    assert len(list(tmp_path.glob("0-*"))) == 2, "two workers had it, one after the other"


def test_what_kills_every_worker_is_left_out_and_named(mortal):
    with open_scheduler(mortal.scheduler_address) as scheduler:
        numbers = scheduler.map(always_dies, range(3), "counting")
    assert numbers[0] == 0
    assert numbers[2] == 2
    assert isinstance(numbers[1], InputError)
    assert "every worker that was given it died" in str(numbers[1])


def test_a_worker_killed_while_it_writes_changes_no_byte(originals, serial, mortal, tmp_path, monkeypatch):
    """The worker dies when its output has its name, before anybody was told: it is not written again."""
    monkeypatch.setattr("ksame.scene.job.write_file", write_and_die)
    deidentify(originals, tmp_path / "out", mortal.scheduler_address)
    assert (tmp_path / "died").read_text() == "m12.jpg"
    assert contents(tmp_path / "out") == serial
    assert not list(tmp_path.glob(".*"))


def write_and_die(run, task):
    died = run.store.folder.parent / "died"
    result = write_file(run, task)
    if task.file.source.name == "m12.jpg" and not died.exists():
        died.write_text("m12.jpg")
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def fails_for_one(run, task):
    if task.file.source.name == "m12.jpg":
        task.file.output.with_name(f".{task.file.output.name}.part").write_bytes(b"half")
        raise InputError(f"{task.file}: gone")
    return write_file(run, task)


def test_a_file_that_fails_while_it_is_written_is_left_out_and_hides_nobody(originals, tmp_path, monkeypatch):
    whole = deidentify(originals, tmp_path / "whole")
    monkeypatch.setattr("ksame.scene.job.write_file", fails_for_one)
    release = deidentify(originals, tmp_path / "out")
    assert [path.name for path in release.failed] == ["m12.jpg"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["certificate.json", "clip.mp4", "f99.jpg"]
    counts, before = release.certificate.counts, whole.certificate.counts
    assert counts.people < before.people
    assert counts.unreadable == 1
    assert set(release.result.plan.decisions) == {name for file in release.files for name in file.people}


def test_what_is_sent_back_is_small(tmp_path):
    """Views have a few hundred pixels, however large the picture is."""
    with Image.open(str(SAMPLES / "f99.jpg")) as picture:
        picture.resize((2400, 2400)).save(tmp_path / "large.png")
    job = Job([(tmp_path / "large.png", tmp_path / "out.png")], tmp_path / "work", JobConfig(), seed=1)
    sent = []

    def keep(run, file):
        views = view_file(run, file)
        sent.append((pickle.dumps((run, file)), pickle.dumps(views)))
        return views

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ksame.scene.job.view_file", keep)
        run(job)
    (there, back), *_ = sent
    assert len(there) < 10_000
    assert 1_000 < len(back) < 1_000_000


def test_what_is_sent_with_a_file_does_not_grow_with_the_number_of_the_others(tmp_path):
    sizes = []

    class Weighing(Scheduler):
        def map(self, function, items, what, **_):
            sizes.append(len(pickle.dumps(function)))
            return []

    for n in (2, 2000):
        job = Job([(tmp_path / f"{i}.png", tmp_path / f"{i}-safe.png") for i in range(n)], tmp_path / "work")
        store, tools = Store(job.work, 1), Tools(CancelToken(tmp_path / "running"))
        _Run(job, store, tools, Weighing(), silent, {}).map(view_file, [], "reading faces")
    assert sizes[0] == sizes[1]


def test_work_for_a_run_that_is_over_stops(tmp_path):
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(tmp_path / "a.png")
    job = Job([(tmp_path / "a.png", tmp_path / "b.png")], tmp_path / "work")
    store = Store.begin(job.work, [], "", 1, outputs=[], resume=False)
    token = CancelToken(store.folder / "running").begin()
    stages = StageRun(job, store, Tools(token))
    file = JobFile(0, tmp_path / "a.png", tmp_path / "b.png", "refuse").opened()
    stages.check(file)
    with pytest.raises(InputError, match="a worker sees another file there"):
        stages.check(replace(file, fingerprint="another"))
    CancelToken(store.folder / "running").begin()  # another run goes on with this job
    for orphan in (stages, pickle.loads(pickle.dumps(stages))):  # noqa: S301
        with pytest.raises(CancelledError):
            write_file(orphan, WriteTask(file, {}, {}, "key"))
    store.remove()
    with pytest.raises(UsageError, match="must see the same files under the same paths"):
        stages.check(file)
    assert not (tmp_path / "b.png").exists()


def test_workers_keep_memory_as_a_run_of_its_own_does(tmp_path, monkeypatch):
    """Dask tells them to give back every little piece, which then has to be asked for again."""
    told = []
    monkeypatch.setattr("ksame.scene.workers.share_memory", lambda: told.append(True))
    pickle.loads(pickle.dumps(Tools(CancelToken(tmp_path / "running"))))  # noqa: S301
    assert told == [True]


def raise_usage(number):
    raise UsageError("no such thing")


def test_other_errors_end_the_work_and_stop_the_rest(cluster):
    for name in ("local", cluster.scheduler_address):
        stopped = []
        with open_scheduler(name, 2) as scheduler, pytest.raises(UsageError, match="no such thing"):
            scheduler.map(raise_usage, range(3), "failing", stop=lambda: stopped.append(True))  # noqa: B023
        assert stopped == [True]


def wait_for(begun, over, number):
    begun.touch()
    while not over.exists():
        time.sleep(0.05)


def test_a_scheduler_that_is_lost_is_named_with_the_next_step(tmp_path):
    stopped, begun, over = [], tmp_path / "begun", tmp_path / "over"

    def lose(client):
        while not begun.exists():
            time.sleep(0.05)
        client.restart(wait_for_workers=False)  # forgets all work; a worker without a nanny does not come back

    with (
        distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as other,
        open_scheduler(cluster.scheduler_address) as ours,
    ):
        losing = threading.Thread(target=lose, args=(other,), daemon=True)
        losing.start()
        with pytest.raises(KsameError, match="was lost before all was done.*--resume"):
            ours.map(partial(wait_for, begun, over), range(3), "waiting", stop=lambda: stopped.append(True))
        over.touch()
        losing.join()
    assert stopped == [True]


def test_a_scheduler_that_is_not_there_is_named_with_the_next_step(monkeypatch):
    monkeypatch.setattr("ksame.scheduling._PATIENCE", 1)
    with (
        pytest.raises(UsageError, match="no Dask scheduler answers there. Start one with 'dask scheduler'"),
        open_scheduler("tcp://127.0.0.1:1"),
    ):
        pass
    with pytest.raises(UsageError, match="must be local, processes or the address tcp://HOST:PORT. Got 'slurm'"):
        check_scheduler("slurm")
    with pytest.raises(UsageError, match="--scheduler must be"):
        JobConfig(scheduler="dask")


def test_a_scheduler_without_workers_is_named(monkeypatch):
    monkeypatch.setattr("ksame.scheduling._PATIENCE", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(UsageError, match="has no workers. Start some with 'dask worker"),
        open_scheduler(empty.scheduler_address),
    ):
        pass


def test_without_dask_the_install_command_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(KsameError, match=r"needs Dask: pip install 'ksame\[cluster\]'"),
        open_scheduler("processes"),
    ):
        pass


def test_processes_are_private():
    """Only this run has the keys, nothing is swapped to a disk, and their web servers tell nothing."""
    with open_scheduler("processes", 1) as scheduler:
        client = scheduler._client
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        (settings,) = client.run(worker_settings).values()
        pages = [settings.pop("page"), f"http://127.0.0.1:{client.scheduler_info()['services']['dashboard']}"]
        assert settings == {"target": False, "spill": False}
        for page in pages:
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{page}/info/main/workers.html", timeout=5)  # noqa: S310 -- our own
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{page}/status", timeout=5)  # noqa: S310 -- our own


def worker_settings(dask_worker):
    memory = dask_worker.memory_manager
    page = f"http://127.0.0.1:{dask_worker.http_server.port}"
    return {"target": memory.memory_target_fraction, "spill": memory.memory_spill_fraction, "page": page}


def test_surrogates_are_chosen_by_the_workers(originals, serial, cluster, tmp_path, monkeypatch):
    """Men and women are two blocks, each the work of one worker."""
    monkeypatch.setattr("ksame.scene.job.choose_block", choose_and_note)
    seen = []
    deidentify(originals, tmp_path / "out", cluster.scheduler_address, seen=seen)
    assert contents(tmp_path / "out") == serial
    assert ("choosing surrogates", 2, 2) in seen
    chosen = [path.read_text().split() for path in tmp_path.glob("block-*")]
    assert len(chosen) == 2
    assert all(pid != str(os.getpid()) for pid, _ in chosen)
    assert all(int(size) < 200_000 for _, size in chosen), "no pieces of pictures are sent"


def choose_and_note(run, block):
    note = run.store.folder.parent / f"block-{block.seed}"
    note.write_text(f"{os.getpid()} {len(pickle.dumps(block))}")
    return choose_block(run, block)


def test_what_is_kept_of_many_files_is_small(originals, tmp_path, monkeypatch):
    """Meshes and pieces of pictures stay in the store until they are needed."""
    kept = []

    def note(run, files, tracks):
        kept.append({number: len(pickle.dumps(each)) for number, each in tracks.items()})
        assert all(np.isnan(track.points).all() for each in tracks.values() for track in each.tracks)
        return decide_job(run, files, tracks)

    monkeypatch.setattr("ksame.scene.job._decide", note)
    views = []
    monkeypatch.setattr("ksame.scene.job.view_file", lambda run, file: views.append(view_file(run, file)) or views[-1])
    release = deidentify(originals, tmp_path / "out")
    assert release.certificate.counts.replaced > 0
    assert all(isinstance(view.piece, Path) for file in views for taken in file.views.values() for view in taken)
    assert all(len(pickle.dumps(file)) < 6_000 * max(1, len(file.views)) * 2 for file in views)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="nobody says how many files are open")
def test_tracks_of_many_photographs_keep_no_files_open(tmp_path):
    track = Track(1, "P1", 0, *(np.zeros((1, *shape), dtype) for shape, dtype in SHAPES.values()))
    save_tracks(Tracks((64, 64), 1, (Person("P1", None, ()),), (track,)), tmp_path)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    casts = [load_tracks(tmp_path) for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
    assert all(len(cast.tracks) == 1 for cast in casts)
