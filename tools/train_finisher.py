"""Train the network that finishes drawings: heads as photographs, from a drawing and the surroundings alone.

    python tools/train_finisher.py PAIRS... -o OUT --features FEATURES --seconds 540 [--start OUT/finisher.pt]

PAIRS are files that ``tools/prepare_finisher.py`` writes: photographs of heads, and drawings of the faces in them.
FEATURES is what ``tools/perception.py`` writes (the first blocks of EfficientNet-Lite0, for the perceptual loss). Needs
PyTorch, best with a GPU, and nothing of ksame. ``tools/export_finisher.py`` turns the weights into ONNX.
"""

from __future__ import annotations

import argparse
import io
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CHANNELS = (32, 64, 128, 176, 208)
INPUTS = 10  # drawing: RGB, where, normals (2); surroundings: RGB, known
PHOTO = 512  # side of the photographs, in pixels


class Residual(nn.Module):
    """Two convolutions beside the identity; no normalisation, so that a face does not depend on what lies far away."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(n, n, 3, padding=1), nn.Conv2d(n, n, 3, padding=1)
        nn.init.zeros_(self.b.weight)
        nn.init.zeros_(self.b.bias)

    def forward(self, x):
        return x + self.b(F.leaky_relu(self.a(x), 0.2))


class Network(nn.Module):
    """A U-Net whose finest level works on blocks of 2 x 2 pixels."""

    def __init__(self) -> None:
        super().__init__()
        c = CHANNELS
        self.stem = nn.Conv2d(INPUTS * 4, c[0], 3, padding=1)
        self.enc = nn.ModuleList(
            nn.Sequential(*(Residual(n) for _ in range(count))) for n, count in zip(c, (0, 1, 1, 1, 1), strict=True)
        )
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairwise(c))
        self.whole = nn.Sequential(nn.Linear(c[-1], 96), nn.LeakyReLU(0.2), nn.Linear(96, c[-1]))
        self.up = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in pairwise(c))
        self.mix = nn.ModuleList(nn.Conv2d(2 * a, a, 1) for a in c[:-1])
        self.dec = nn.ModuleList(
            nn.Sequential(*(Residual(n) for _ in range(count))) for n, count in zip(c, (1, 2, 2, 2), strict=False)
        )
        self.head = nn.Conv2d(c[0], 12, 3, padding=1)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        h, skips = F.leaky_relu(self.stem(F.pixel_unshuffle(x, 2)), 0.2), []
        for i, block in enumerate(self.enc):
            h = block(h)
            if i < len(self.down):
                skips.append(h)
                h = F.leaky_relu(self.down[i](h), 0.2)
        h = h + self.whole(h.mean((2, 3)))[:, :, None, None]
        for i in reversed(range(len(self.up))):
            h = F.interpolate(self.up[i](h), scale_factor=2, mode="nearest")
            h = self.dec[i](F.leaky_relu(self.mix[i](torch.cat([h, skips[i]], 1)), 0.2))
        return torch.tanh(F.pixel_shuffle(self.head(h), 2))


class Perception(nn.Module):
    """The first blocks of EfficientNet-Lite0, written out as a plain list of layers by ``tools/perception.py``."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.layers = [
            (kind, stop, [a.to(DEVICE).float() for a in arrays], extra)
            for kind, stop, arrays, extra in torch.load(path)
        ]

    def forward(self, x):
        seen, kept = [], None
        for kind, stop, arrays, extra in self.layers:
            if kind == "keep":
                kept = x
            elif kind == "add":
                x = x + kept
            else:
                weight, bias = arrays
                stride, groups, relu = extra
                k = weight.shape[-1]
                if stride == 2 and k > 1:  # as TensorFlow pads
                    total = max(k - 2, 0) if x.shape[-1] % 2 == 0 else k - 1
                    x = F.pad(x, (total // 2, total - total // 2) * 2)
                    x = F.conv2d(x, weight, bias, stride, 0, groups=groups)
                else:
                    x = F.conv2d(x, weight, bias, stride, k // 2, groups=groups)
                x = x.clamp(0, 6) if relu else x
            if stop:
                seen.append(x)
        return seen


def unpack(paths: list[Path]):
    """Return photographs, masks, drawings and directions, each (n, 3, size, size): see ``prepare_finisher.py``."""
    pictures = []
    for path in paths:
        stored = np.load(path)
        blob, offsets = stored["blob"].tobytes(), stored["offsets"]

        def picture(i: int, blob=blob, offsets=offsets):
            image = np.asarray(Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]])))
            return torch.from_numpy(image.copy()).permute(2, 0, 1)

        with ThreadPoolExecutor(16) as pool:
            pictures += list(pool.map(picture, range(len(offsets) - 1)))
    photos = [
        photo
        if photo.shape[1] == PHOTO
        else F.interpolate(photo[None].float(), PHOTO, mode="bicubic")[0].clamp(0, 255).byte()
        for photo in pictures[::4]
    ]
    return [torch.stack(rows).to(DEVICE) for rows in (photos, pictures[1::4], pictures[2::4], pictures[3::4])]


