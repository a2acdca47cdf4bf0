"""Three hundred random releases, judged by plain NumPy on bytes: nothing here is shared with what is judged."""

import json
import warnings
from collections import Counter, defaultdict

import numpy as np
import pytest

import ksame
from ksame.errors import InputError, KsameError
from ksame.faces.faceset import FaceSet

SHAPE = (12, 9, 1)
SERIES = 75
NEAR = 2.0  # grey levels within which a reckoned face is an original


def smooth(rng, n):
    """Pictures of people who are nobody: smooth random fields, all different."""
    fields = rng.normal(size=(n, 5, 4))
    rows, columns = np.linspace(0, 3.999, SHAPE[0]), np.linspace(0, 2.999, SHAPE[1])
    i, j = rows.astype(int), columns.astype(int)
    u, v = (rows - i)[:, None], (columns - j)[None, :]
    f = fields[:, i][:, :, j] * (1 - u) * (1 - v) + fields[:, i + 1][:, :, j] * u * (1 - v)
    f = f + fields[:, i][:, :, j + 1] * (1 - u) * v + fields[:, i + 1][:, :, j + 1] * u * v
    return np.clip(0.5 + 0.18 * f, 0, 1)[..., None]


class World:
    """People who come and go, with one to four pictures each and two labels."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.pictures, self.labels = {}, {}
        self.one_each = bool(self.rng.random() < 0.4)
        self.there = []
        self.join(int(self.rng.integers(10, 22)))

    def join(self, n):
        for _ in range(n):
            name = f"p{len(self.pictures):03}"
            many = 1 if self.one_each or self.rng.random() < 0.6 else int(self.rng.integers(2, 5))
            base = smooth(self.rng, 1)
            wobble = 0.06 * (smooth(self.rng, many) - 0.5)
            self.pictures[name] = np.rint(255 * np.clip(base + wobble, 0, 1)).astype(np.uint8)
            mood = self.rng.permutation(["calm", "glad", "sad", "wry"])[:many]
            self.labels[name] = (str(self.rng.choice(["F", "M"])), mood)
            self.there.append(name)

    def year_passes(self):
        leavers = self.rng.permutation(self.there)[: int(self.rng.integers(0, len(self.there) // 2 + 1))]
        gone = [name for name in self.pictures if name not in self.there]
        self.there = [name for name in self.there if name not in leavers]
        self.there += [name for name in gone if self.rng.random() < 0.3]
        self.join(int(self.rng.integers(0, 9)))

    def faces(self, there=None):
        rows = [(n, i) for n in sorted(there or self.there) for i in range(len(self.pictures[n]))]
        return FaceSet(
            np.stack([self.pictures[n][i] for n, i in rows]),
            np.array([n for n, _ in rows]),
            attributes={
                "gender": [self.labels[n][0] for n, _ in rows],
                "mood": [str(self.labels[n][1][i]) for n, i in rows],
            },
            names=tuple(f"{n}/{i}" for n, i in rows),
        )


def k_anonymous(rng):
    k = int(rng.integers(2, 5))
    name = rng.choice(["k-same-pixel", "k-same-pixel", "k-same-eigen", "k-same-furthest", "average", "blackout"])
    params = {} if name in ("average", "blackout") else {"k": k}
    if name in ("k-same-pixel", "k-same-eigen"):
        params["grouping"] = str(rng.choice(["greedy", "mdav", "greedy+refine"]))
        if rng.random() < 0.5:
            params |= {"select": str(rng.choice(["gender", "mood"])), "small_classes": "drop"}
    return str(name), params


def made(linkage):
    """The link table as anybody would read it."""
    return json.loads(linkage.model_dump_json(by_alias=True))


def check_series(world, years):
    """k-anonymity over all releases together, and what three attackers make of them."""
    k = years[-1][0].certificate.promise.params["k"]
    people, shown = defaultdict(set), defaultdict(set)
    for release, linkage, _ in years:
        table = made(linkage)["faces"]
        copies = defaultdict(Counter)
        for face, link in zip(release.faces, table, strict=True):
            people[face.tobytes()].add(link["subject"])
            shown[link["subject"]].add(face.tobytes())
            copies[face.tobytes()][link["subject"]] += 1
        for counts in copies.values():
            assert len(counts) >= k
            assert max(counts.values()) * k <= sum(counts.values())
    assert min(Counter(frozenset(held) for held in shown.values()).values()) >= k, "all releases together"
    assert all(len(behind) >= k for behind in people.values())
    check_differencing(world, [release.faces for release, _, _ in years])
    check_intersection(years, people, k)


def check_differencing(world, folders):
    """No combination of two public faces by their copies is anybody's original."""
    originals = np.concatenate([world.pictures[n] for n in world.pictures]).reshape(-1, np.prod(SHAPE)).astype(float)
    counted = [Counter(face.tobytes() for face in faces) for faces in folders]
    for i, early in enumerate(counted):
        for late in counted[i:]:
            for one, c1 in early.items():
                a = np.frombuffer(one, np.uint8).astype(float)
                assert np.sqrt(((originals - a) ** 2).mean(axis=1)).min() >= NEAR
                assert late[one] >= c1, "repeated in as many copies, more only where newcomers get the same plain face"
                for two, c2 in late.items():
                    if c1 != c2 and one != two:
                        guess = (c1 * a - c2 * np.frombuffer(two, np.uint8)) / (c1 - c2)
                        assert np.sqrt(((originals - guess) ** 2).mean(axis=1)).min() >= NEAR


