"""Training the finisher: what is broken off goes on as if it had not been. Needs PyTorch, which ksame does not."""

import argparse
import io

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
finisher_data, train_finisher = map(pytest.importorskip, ("tools.finisher_data", "tools.train_finisher"))


def picture(pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def made(tmp_path):
    """Return data of two views and the options of training."""
    rng = np.random.default_rng(1)
    masks = np.zeros((128, 128, 4), np.uint8)  # both regions, what is known, how much it counts
    masks[40:90, 40:90, :2], masks[..., 2], masks[50:60, 50:80, 3] = 255, 255, 255
    sides = (512, None, 256, 256)
    views = [
        masks if side is None else rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        for _ in range(2)
        for side in sides
    ]
    parts = [picture(view) for view in views]
    np.savez(
        tmp_path / "pairs.npz",
        blob=np.frombuffer(b"".join(parts), np.uint8),
        offsets=np.cumsum([0, *map(len, parts)]),
    )
    weights = [torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(1)).half(), torch.zeros(4).half()]
    torch.save([("conv", True, weights, (2, 1, True))], tmp_path / "features.pt")
    options = argparse.Namespace(features=tmp_path / "features.pt", rate=3e-4, adversary=0.7)
    return train_finisher.Data([tmp_path / "pairs.npz"]), options


def trainer_of(made):
    torch.manual_seed(0)
    return train_finisher.Trainer(*made)


def test_training_that_was_broken_off_goes_on_as_if_it_had_not_been(made, tmp_path, monkeypatch):
    monkeypatch.setattr(train_finisher, "FIRST", 1)  # the critic pulls at once
    through, first, second = (trainer_of(made) for _ in range(3))
    for _ in range(3):
        through.run(128, 3, 1.0)
    for _ in range(2):
        first.run(128, 3, 1.0)
    first.spent = 7.5
    train_finisher.save(first, tmp_path / "out")
    second.resume(torch.load(tmp_path / "out" / "state.pt"))
    assert second.spent == 7.5
    second.run(128, 3, 1.0)
    for name in ("network", "mean", "critic"):
        after, wanted = (getattr(one, name).state_dict() for one in (second, through))
        assert all(torch.equal(after[key], wanted[key]) for key in wanted), name
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["finisher.pt", "state.pt"]


def test_drawn_skin_may_be_as_dark_as_a_dark_photograph(monkeypatch):
    monkeypatch.setattr(finisher_data, "DARK", 1.0)
    monkeypatch.setattr(finisher_data, "FOLLOWS", 1.0)
    torch.manual_seed(0)
    skin = torch.tensor([0.8, 0.6, 0.5]).view(1, 3, 1, 1).expand(64, 3, 8, 8).clone()
    skin[..., :4] = torch.tensor([196, 186, 182]).view(1, 3, 1, 1) / 255  # eyeballs
    photo, drawing = finisher_data.relit(skin, skin, torch.ones(64, 1, 8, 8))
    seen, drawn = photo[..., 4:].mean((1, 2, 3)), drawing[..., 4:].mean((1, 2, 3))
    assert seen.min() < 0.15
    assert np.corrcoef(seen.clamp(*finisher_data.TONES), drawn)[0, 1] > 0.9
    assert drawing[..., :4].mean((1, 2, 3)).min() > 0.6