def blur(x, sigma: float):
    """Blur pictures of shape (n, channels, height, width)."""
    k = int(3 * sigma) * 2 + 1
    t = torch.arange(k, device=x.device, dtype=x.dtype) - k // 2
    g = torch.exp(-t * t / (2 * sigma * sigma))
    g = (g / g.sum()).view(1, 1, 1, k)
    c = x.shape[1]
    x = F.conv2d(F.pad(x, (k // 2, k // 2, 0, 0), mode="replicate"), g.expand(c, 1, 1, k), groups=c)
    return F.conv2d(F.pad(x, (0, 0, k // 2, k // 2), mode="replicate"), g.transpose(2, 3).expand(c, 1, k, 1), groups=c)


class Data:
    """Draws batches, varied on the GPU."""

    def __init__(self, paths: list[Path]) -> None:
        self.photos, self.masks, self.drawings, self.normals = unpack(paths)
        self.small = {PHOTO: self.photos}
        for size in (PHOTO // 2, PHOTO // 4):
            self.small[size] = torch.cat(
                [F.interpolate(part.float(), size=size, mode="area").round().byte() for part in self.photos.split(64)]
            )

    def batch(self, n: int, size: int):
        """Return inputs, targets, where the region is, and what is known of the photographs."""
        rand = lambda *shape: torch.rand(*shape, device=DEVICE)  # noqa: E731
        i = torch.randint(0, len(self.photos), (n,), device=DEVICE)
        angle, zoom = (rand(n) - 0.5) * 0.4, torch.exp((rand(n) - 0.5) * 0.4)
        flip = torch.where(rand(n) < 0.5, -1.0, 1.0)
        shift = (rand(n, 2) - 0.5) * 0.12
        cos, sin = angle.cos(), angle.sin()
        theta = torch.stack(
            [
                torch.stack([zoom * cos * flip, -zoom * sin * flip, shift[:, 0]], 1),
                torch.stack([zoom * sin, zoom * cos, shift[:, 1]], 1),
            ],
            1,
        )
        grid = F.affine_grid(theta, (n, 1, size, size), align_corners=False)
        sample = lambda x: F.grid_sample(x, grid, align_corners=False)  # noqa: E731
        inside = (grid.abs().amax(3) < 1).float()[:, None]

        photo = sample(self.small[size][i].float() / 255)
        masks = sample(F.interpolate(self.masks[i].float() / 255, size=PHOTO, mode="bilinear"))
        drawing, normal = self.drawings[i].float() / 255, self.normals[i].float() / 127.5 - 1
        if size < drawing.shape[-1]:
            drawing, normal = (F.interpolate(x, size=size, mode="area") for x in (drawing, normal))
        drawing, normal = sample(drawing), sample(normal)
        where = ((normal[:, 2:] + 1) / 2 * inside > 0.5).float()
        x, y = normal[:, :1], normal[:, 1:2]  # directions turn with the picture
        c, s, f = (v.view(-1, 1, 1, 1) for v in (cos, sin, flip))
        normal = torch.cat([f * c * x + s * y, c * y - f * s * x], 1)
        known = (masks[:, 2:] > 0.999).float() * inside
        wide = (rand(n, 1, 1, 1) < 0.85).float()
        region = ((masks[:, :1] * wide + masks[:, 1:2] * (1 - wide)) > 0.02).float()
        # light and colour of the photograph, independent of the drawing's
        gain = torch.exp((rand(n, 3, 1, 1) - 0.5) * 0.24) * torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.7)
        gamma = torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.5)
        photo = (photo.clamp(0, 1).pow(gamma) * gain).clamp(0, 1)
        tint = torch.exp((rand(n, 3, 1, 1) - 0.5) * 0.08) * torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.2)
        drawing = ((drawing * tint).clamp(0, 1) * 2 - 1) * where
        photo = photo * 2 - 1
        # a third of the pictures are soft, as small faces and films are
        soft = torch.randperm(n, device=DEVICE)[: n // 3]
        low = int(size * (0.25 + 0.6 * float(torch.rand(()))))
        photo[soft] = F.interpolate(
            F.interpolate(photo[soft], size=low, mode="bilinear", antialias=True, align_corners=False),
            size=size, mode="bilinear", align_corners=False,
        )  # fmt: skip
        # other unknown parts: other people's heads, hands that were masked
        hole = rand(n, 1, 1, 1) < 0.15
        at, radius = rand(n, 2) * 2 - 1, 0.1 + 0.25 * rand(n)
        lines = torch.linspace(-1, 1, size, device=DEVICE)
        far = torch.hypot(lines[None, None, :] - at[:, :1, None], lines[None, :, None] - at[:, 1:, None])
        known = known * (1 - (hole & (far[:, None] < radius.view(-1, 1, 1, 1))).float())
        noise = torch.randn_like(photo) * 0.08 * rand(n, 1, 1, 1) ** 2
        outside = known * (1 - region)
        inputs = torch.cat([drawing, where, normal * where, (photo + noise) * outside, outside], 1)
        return inputs, photo, region, known


def grown(mask, pixels: int):
    """Grow a mask."""
    return F.max_pool2d(mask, 2 * pixels + 1, 1, pixels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--rate", type=float, default=3e-4)
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(1)
    data = Data(options.pairs)
    network, mean = Network().to(DEVICE).to(memory_format=torch.channels_last), Network().to(DEVICE)
    if options.start:
        stored = torch.load(options.start, map_location=DEVICE)
        network.load_state_dict({k: v.float() for k, v in stored.items()})
    mean.load_state_dict(network.state_dict())
    steps = torch.optim.Adam(network.parameters(), options.rate, betas=(0.9, 0.99))
    perception = Perception(options.features).to(DEVICE).requires_grad_(False)
    print("weights", sum(p.numel() for p in network.parameters()) / 1e6, "views", len(data.photos), flush=True)
    sizes = (
        ((256, 40), (256, 40), (128, 96), (512, 12)) if DEVICE == "cuda" else ((256, 4), (256, 4), (128, 10), (512, 2))
    )
    begun, step = time.time(), 0
    while (spent := time.time() - begun) < options.seconds:
        for group in steps.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 200, max(0.05, (1 - spent / options.seconds) / 0.4))
        size, n = sizes[step % len(sizes)]
        with torch.no_grad():
            inputs, photo, region, known = data.batch(n, size)
            edge = torch.maximum(blur(grown(region, size // 64), size / 128), region)
            weight = (edge + 0.02) * known * (1 + inputs[:, 3:4])
            wanted = photo * known
        with torch.autocast(DEVICE, torch.bfloat16):
            made = network(inputs.contiguous(memory_format=torch.channels_last)).float()
        whole = (made * edge + photo * (1 - edge)) * known
        l1 = ((made - photo).abs() * weight).sum() / weight.sum() / 3
        with torch.autocast(DEVICE, torch.bfloat16):
            with torch.no_grad():
                goal = perception(wanted)
            felt = sum(
                (p - q).abs().mean() / (q.abs().mean() + 1e-4) for p, q in zip(perception(whole), goal, strict=True)
            )
        steps.zero_grad(set_to_none=True)
        (3 * l1 + 0.5 * felt).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        steps.step()
        with torch.no_grad():
            keep = min(0.999, (step + 1) / (step + 10))
            torch._foreach_lerp_(list(mean.parameters()), list(network.parameters()), 1 - keep)
        step += 1
        if step % (400 if DEVICE == "cuda" else 20) == 0:
            print(f"{step} {spent:.0f}s l1 {l1.item():.4f} felt {felt.item():.3f}", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.half().cpu() for k, v in mean.state_dict().items()}, options.output / "finisher.pt")
    print("done", step, flush=True)


if __name__ == "__main__":
    main()
