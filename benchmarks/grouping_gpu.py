"""Grouping on a GPU with PyTorch: the same way as on a processor, all leaves at once.

``python benchmarks/grouping_gpu.py [--faces 1000000 10000000] [--features 64] [-k 10]`` prints seconds and the loss per
face, for codes drawn as in ``benchmarks.grouping_speed``. Runs where nothing of ksame is: PyTorch only.

Codes are halved across their main direction until leaves hold about a thousand; in every leaf a random face takes its
k - 1 nearest, again and again; the quarter of the groups that lose most is formed again with those of other leaves.

It is a benchmark and no part of the package: a GPU adds in no fixed order, so that two runs may differ, and a
release must be repeatable to the byte.
"""

from __future__ import annotations

import argparse
import time

import torch

LEAF = 1024  # faces, at most, that are grouped all against all
AGAIN = 0.25  # of the groups are formed again
SAMPLE = 512  # rows from which the direction of a cut is learned
AT_ONCE = 2**28  # distances that are held at a time


def partition(codes: torch.Tensor, k: int, generator: torch.Generator) -> torch.Tensor:
    """Return the group of each face, (n,), for codes of shape (n, n_features)."""
    labels = torch.full((len(codes),), -1, dtype=torch.long, device=codes.device)
    groups, rows = 0, torch.arange(len(codes), device=codes.device)
    while len(rows):
        leaves = cut(codes, rows)
        found = torch.cat([grouped(codes[part], k, generator) for part in leaves.split(chunk(leaves))])
        settled = found if len(leaves) == 1 else best(codes[leaves], found, k)
        number = torch.where(
            settled >= 0, settled + torch.arange(len(leaves), device=codes.device)[:, None] * 2 * LEAF, -1
        )
        kept = number[number >= 0].unique(return_inverse=True)[1]
        labels[leaves[number >= 0]] = kept + groups
        groups += int(kept.max()) + 1
        rows = torch.nonzero(labels < 0)[:, 0]
    return labels


def chunk(leaves: torch.Tensor) -> int:
    return max(1, AT_ONCE // leaves.shape[1] ** 2)


def cut(codes: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return leaves of one size, (n_leaves, size): indices of near faces; a few rows are left for the next round."""
    leaves = rows[None]
    while leaves.shape[1] > LEAF:
        sample = codes[leaves[:, :: max(1, leaves.shape[1] // SAMPLE)]]
        sample = sample - sample.mean(1, keepdim=True)
        direction = torch.linalg.eigh(sample.transpose(1, 2) @ sample)[1][..., -1]
        place = (
            torch.cat([codes[leaf] @ along for leaf, along in zip(leaves, direction, strict=True)]).view(leaves.shape)
            if len(leaves) < 64
            else (codes[leaves] @ direction[..., None])[..., 0]
        )
        half = leaves.shape[1] // 2
        order = place.argsort(1)[:, : 2 * half]
        leaves = leaves.gather(1, order).view(-1, half)
    return leaves


def grouped(leaves: torch.Tensor, k: int, generator: torch.Generator) -> torch.Tensor:
    """Group the faces of every leaf, (n_leaves, size, n_features); the last group takes the rest."""
    count, size, _ = leaves.shape
    apart = torch.cdist(leaves, leaves)
    labels = torch.full((count, size), max(0, size // k - 1), dtype=torch.long, device=leaves.device)
    taken = torch.zeros((count, size), dtype=torch.bool, device=leaves.device)
    for group in range(size // k - 1):
        lots = torch.rand((count, size), generator=generator, device=leaves.device).masked_fill(taken, -1)
        centre = lots.argmax(1)
        row = apart[torch.arange(count, device=leaves.device), centre].masked_fill(taken, torch.inf)
        row.scatter_(1, centre[:, None], -1)
        nearest = row.topk(k, 1, largest=False)[1]
        labels.scatter_(1, nearest, group)
        taken.scatter_(1, nearest, True)
    return labels


def best(leaves: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    """Keep the groups of every leaf that lose least for each face; -1 for the faces of the others."""
    count, size = labels.shape
    groups = size // k
    loss = _losses(leaves, labels, groups)
    stay = groups - int(AGAIN * groups)
    kept = torch.zeros((count, groups), dtype=torch.bool, device=leaves.device)
    kept.scatter_(1, loss.argsort(1)[:, :stay], True)
    return torch.where(kept.gather(1, labels), labels, -1)


def _losses(leaves: torch.Tensor, labels: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the mean squared distance to its mean of every group, (n_leaves, n_groups)."""
    count, _, features = leaves.shape
    index = labels[..., None].expand_as(leaves)
    sums = torch.zeros((count, groups, features), device=leaves.device).scatter_add_(1, index, leaves)
    sizes = torch.zeros((count, groups), device=leaves.device).scatter_add_(
        1, labels, torch.ones_like(labels, dtype=torch.float32)
    )
    away = ((leaves - (sums / sizes[..., None]).gather(1, index)) ** 2).sum(2)
    return torch.zeros((count, groups), device=leaves.device).scatter_add_(1, labels, away) / sizes


def loss_per_face(codes: torch.Tensor, labels: torch.Tensor) -> float:
    groups = int(labels.max()) + 1
    sizes = torch.bincount(labels, minlength=groups).to(codes.dtype)
    means = torch.zeros((groups, codes.shape[1]), device=codes.device).index_add_(0, labels, codes) / sizes[:, None]
    total = sum(
        float(((part - means[of]) ** 2).sum(dtype=torch.float64))
        for part, of in zip(codes.split(10**6), labels.split(10**6), strict=True)
    )
    return total / len(codes)


def main() -> None:
    """Print one line for each number of faces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faces", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    generator = torch.Generator(options.device).manual_seed(0)
    spread = torch.arange(1, options.features + 1, device=options.device) ** -0.6
    partition(torch.randn((5000, options.features), generator=generator, device=options.device), options.k, generator)
    for n in options.faces:
        codes = torch.randn((n, options.features), generator=generator, device=options.device) * spread
        start = time.perf_counter()
        labels = partition(codes, options.k, generator)
        sizes = torch.bincount(labels)  # waits for all that was asked for
        smallest, largest = int(sizes.min()), int(sizes.max())
        seconds = time.perf_counter() - start
        print(
            f"{n:>10,} faces: {seconds:7.2f} s, loss per face {loss_per_face(codes, labels):.4f}, "
            f"groups of {smallest} to {largest}, {options.device}",
            flush=True,
        )
        assert smallest >= options.k


if __name__ == "__main__":
    main()
