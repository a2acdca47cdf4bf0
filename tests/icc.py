"""Colour profiles of wide gamuts, made byte by byte, and what their numbers look like in sRGB."""

import struct

import numpy as np

# Primaries in CIE XYZ under D50, one column per channel (ICC.1 and the specifications of the spaces).
SRGB = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])
ADOBE_RGB = np.array([[0.60974, 0.20528, 0.14919], [0.31111, 0.62567, 0.06322], [0.01947, 0.06087, 0.74457]])
DISPLAY_P3 = np.array([[0.51512, 0.29198, 0.15710], [0.24120, 0.69225, 0.06657], [-0.00105, 0.04189, 0.78407]])
D50 = (0.9642, 1.0, 0.8249)
_SRGB_CURVE = (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)


def _fixed(*values):
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


def _curve(gamma):
    if gamma is None:
        return b"para" + bytes(4) + struct.pack(">HH", 3, 0) + _fixed(*_SRGB_CURVE)
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)


def _profile(space, tags):
    at, table, body = 128 + 4 + 12 * len(tags), b"", b""
    for name, data in tags.items():
        table += name + struct.pack(">II", at + len(body), len(data))
        body += data
    size = at + len(body)
    head = struct.pack(">I4sI4s4s4s", size, bytes(4), 0x04200000, b"mntr", space, b"XYZ ")
    head += struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + _fixed(*D50)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def profile(primaries, gamma=None):
    """The profile of an RGB space; without a gamma it has sRGB's curve."""
    names = (b"rXYZ", b"gXYZ", b"bXYZ")
    columns = {name: b"XYZ " + bytes(4) + _fixed(*column) for name, column in zip(names, primaries.T, strict=True)}
    curves = dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), _curve(gamma))
    return _profile(b"RGB ", {b"wtpt": b"XYZ " + bytes(4) + _fixed(*D50), **columns, **curves})


def grey_profile(gamma):
    """The profile of a grey space."""
    return _profile(b"GRAY", {b"wtpt": b"XYZ " + bytes(4) + _fixed(*D50), b"kTRC": _curve(gamma)})


def encoded(linear):
    """Linear light as sRGB writes it."""
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def decoded(values, gamma=None):
    """Values in [0, 1] as linear light."""
    if gamma is not None:
        return values**gamma
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def in_srgb(values, primaries, gamma=None):
    """What a picture of shape (height, width, 3) in [0, 1] with a profile is in sRGB."""
    return encoded(decoded(values, gamma) @ (np.linalg.inv(SRGB) @ primaries).T)
