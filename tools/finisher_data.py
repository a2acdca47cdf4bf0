"""Batches for ``tools/train_finisher.py``: pairs as ``tools/prepare_finisher.py`` writes them, varied on the GPU."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PHOTO = 512  # side of the photographs, in pixels
DARK, GREY, FOLLOWS = 0.25, 0.05, 0.5  # shares of pictures that are dark, without colour, whose drawing is as dark
TONES = (0.27, 0.82)  # brightness that drawn skin may have: exp of ksame.heads.surrogate's limits
LUMA = (0.299, 0.587, 0.114)


def unpack(paths: list[Path]):
    """Return photographs, masks, drawings, directions, each (n, channels, size, size); which photographs are real."""
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
    real = torch.tensor([i for i, photo in enumerate(pictures[::4]) if photo.shape[1] == PHOTO], device=DEVICE)
    return [
        *(torch.stack(rows).to(DEVICE) for rows in (photos, pictures[1::4], pictures[2::4], pictures[3::4])),
        real,
    ]


def uniform(*shape: int):
    """Return numbers from 0 to 1."""
    return torch.rand(*shape, device=DEVICE)


def relit(photo, drawing, where):
    """Vary light and colour of photographs and of drawings, (n, 3, size, size) from 0 to 1.

    A quarter of the photographs is dark, a twentieth has no colour at all: were some only faded, heads before a white
    wall would fade too. Who draws a surrogate knows skin only as it looks in the picture: half of the drawings become
    as dark as their photograph, the others less so. Eyeballs are always drawn in the same white.
    """
    n = len(photo)
    luma = torch.tensor(LUMA, device=DEVICE).view(1, 3, 1, 1)
    dark = (uniform(n, 1, 1, 1) < DARK) * uniform(n, 1, 1, 1) * 1.7
    gain = torch.exp((uniform(n, 3, 1, 1) - 0.5) * 0.24) * torch.exp((uniform(n, 1, 1, 1) - 0.5) * 0.7 - dark)
    gamma = torch.exp((uniform(n, 1, 1, 1) - 0.5) * 0.5)
    grey = uniform(n, 1, 1, 1) < GREY
    photo = (photo.clamp(0, 1).pow(gamma) * gain).clamp(0, 1)
    photo = torch.where(grey, (photo * luma).sum(1, keepdim=True), photo)
    skin = (drawing * luma * where).sum((1, 2, 3), keepdim=True) / where.sum((1, 2, 3), keepdim=True).clamp(min=1)
    skin = skin.clamp(*TONES)
    seen = (skin.pow(gamma) * (gain * luma).sum(1, keepdim=True)).clamp(*TONES)
    share = torch.where(uniform(n, 1, 1, 1) < FOLLOWS, 1.0, uniform(n, 1, 1, 1))
    tint = torch.exp((uniform(n, 3, 1, 1) - 0.5) * 0.08) * torch.exp((uniform(n, 1, 1, 1) - 0.5) * 0.2)
    high, low = drawing.amax(1, keepdim=True), drawing.amin(1, keepdim=True)
    white = ((0.25 - (high - low) / high.clamp(min=0.01)) / 0.15).clamp(0, 1) * (high > 0.5)
    darker = ((seen / skin).pow(share) - 1) * (1 - white) + 1
    return photo, (drawing * tint * darker).clamp(0, 1)


class Data:
    """Draws batches, varied on the GPU."""

    def __init__(self, paths: list[Path]) -> None:
        self.photos, self.masks, self.drawings, self.normals, self.real = unpack(paths)
        self.small = {PHOTO: self.photos}
        for size in (PHOTO // 2, PHOTO // 4):
            self.small[size] = torch.cat(
                [F.interpolate(part.float(), size=size, mode="area").round().byte() for part in self.photos.split(64)]
            )

    def batch(self, n: int, size: int):
        """Return inputs, targets, where the region is, what is known, and how much eyes and brows count, 0 to 1.

        The first third of the targets is soft, as small faces and films are; the last third are real photographs.
        """
        third = n // 3
        i = torch.randint(0, len(self.photos), (n,), device=DEVICE)
        i[n - third :] = self.real[torch.randint(0, len(self.real), (third,), device=DEVICE)]
        angle, zoom = (uniform(n) - 0.5) * 0.4, torch.exp((uniform(n) - 0.5) * 0.4)
        flip = torch.where(uniform(n) < 0.5, -1.0, 1.0)
        shift = (uniform(n, 2) - 0.5) * 0.12
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
        known = (masks[:, 2:3] > 0.999).float() * inside
        wide = (uniform(n, 1, 1, 1) < 0.85).float()
        region = ((masks[:, :1] * wide + masks[:, 1:2] * (1 - wide)) > 0.02).float()
        photo, drawing = relit(photo, drawing, where)
        photo, drawing = photo * 2 - 1, (drawing * 2 - 1) * where
        soft = slice(0, third)
        low = int(size * (0.25 + 0.6 * float(torch.rand(()))))
        photo[soft] = F.interpolate(
            F.interpolate(photo[soft], size=low, mode="bilinear", antialias=True, align_corners=False),
            size=size, mode="bilinear", align_corners=False,
        )  # fmt: skip
        # other unknown parts: other people's heads, hands that were masked
        hole = uniform(n, 1, 1, 1) < 0.15
        at, radius = uniform(n, 2) * 2 - 1, 0.1 + 0.25 * uniform(n)
        lines = torch.linspace(-1, 1, size, device=DEVICE)
        far = torch.hypot(lines[None, None, :] - at[:, :1, None], lines[None, :, None] - at[:, 1:, None])
        known = known * (1 - (hole & (far[:, None] < radius.view(-1, 1, 1, 1))).float())
        noise = torch.randn_like(photo) * 0.08 * uniform(n, 1, 1, 1) ** 2
        outside = known * (1 - region)
        inputs = torch.cat([drawing, where, normal * where, (photo + noise) * outside, outside], 1)
        return inputs, photo, region, known, masks[:, 3:] * where
