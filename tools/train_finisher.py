"""Train the network that finishes drawings: heads as photographs, from a drawing and the surroundings alone.

    python -m tools.train_finisher PAIRS... -o OUT --features FEATURES --seconds 1440 [--until 480] [--resume STATE]

PAIRS are files that ``tools/prepare_finisher.py`` writes: photographs of heads, and drawings of the faces in them.
FEATURES is what ``tools/perception.py`` writes (the first blocks of EfficientNet-Lite0, for the perceptual loss). Needs
PyTorch, best with a GPU, and nothing of ksame. ``tools/export_finisher.py`` turns the weights into ONNX.

OUT gets ``finisher.pt``, the weights, and ``state.pt``, all that a later call with ``--resume OUT/state.pt`` needs to
go on as if there had been no break: a critic that begins anew beside good weights hardly learns.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from tools.finisher_data import DEVICE, Data
from torch import nn

CHANNELS = (32, 64, 128, 176, 208)
INPUTS = 10  # drawing: RGB, where, normals (2); surroundings: RGB, known
EYE_WEIGHT = 6.0  # of eyes in the loss, beside 2 of the face: where lids and irises are must be seen
FIRST = 400  # steps in which only the critic learns of itself; its pull grows during the next so many
LEARNED = ("network", "mean", "critic", "steps", "critic_steps")  # what a trainer learns: parts of its state


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
    """A U-Net whose finest level works on blocks of 2 x 2 pixels, and only reads and writes them: there, time is spent.

    What comes from below and what comes across are added, each by a convolution of its own: nothing is copied together.
    """

    def __init__(self) -> None:
        super().__init__()
        c = CHANNELS
        self.stem = nn.Conv2d(INPUTS * 4, c[0], 1)
        self.enc = nn.ModuleList(
            nn.Sequential(*(Residual(n) for _ in range(count))) for n, count in zip(c, (0, 1, 1, 1, 1), strict=True)
        )
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairwise(c))
        self.whole = nn.Sequential(nn.Linear(c[-1], 96), nn.LeakyReLU(0.2), nn.Linear(96, c[-1]))
        self.up = nn.ModuleList([nn.Conv2d(c[1], 4 * c[0], 3, padding=1)])
        self.up.extend(nn.Conv2d(b, a, 1) for a, b in pairwise(c[1:]))
        self.across = nn.ModuleList(nn.Conv2d(n, n, 1, bias=False) for n in c[:-1])
        self.dec = nn.ModuleList(
            nn.Sequential(*(Residual(n) for _ in range(count))) for n, count in zip(c, (0, 2, 2, 2), strict=False)
        )
        self.head = nn.Conv2d(c[0], 12, 3, padding=1)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return torch.tanh(F.pixel_shuffle(self.blocks(self.stem(F.pixel_unshuffle(x, 2))), 2))

    def blocks(self, h):
        """Return the picture, in blocks of 2 x 2 pixels and before its range is bounded, from what the stem makes."""
        h, skips = F.leaky_relu(h, 0.2), []
        for i, block in enumerate(self.enc):
            h = block(h)
            if i < len(self.down):
                skips.append(h)
                h = F.leaky_relu(self.down[i](h), 0.2)
        h = h + self.whole(h.mean((2, 3)))[:, :, None, None]
        for i in reversed(range(len(self.up))):
            h = self.up[i](h)
            h = F.interpolate(h, scale_factor=2, mode="nearest") if i else F.pixel_shuffle(h, 2)
            h = self.dec[i](F.leaky_relu(h + self.across[i](skips[i]), 0.2))
        return self.head(h)


class Critic(nn.Module):
    """Tells patches of photographs from finished ones; returns what it sees at each level, its verdict last.

    It is told where the region is, and where the drawing. On photographs of other people it did not learn; beside the
    photograph that was to be finished it does.
    """

    def __init__(self, n: int = 64) -> None:
        super().__init__()
        widths = (n, 2 * n, 4 * n, 6 * n)
        self.first = nn.Conv2d(5, n, 4, 2, 1)
        self.rest = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 4, 2 if i < 2 else 1, 1), nn.InstanceNorm2d(b, affine=True))
            for i, (a, b) in enumerate(pairwise(widths))
        )
        self.last = nn.Conv2d(widths[-1], 1, 4, 1, 1)

    def forward(self, x):
        seen = [F.leaky_relu(self.first(x), 0.2)]
        for block in self.rest:
            seen.append(F.leaky_relu(block(seen[-1]), 0.2))
        return [*seen, self.last(seen[-1])]


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


def blur(x, sigma: float):
    """Blur pictures of shape (n, channels, height, width)."""
    k = int(3 * sigma) * 2 + 1
    t = torch.arange(k, device=x.device, dtype=x.dtype) - k // 2
    g = torch.exp(-t * t / (2 * sigma * sigma))
    g = (g / g.sum()).view(1, 1, 1, k)
    c = x.shape[1]
    x = F.conv2d(F.pad(x, (k // 2, k // 2, 0, 0), mode="replicate"), g.expand(c, 1, 1, k), groups=c)
    return F.conv2d(F.pad(x, (0, 0, k // 2, k // 2), mode="replicate"), g.transpose(2, 3).expand(c, 1, k, 1), groups=c)


def grown(mask, pixels: int):
    """Grow a mask."""
    return F.max_pool2d(mask, 2 * pixels + 1, 1, pixels)


def patches(region, verdict):
    """Return which patches of a verdict, (n, 1, h, w), look at a region."""
    return (F.adaptive_max_pool2d(region, verdict.shape[-2:]) > 0).float()


def mean_over(values, weights):
    return (values * weights).sum() / weights.sum().clamp(min=1)


class Trainer:
    """The network, its critic, and one step of each."""

    def __init__(self, data: Data, options: argparse.Namespace) -> None:
        self.data, self.rate = data, options.rate
        self.network = Network().to(DEVICE).to(memory_format=torch.channels_last)
        self.mean = Network().to(DEVICE)
        self.mean.load_state_dict(self.network.state_dict())
        self.critic = Critic().to(DEVICE).to(memory_format=torch.channels_last)
        self.steps = torch.optim.Adam(self.network.parameters(), options.rate, betas=(0.5, 0.99))
        self.critic_steps = torch.optim.Adam(self.critic.parameters(), options.rate, betas=(0.5, 0.99))
        self.perception = Perception(options.features).to(DEVICE).requires_grad_(False)
        self.adversary, self.step, self.spent = options.adversary, 0, 0.0
        self.apart = torch.zeros((), device=DEVICE)  # how well the critic tells: its pull is as strong

    def state(self) -> dict:
        """Return all that training goes on from."""
        parts = {name: getattr(self, name).state_dict() for name in LEARNED}
        return {**parts, "step": self.step, "spent": self.spent, "apart": self.apart}

    def resume(self, state: dict) -> None:
        """Go on from what :meth:`state` returned."""
        for name in LEARNED:
            getattr(self, name).load_state_dict(state[name])
        self.step, self.spent, self.apart = state["step"], state["spent"], state["apart"].to(DEVICE)

    def run(self, size: int, n: int, pace: float) -> dict[str, float]:
        """Do one step; ``pace`` is the share of the full rate of learning."""
        torch.manual_seed(self.step)  # so that it does not matter where training was broken off
        for group in self.steps.param_groups + self.critic_steps.param_groups:
            group["lr"] = self.rate * pace
        with torch.no_grad():
            inputs, photo, region, known, features = self.data.batch(n, size)
            edge = torch.maximum(blur(grown(region, size // 64), size / 128), region)
            drawn, wanted = inputs[:, 3:4], photo * known
            places = torch.cat([region, drawn], 1)
        with torch.autocast(DEVICE, torch.bfloat16):
            made = self.network(inputs.contiguous(memory_format=torch.channels_last)).float()
        leaf = made.detach().requires_grad_(True)
        whole = (leaf * edge + photo * (1 - edge)) * known
        crisp, real = slice(n // 3, None), slice(n - n // 3, None)
        figures = self._teach(
            torch.cat([whole, places], 1).detach()[crisp], torch.cat([wanted, places], 1)[real], region[crisp]
        )
        weight = (edge + 0.02) * known * (0.5 + 1.5 * drawn + EYE_WEIGHT * features)
        l1 = ((leaf - photo).abs() * weight).sum() / weight.sum() / 3
        with torch.autocast(DEVICE, torch.bfloat16):
            with torch.no_grad():
                goal = self.perception(wanted)
            felt = sum(
                (p - q).abs().mean() / (q.abs().mean() + 1e-4)
                for p, q in zip(self.perception(whole), goal, strict=True)
            )
            verdict = self.critic(torch.cat([whole, places], 1)[crisp])[-1]
            fooled = -mean_over(verdict, patches(region[crisp], verdict))
        near, far = (
            torch.autograd.grad(term, leaf, retain_graph=True)[0].float() for term in (3 * l1 + 0.5 * felt, fooled)
        )
        share = self.adversary * min(1.0, max(0.0, self.step / FIRST - 1)) * self.apart.clamp(0, 1)
        far = far * (1 - 0.5 * features)  # here the photograph counts for more
        pull = near * (1 - 0.4 * region * (1 - drawn)) + share * near.norm() / (far.norm() + 1e-12) * far
        self.steps.zero_grad(set_to_none=True)
        made.backward(pull)
        nn.utils.clip_grad_norm_(self.network.parameters(), 5.0)
        self.steps.step()
        with torch.no_grad():
            keep = min(0.999, (self.step + 1) / (self.step + 10))
            torch._foreach_lerp_(list(self.mean.parameters()), list(self.network.parameters()), 1 - keep)
        self.step += 1
        return {"l1": l1.item(), "felt": felt.item(), **figures} if figures else {}

    def _teach(self, made, shown, region) -> dict[str, float]:
        """Teach the critic; the last rows of ``made`` were to become the rows of ``shown``."""
        with torch.autocast(DEVICE, torch.bfloat16):
            no, yes = self.critic(made)[-1], self.critic(shown)[-1]
        there = patches(region, no)
        here = there[-len(shown) :]
        loss = mean_over(F.relu(1 + no), there) + mean_over(F.relu(1 - yes), here)
        self.critic_steps.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_steps.step()
        self.apart.lerp_((mean_over(yes, here) - mean_over(no, there)).detach().float(), 0.02)
        if (self.step + 1) % 400:
            return {}
        return {"no": mean_over(no, there).item(), "yes": mean_over(yes, here).item(), "apart": self.apart.item()}


def save(trainer: Trainer, folder: Path) -> None:
    """Write the weights, and the state under its final name only when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.half().cpu() for k, v in trainer.mean.state_dict().items()}, folder / "finisher.pt")
    torch.save(trainer.state(), folder / "state.part")
    (folder / "state.part").replace(folder / "state.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1440, help="in all; the rate falls towards its end")
    parser.add_argument("--until", type=float, help="second at which this call ends; at the end of all by default")
    parser.add_argument("--resume", type=Path, metavar="STATE", help="state.pt of an earlier call, to go on from")
    parser.add_argument("--begin", type=Path, metavar="WEIGHTS", help="weights of a network of this form to begin with")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--adversary", type=float, default=0.7, help="pull of the critic, in pulls of the photograph")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(1)
    data = Data(options.pairs)
    trainer = Trainer(data, options)
    if options.begin:
        weights = {name: value.float() for name, value in torch.load(options.begin, map_location=DEVICE).items()}
        for network in (trainer.network, trainer.mean):
            network.load_state_dict(weights)
    if options.resume:
        trainer.resume(torch.load(options.resume, map_location=DEVICE))
    print("weights", sum(p.numel() for p in trainer.network.parameters()) / 1e6, "views", len(data.photos), flush=True)
    sizes = (
        ((256, 32), (256, 32), (128, 80), (512, 10)) if DEVICE == "cuda" else ((256, 4), (256, 4), (128, 10), (512, 3))
    )
    begun = time.time() - trainer.spent
    until = min(options.seconds, options.until or options.seconds)
    while (spent := time.time() - begun) < until:
        size, n = sizes[trainer.step % len(sizes)]
        pace = min(1.0, (trainer.step + 1) / 200, max(0.02, (1 - spent / options.seconds) / 0.3))
        if figures := trainer.run(size, n, pace):
            print(trainer.step, f"{spent:.0f}s", *(f"{k} {v:.3f}" for k, v in figures.items()), flush=True)
    trainer.spent = spent
    save(trainer, options.output)
    print("done", trainer.step, f"{trainer.spent:.0f}s", flush=True)


if __name__ == "__main__":
    main()