def check_intersection(years, people, k):
    """Who was there whenever a face was shown: guessing among them is right once in k at most."""
    for face in people:
        first = next(i for i, (release, _, _) in enumerate(years) if face in {f.tobytes() for f in release.faces})
        candidates = set(years[first][2])
        for release, _, there in years[first:]:
            assert face in {f.tobytes() for f in release.faces}
            candidates &= set(there)
        if candidates:
            hits = sum(person in candidates for person in people[face]) / len(candidates) / len(people[face])
            assert hits <= 1 / k + 1e-9


def attempt(*given, **options):
    """Release and return both parts; None where it is refused in words, which is a fair answer."""
    try:
        return ksame.deidentify(*given, **options)
    except KsameError:
        return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
def test_series_of_three_releases_tell_no_more_than_one():
    released, weighed = 0, 0
    for seed in range(SERIES):
        world = World(seed)
        name, params = k_anonymous(world.rng)
        years, link = [], None
        for year in range(3):
            if year:
                world.year_passes()
            how = ksame.recipe(name, **params)
            found = attempt(world.faces(), how, seed=seed, after=link)
            if found is None:
                break
            if year and seed % 5 == 0:  # who left or stayed changes no byte
                new = [n for n in world.there if n not in link.people]
                others = [n for n in link.people if world.rng.random() < 0.5]
                again = attempt(world.faces(new + others), how, seed=seed, after=link)
                if again is not None and new + others:
                    assert again[0].certificate.to_json() == found[0].certificate.to_json()
                    weighed += 1
            years.append((*found, list(world.there)))
            link = found[1]
            released += 1
        if years:
            check_series(world, years)
    print(f"{released} releases in series")
    assert released >= 2 * SERIES
    assert weighed >= 10


SINGLE = (
    "k-diff-furthest",
    "epsilon-k-map",
    "epsilon-k-map",
    "wrong-map",
    "epsilon-map",
    "blur",
    "pixelate",
    "threshold",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ksame.errors.KsameWarning")
def test_other_methods_release_no_original_and_count_no_one_out():
    released, named, expected, deviation = 0, 0.0, 0.0, 0.0
    for seed in range(110):
        world = World(1000 + seed)
        name = SINGLE[seed % len(SINGLE)]
        k = int(world.rng.integers(2, 6))
        lam = float(world.rng.choice([0.0, 0.0, 1e-3, 1e3, 1e6])) if name == "epsilon-k-map" else None
        params = {"k": k} if name in ("k-diff-furthest", "epsilon-k-map") else {}
        how = ksame.recipe(name, **params, lam=lam)
        faces = world.faces()
        found = attempt(faces, how, seed=seed)
        if found is None:
            continue
        released += 1
        release, linkage = found
        originals = {f"{n}/{i}": p.astype(float) for n, many in world.pictures.items() for i, p in enumerate(many)}
        table = made(linkage)["faces"]
        if name in ("blur", "pixelate", "threshold"):
            assert release.certificate.promise.bound is None
            continue
        for face, link in zip(release.faces, table, strict=True):
            assert min(np.sqrt(((originals[s] - face) ** 2).mean()) for s in link["sources"]) >= NEAR
        if name == "epsilon-map":
            continue
        counts = Counter(link["subject"] for link in table)
        if not linkage.withheld:
            assert len(set(counts.values())) == 1, "nobody is named by the number of faces"
        if name == "epsilon-k-map" and not lam:
            means = {n: (p / 255.0).mean(axis=0) for n, p in world.pictures.items() if n in set(world.there)}
            for face, link in zip(release.faces, table, strict=True):
                apart = {n: np.linalg.norm(means[n] - face / 255.0) for n in means}
                named += min(apart, key=apart.get) == link["subject"]
                expected += 1 / k
                deviation += (1 / k) * (1 - 1 / k)
    print(f"{released} other releases; naive matching names {named:g} where 1/k would be {expected:.0f}")
    assert released >= 70
    assert named <= expected + 4 * np.sqrt(deviation)


@pytest.mark.slow
def test_photographs_under_two_names_never_pass_unseen():
    for seed in range(40):
        world = World(2000 + seed)
        one, two = (str(n) for n in world.rng.permutation(world.there)[:2])
        world.pictures[two][0] = world.pictures[one][-1]
        how = ksame.recipe("k-same-pixel", k=2)
        with pytest.raises(InputError, match="--same-person"):
            ksame.deidentify(world.faces(), how, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = attempt(world.faces(), how, seed=seed, provenance=ksame.Provenance(names="merge"))
        if found is not None:
            assert not {one, two} <= found[1].people
            people = defaultdict(set)
            for face, link in zip(found[0].faces, made(found[1])["faces"], strict=True):
                people[face.tobytes()].add(link["subject"])
            assert min(len(behind) for behind in people.values()) >= 2
