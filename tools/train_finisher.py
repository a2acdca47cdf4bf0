"""Train the network that finishes drawings: heads as photographs, from a drawing and the surroundings alone.

    python tools/train_finisher.py PAIRS -o OUT --seconds 540 [--start OUT/finisher.pt] [--features FEATURES]

PAIRS is the file that ``tools/prepare_finisher.py`` writes, FEATURES what ``tools/perception.py`` writes (the first
blocks of EfficientNet-Lite0, for the perceptual loss). Needs PyTorch and one GPU, and nothing of ksame. A photograph's
own drawing is finished to give back the photograph. Drawings of other people are finished to please critics that see
the picture alone, and so that a second network reads the drawing back out of it. ``tools/export_finisher.py`` turns the weights into ONNX.
"""

from __future__ import annotations

import argparse
import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

CHANNELS = (32, 64, 128, 176, 208)
INPUTS = 10  # drawing: RGB, where, normals (2); surroundings: RGB, known


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
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip(c, c[1:], strict=False))
        self.whole = nn.Sequential(nn.Linear(c[-1], 96), nn.LeakyReLU(0.2), nn.Linear(96, c[-1]))
        self.up = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in zip(c, c[1:], strict=False))
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


class Critic(nn.Module):
    """A patch discriminator; returns its verdicts and what it saw at each level."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        c = (64, 128, 256, 384)
        self.conv = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in zip((inputs, *c), c, strict=False))
        self.norm = nn.ModuleList([nn.Identity(), *(nn.GroupNorm(16, n) for n in c[1:])])
        self.out = nn.Conv2d(c[-1], 1, 3, padding=1)

    def forward(self, x):
        seen = []
        for conv, norm in zip(self.conv, self.norm, strict=True):
            x = F.leaky_relu(norm(conv(x)), 0.2)
            seen.append(x)
        return self.out(x), seen


class Reader(nn.Module):
    """Reads the drawing of a face back out of a photograph: learned on photographs and their own drawings."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(6 * 4, 64, 3, padding=1)]
        for _ in range(5):
            layers += [nn.LeakyReLU(0.2), Residual(64)]
        self.layers = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.Conv2d(64, 12, 3, padding=1))

    def forward(self, picture, where):
        return F.pixel_shuffle(self.layers(F.pixel_unshuffle(torch.cat([picture * where[:, :1], where], 1), 2)), 2)


