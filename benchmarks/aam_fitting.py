"""How well the appearance model rebuilds faces it has not seen, and how often fitting finds them.

Run on a folder of portraits, one per person:

    python benchmarks/aam_fitting.py --portraits ../shared/faces/portraits --meshes meshes.npz -o docs

``meshes.npz`` holds ``files`` (folder/name of each portrait) and ``points`` (n, 478, 2 or more); without it
the landmarks are found with the package's own detector and mesh. Writes ``aam_fitting.png``, which shows
curves and no face, and prints the tables of ``docs/aam.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ksame.faces.landmarks import eyes_and_nose
from ksame.faces.reading import read_image
from ksame.spaces.aam import AppearanceModel, Fitter, build
from ksame.spaces.aam.build import sample_textures

MODES = (10, 25, 50, 100, 200)
METHODS = ("simultaneous", "project-out")


def main() -> None:
    options = parse()
    files, images, points = load(options.portraits, options.meshes)
    order = np.random.default_rng(options.seed).permutation(len(files))
    train, test = order[: options.train], order[options.train :]
    print(f"{len(train)} portraits to learn from, {len(test)} held out, seed {options.seed}\n")
    started = time.perf_counter()
    faces = [images[i] for i in train]
    model = build(faces, points[train], shape=40, texture=min(MODES[-1], len(train) - 1))
    built = time.perf_counter() - started
    print(f"build: {built:.1f} s, base {model.size[1]} x {model.size[0]}, {model.warp.n_pixels} pixels\n")
    held_out = [images[i] for i in test]
    results: dict[str, Any] = {
        "texture": texture_table(model, faces, points[train], held_out, points[test]),
        "shape": shape_table(model, points[train], points[test]),
    }
    fitter = Fitter.train(model, faces, points[train])
    fits = {}
    with threadpool_limits(1):
        for amount in (0.05, 0.10):
            for method in METHODS:
                fits[method, amount] = trial(fitter, held_out, points[test], method, amount, options.seed)
    results["fitting"] = fitting_table(fits)
    options.output.mkdir(parents=True, exist_ok=True)
    draw(fits, options.output / "aam_fitting.png", len(test))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--portraits", type=Path, required=True)
    parser.add_argument("--meshes", type=Path)
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs"))
    return parser.parse_args()


def load(folder: Path, meshes: Path | None) -> tuple[list[Path], list[Any], Any]:
    """Return files, images and landmarks (n, n_points, 2), by name."""
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in {".jpg", ".jpeg", ".png"})
    images = [read_image(p) for p in files]
    if meshes is None:
        return files, images, landmarks(files, images)
    with np.load(meshes, allow_pickle=False) as archive:
        known = {str(f): p[:, :2] for f, p in zip(archive["files"], archive["points"], strict=True)}
    return files, images, np.stack([known[f"{p.parent.name}/{p.name}"] for p in files]).astype(float)


def landmarks(files: list[Path], images: list[Any]) -> Any:
    """Find the mesh of the largest face in each picture."""
    from ksame.models import FaceMesh, detect

    mesh = FaceMesh()
    points = []
    for file, image in zip(files, images, strict=True):
        found = detect(image)
        if not found:
            raise SystemExit(f"{file}: no face found; remove it and run again.")
        points.append(mesh.fit(image, max(found, key=lambda face: face.side)).points[:, :2])
    return np.stack(points).astype(float)


def texture_table(
    model: AppearanceModel, seen: Any, seen_at: Any, unseen: Any, unseen_at: Any
) -> list[dict[str, float]]:
    print("| texture modes | variance kept, seen | held out | PSNR, seen | held out |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    rows = {
        "seen": sample_textures(model.warp, seen, seen_at),
        "held out": sample_textures(model.warp, unseen, unseen_at),
    }
    mean, modes = model.mean_texture.ravel(), model.texture_modes.reshape(len(model.texture_modes), -1)
    table = []
    for count in MODES:
        if count > len(modes):
            continue
        line: dict[str, float] = {"modes": count}
        for name, textures in rows.items():
            centred = textures - mean
            rest = centred - (centred @ modes[:count].T) @ modes[:count]
            line[f"kept {name}"] = float(1 - (rest**2).sum() / (centred**2).sum())
            line[f"psnr {name}"] = float(-10 * np.log10((rest**2).mean(axis=1)).mean())
        table.append(line)
        print(
            f"| {count} | {line['kept seen']:.1%} | {line['kept held out']:.1%} "
            f"| {line['psnr seen']:.1f} dB | {line['psnr held out']:.1f} dB |"
        )
    print()
    return table


def shape_table(model: AppearanceModel, seen: Any, unseen: Any) -> list[dict[str, float]]:
    print("| shape modes | variance kept, seen | point error, seen | held out |")
    print("| ---: | ---: | ---: | ---: |")
    table = []
    for count in (5, 9, 15, 20, 30, 40):
        small = model.truncated(shape=count, texture=0)
        line: dict[str, float] = {
            "modes": count,
            "kept seen": float(model.shape_variances[:count].sum() / model.shape_total),
        }
        for name, shapes in (("seen", seen), ("held out", unseen)):
            errors = []
            for truth in shapes:
                params, pose = small.shape_params(truth)
                errors.append(point_error(pose.apply(small.shape(params)), truth))
            line[f"error {name}"] = float(np.mean(errors))
        table.append(line)
        print(f"| {count} | {line['kept seen']:.1%} | {line['error seen']:.2%} | {line['error held out']:.2%} |")
    print("\n(point errors as a share of the inter-ocular distance)\n")
    return table


def point_error(found: Any, truth: Any) -> float:
    """Mean distance of the points as a share of the distance between the eyes."""
    left, right, _ = eyes_and_nose(truth[None])[0]
    return float(np.linalg.norm(found - truth, axis=1).mean() / np.linalg.norm(right - left))


def disturb(model: AppearanceModel, truth: Any, rng: np.random.Generator, amount: float) -> Any:
    """Move the points by ``amount`` of the face's width, root mean square over the points.

    Three quarters of the squared movement are a random shift, scaling and rotation, one quarter random shape.
    """
    _, pose = model.shape_params(truth)
    centred = truth - truth.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean())
    turned = np.stack([-centred[:, 1], centred[:, 0]], axis=1)
    scale, turn, *shift = rng.normal(size=4)
    rigid = (scale * centred + turn * turned) / size + np.array(shift)
    drawn = rng.normal(size=20) * np.sqrt(model.shape_variances[:20])
    bend = np.einsum("k,kpc->pc", drawn, model.shape_modes[:20]) @ pose.matrix[:, :2].T
    offset = np.sqrt(0.75) * rigid / rms(rigid) + np.sqrt(0.25) * bend / rms(bend)
    return truth + offset / rms(offset) * amount * np.ptp(truth[:, 0])


def rms(offsets: Any) -> float:
    return float(np.sqrt((offsets**2).sum(axis=1).mean()))


def trial(fitter: Fitter, images: Any, points: Any, method: Any, amount: float, seed: int) -> dict[str, Any]:
    """Fit every face once from a disturbed start."""
    rng = np.random.default_rng(seed + 1)
    fitter.fit(images[0], points[0], method=method)  # derivatives are worked out on first use
    found: dict[str, Any] = {
        "start": [],
        "end": [],
        "seconds": [],
        "cpu": [],
        "iterations": [],
        "converged": [],
    }
    for image, truth in zip(images, points, strict=True):
        start = disturb(fitter.model, truth, rng, amount)
        began, spent = time.perf_counter(), time.process_time()
        fit = fitter.fit(image, start, method=method)
        found["seconds"].append(time.perf_counter() - began)
        found["cpu"].append(time.process_time() - spent)
        found["start"].append(point_error(start, truth))
        found["end"].append(point_error(fit.points, truth))
        found["iterations"].append(fit.iterations)
        found["converged"].append(fit.converged)
    return {name: np.array(values) for name, values in found.items()}


def fitting_table(fits: dict[Any, Any]) -> list[dict[str, Any]]:
    heads = ("start moved by", "method", "start error", "end error, median", "< 2 %", "< 3 %", "< 5 %")
    print("| " + " | ".join((*heads, "at rest", "rounds", "wall", "CPU")) + " |")
    print("| ---: | --- |" + " ---: |" * 9)
    table = []
    for (method, amount), found in fits.items():
        line = {
            "method": method,
            "amount": amount,
            "start": float(found["start"].mean()),
            "median": float(np.median(found["end"])),
            **{f"below {limit}": float((found["end"] < limit / 100).mean()) for limit in (2, 3, 5)},
            "at rest": float(found["converged"].mean()),
            "rounds": float(found["iterations"].mean()),
            "milliseconds": float(1000 * np.median(found["seconds"])),
            "milliseconds of CPU": float(1000 * np.median(found["cpu"])),
        }
        table.append(line)
        print(
            f"| {amount:.0%} | {method} | {line['start']:.1%} | {line['median']:.2%} | {line['below 2']:.1%} "
            f"| {line['below 3']:.1%} | {line['below 5']:.1%} | {line['at rest']:.0%} | {line['rounds']:.0f} "
            f"| {line['milliseconds']:.0f} ms | {line['milliseconds of CPU']:.0f} ms |"
        )
    print()
    return table


def draw(fits: dict[Any, Any], file: Path, n: int) -> None:
    """Draw the share of faces found against the error allowed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SystemExit("The picture needs matplotlib: pip install 'ksame[papers]'") from error
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    limits = np.linspace(0, 0.08, 161)
    for (method, amount), found in fits.items():
        share = [(found["end"] < limit).mean() for limit in limits]
        colour = "tab:blue" if method == METHODS[0] else "tab:orange"
        style = "-" if amount == 0.05 else "--"
        axes.plot(100 * limits, share, style, color=colour, label=f"{method}, start moved by {amount:.0%}")
    axes.axvline(3, color="0.7", linewidth=1)
    axes.set(
        xlabel="mean point error allowed (% of inter-ocular distance)",
        ylabel=f"share of {n} held-out portraits",
        xlim=(0, 8),
        ylim=(0, 1.02),
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small")
    figure.savefig(file, dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main()