class Perception(nn.Module):
    """The first blocks of EfficientNet-Lite0, written out as a plain list of layers by ``tools/perception.py``."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.layers = [
            (kind, stop, [a.cuda().float() for a in arrays], extra) for kind, stop, arrays, extra in torch.load(path)
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


def unpack(path: Path):
    """Return pictures as tensors on the GPU: see ``tools/prepare_finisher.py`` for what they are."""
    stored = np.load(path)
    blob, offsets = stored["blob"].tobytes(), stored["offsets"]
    n_drawings = stored["n_drawings"]

    def picture(i: int):
        image = np.asarray(Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]])))
        return torch.from_numpy(image.copy())

    with ThreadPoolExecutor(16) as pool:
        pictures = list(pool.map(picture, range(len(offsets) - 1)))
    photos, masks, drawings, normals, owner = [], [], [], [], []
    at = 0
    for view, count in enumerate(n_drawings):
        photo = pictures[at].permute(2, 0, 1)
        if photo.shape[1] != 512:
            photo = F.interpolate(photo[None].float(), size=512, mode="bicubic").clamp(0, 255)[0].byte()
        photos.append(photo)
        masks.append(pictures[at + 1].permute(2, 0, 1))
        at += 2
        for j in range(count):
            drawings.append(pictures[at].permute(2, 0, 1))
            normals.append(pictures[at + 1].permute(2, 0, 1))
            owner.append((view, j))
            at += 2
    first = np.cumsum([0, *n_drawings[:-1]])
    cuda = lambda rows: torch.stack(rows).cuda()  # noqa: E731
    return cuda(photos), cuda(masks), cuda(drawings), cuda(normals), torch.tensor(first).cuda(), torch.tensor(n_drawings).cuda()


def blur(x, sigma: float):
    k = int(3 * sigma) * 2 + 1
    t = torch.arange(k, device=x.device, dtype=x.dtype) - k // 2
    g = torch.exp(-t * t / (2 * sigma * sigma))
    g = (g / g.sum()).view(1, 1, 1, k)
    c = x.shape[1]
    x = F.conv2d(F.pad(x, (k // 2, k // 2, 0, 0), mode="replicate"), g.expand(c, 1, 1, k), groups=c)
    return F.conv2d(F.pad(x, (0, 0, k // 2, k // 2), mode="replicate"), g.transpose(2, 3).expand(c, 1, k, 1), groups=c)


class Data:
    """Draws batches, varied on the GPU."""

    def __init__(self, path: Path) -> None:
        self.photos, self.masks, self.drawings, self.normals, self.first, self.count = unpack(path)
        self.small = {512: self.photos}
        for size in (256, 128):
            self.small[size] = torch.cat(
                [F.interpolate(part.float(), size=size, mode="area").round().byte() for part in self.photos.split(64)]
            )

    def batch(self, n: int, size: int, others: int):
        """Return inputs, targets, the region and the width of the drawing's face; the last ``others`` are swapped."""
        rand = lambda *shape: torch.rand(*shape, device="cuda")  # noqa: E731
        i = torch.randint(0, len(self.photos), (n,), device="cuda")
        pick = torch.zeros(n, dtype=torch.long, device="cuda")
        if others:
            pick[-others:] = 1 + (rand(others) * (self.count[i[-others:]] - 1)).long()
        j = self.first[i] + pick
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
        sample = lambda x, mode="bilinear": F.grid_sample(x, grid, mode=mode, align_corners=False)  # noqa: E731
        inside = (grid.abs().amax(3) < 1).float()[:, None]
        photo = sample(self.small[size][i].float() / 127.5 - 1)
        masks = sample(F.interpolate(self.masks[i].float() / 255, size=512, mode="bilinear"))
        source = 256
        drawing = self.drawings[j].float() / 127.5 - 1
        normal = self.normals[j].float() / 127.5 - 1
        if size < source:
            drawing, normal = (F.interpolate(x, size=size, mode="area") for x in (drawing, normal))
        drawing, normal = sample(drawing), sample(normal)
        alpha = ((normal[:, 2:] + 1) / 2 * inside > 0.5).float()
        # Directions turn with the picture.
        x, y = normal[:, :1], normal[:, 1:2]
        c, s, f = (v.view(-1, 1, 1, 1) for v in (cos, sin, flip))
        normal = torch.cat([f * c * x + s * y, c * y - f * s * x], 1)
        known = (masks[:, 2:] > 0.999).float() * inside
        wide = (rand(n, 1, 1, 1) < 0.85).float()
        region = ((masks[:, :1] * wide + masks[:, 1:2] * (1 - wide)) > 0.02).float()
        # light and colour of the photograph, independent of the drawing's
        gain = torch.exp((rand(n, 3, 1, 1) - 0.5) * 0.24) * torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.7)
        gamma = torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.5)
        photo = ((photo * 0.5 + 0.5).clamp(0, 1).pow(gamma) * gain).clamp(0, 1) * 2 - 1
        tint = torch.exp((rand(n, 3, 1, 1) - 0.5) * 0.08) * torch.exp((rand(n, 1, 1, 1) - 0.5) * 0.2)
        drawing = (((drawing * 0.5 + 0.5) * tint).clamp(0, 1) * 2 - 1) * alpha
        # a third of the pictures are soft, as small faces and films are
        q = n // 3
        soft = torch.randperm(n, device="cuda")[:q]
        low = int(size * (0.25 + 0.6 * float(torch.rand(()))))
        photo[soft] = F.interpolate(
            F.interpolate(photo[soft], size=low, mode="bilinear", antialias=True, align_corners=False),
            size=size, mode="bilinear", align_corners=False,
        )  # fmt: skip
        # other unknown parts: other people's heads, hands that were masked
        hole = rand(n, 1, 1, 1) < 0.15
        at, radius = rand(n, 2) * 2 - 1, 0.1 + 0.25 * rand(n)
        lines = torch.linspace(-1, 1, size, device="cuda")
        far = torch.hypot(lines[None, None, :] - at[:, :1, None], lines[None, :, None] - at[:, 1:, None])
        known = known * (1 - (hole & (far[:, None] < radius.view(-1, 1, 1, 1))).float())
        noise = torch.randn_like(photo) * 0.08 * rand(n, 1, 1, 1) ** 2
        outside = known * (1 - region)
        surroundings = (photo + noise) * outside
        inputs = torch.cat([drawing, alpha, normal * alpha, surroundings, outside], 1)
        return inputs, photo, region, known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--critics-from", type=int, default=900, help="step from which on the critics learn")
    parser.add_argument("--warm", type=int, default=1200, help="step from which on the network heeds them")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--gan", type=float, default=0.2)
    parser.add_argument("--smooth", type=float, default=0.5, help="weight of the critics' gradient penalty")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(1)
    data = Data(options.pairs)
    g, mean = Network().cuda().to(memory_format=torch.channels_last), Network().cuda()
    critics = nn.ModuleList(Critic(5) for _ in range(3)).cuda().to(memory_format=torch.channels_last)
    reader = Reader().cuda().to(memory_format=torch.channels_last)
    if options.start:
        stored = torch.load(options.start, map_location="cuda")
        g.load_state_dict({k: v.float() for k, v in stored.items()})
    mean.load_state_dict(g.state_dict())
    og = torch.optim.Adam(g.parameters(), options.rate, betas=(0.5, 0.99))
    od = torch.optim.Adam(critics.parameters(), 2e-4, betas=(0.5, 0.99))
    rd = torch.optim.Adam(reader.parameters(), 5e-4, betas=(0.9, 0.99))
    perception = Perception(options.features).cuda().requires_grad_(False)
    print("weights", sum(p.numel() for p in g.parameters()) / 1e6, "views", len(data.photos), flush=True)
    sizes = ((256, 40), (256, 40), (128, 96), (512, 12))
    begun, step = time.time(), 0

    def judged(picture, condition):
        x = torch.cat([picture, condition], 1)
        out = []
        for critic in critics:
            out.append(critic(x))
            x = F.avg_pool2d(x, 2)
        return out

    def shaken(x):
        """Brighten or darken, before a discriminator looks: few photographs must not be learned by heart."""
        n = len(x)
        x = x + (torch.rand(n, 1, 1, 1, device="cuda") - 0.5) * 0.4
        level = x.mean((1, 2, 3), keepdim=True)
        return (x - level) * (torch.rand(n, 1, 1, 1, device="cuda") * 0.6 + 0.7) + level

    while (spent := time.time() - begun) < options.seconds:
        for group in og.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 200, max(0.05, (1 - spent / options.seconds) / 0.3))
        size, n = sizes[step % len(sizes)]
        gan, warm = step >= options.critics_from, step >= options.warm
        others = 2 * n // 5 if gan else 0
        own = n - others
        with torch.no_grad():
            inputs, photo, region, known = data.batch(n, size, others)
            edge = blur(F.max_pool2d(region, 2 * (size // 64) + 1, 1, size // 64), size / 128)
            edge = torch.maximum(edge, region)
            condition = torch.cat([region, known], 1)  # not the drawing: those of others are told from own ones
            where = inputs[:, 3:6] * known
            weight = edge * known + 0.02 * known
            weight = weight * (1 + inputs[:, 3:4])
        with torch.autocast("cuda", torch.bfloat16):
            y = g(inputs.contiguous(memory_format=torch.channels_last)).float()
        surround = torch.where(known > 0, photo, torch.zeros_like(photo))
        y_full = (y * edge + surround * (1 - edge)) * known
        real = surround
        if gan:
            with torch.autocast("cuda", torch.bfloat16):
                rs = judged(shaken(real[:own]), condition[:own])
                fs = judged(shaken(y_full.detach()), condition)
            ld = sum(F.softplus(-r[0].float()).mean() + F.softplus(f[0].float()).mean() for r, f in zip(rs, fs, strict=True))
            if step % 8 == 0:
                few = real[: max(4, own // 4)].detach().requires_grad_(True)
                verdicts = judged(few, condition[: len(few)])
                whole = sum(v[0].float().mean((1, 2, 3)).sum() for v in verdicts)
                slope = torch.autograd.grad(whole, few, create_graph=True)[0]
                ld = ld + 8 * 0.5 * options.smooth * slope.pow(2).sum((1, 2, 3)).mean()
            od.zero_grad(set_to_none=True)
            ld.backward()
            od.step()
        l1 = ((y[:own] - photo[:own]).abs() * weight[:own]).sum() / weight[:own].sum() / 3
        with torch.autocast("cuda", torch.bfloat16):
            with torch.no_grad():
                wanted = perception(real[:own])
            given = perception(y_full[:own])
            pl = sum((p - q).abs().mean() / (q.abs().mean() + 1e-4) for p, q in zip(given, wanted, strict=True))
        loss = 3 * l1 + 0.5 * pl
        if gan:
            with torch.autocast("cuda", torch.bfloat16):
                drawn = reader(real[:own], where[:own]).float()
            lr = ((drawn - inputs[:own, :3]).abs() * where[:own, :1]).sum() / where[:own, :1].sum() / 3
            rd.zero_grad(set_to_none=True)
            lr.backward()
            rd.step()
        if warm:
            reader.requires_grad_(False)
            with torch.autocast("cuda", torch.bfloat16):
                drawn = reader(y_full[own:], where[own:]).float()
            reader.requires_grad_(True)
            lo = ((drawn - inputs[own:, :3]).abs() * where[own:, :1]).sum() / where[own:, :1].sum() / 3
            loss = loss + lo
            with torch.autocast("cuda", torch.bfloat16):
                fs = judged(shaken(y_full), condition)
                with torch.no_grad():
                    rs = judged(shaken(real[:own]), condition[:own])
            lg = sum(F.softplus(-f[0].float()).mean() for f in fs)
            fm = sum((x[:own] - z).abs().mean() for f, r in zip(fs, rs, strict=True) for x, z in zip(f[1], r[1], strict=True))
            loss = loss + options.gan * lg + 0.1 * fm
        og.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(g.parameters(), 5.0)
        og.step()
        with torch.no_grad():
            keep = min(0.999, (step + 1) / (step + 10))
            torch._foreach_lerp_(list(mean.parameters()), list(g.parameters()), 1 - keep)
        step += 1
        if step % 400 == 0:
            words = f" d {ld.item():.2f} g {lg.item():.2f} fm {fm.item():.3f} read {lr.item():.3f} {lo.item():.3f}" if warm else ""
            print(f"{step} {spent:.0f}s l1 {l1.item():.4f} pl {pl.item():.3f}{words}", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    half = lambda m: {k: v.half().cpu() for k, v in m.state_dict().items()}  # noqa: E731
    torch.save(half(mean), options.output / "finisher.pt")
    print("done", step, flush=True)


if __name__ == "__main__":
    main()
