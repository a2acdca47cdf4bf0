"""Metadata that go over: by name or in groups; a picture of the original never."""

import io

import pytest
from PIL import ExifTags, Image

from ksame.errors import UsageError
from ksame.scene.media import EncoderConfig, check_requests, open_media
from scene.clips import contents, drawn_frame, make_clip, through

SERIAL, MAKER, THUMBNAIL = b"SN-4711", b"makers own", b"\xff\xd8\xff thumbnail of the original"


@pytest.fixture
def photo(tmp_path):
    exif = Image.Exif()
    exif[ExifTags.Base.Artist] = "A. Photographer"
    exif[ExifTags.Base.Model] = "Camera 7"
    exif[ExifTags.Base.ImageResources] = THUMBNAIL
    exif[ExifTags.Base.XMLPacket] = b"<x:xmpmeta place='Vienna'/>"
    inner = exif.get_ifd(ExifTags.IFD.Exif)
    inner[ExifTags.Base.DateTimeOriginal] = "2021:02:03 04:05:06"
    inner[ExifTags.Base.BodySerialNumber] = SERIAL.decode()
    inner[ExifTags.Base.MakerNote] = MAKER
    inner[ExifTags.Base.FNumber] = 2.8
    place = exif.get_ifd(ExifTags.IFD.GPSInfo)
    place[ExifTags.GPS.GPSLatitudeRef] = "N"
    place[ExifTags.GPS.GPSLatitude] = (48.0, 12.0, 30.0)
    path = tmp_path / "photo.jpg"
    Image.fromarray(drawn_frame(5)).save(path, exif=exif)
    return path


def kept(photo, *names):
    out = photo.with_name("out.jpg")
    out.unlink(missing_ok=True)
    through(photo, out, EncoderConfig(keep_metadata=names))
    with Image.open(io.BytesIO(out.read_bytes())) as picture:
        exif = picture.getexif()
        inner, place = dict(exif.get_ifd(ExifTags.IFD.Exif)), dict(exif.get_ifd(ExifTags.IFD.GPSInfo))
        tags = {ExifTags.TAGS[tag] for tag in (*exif, *inner)} - {"ExifOffset", "GPSInfo"}
    return tags, place, out.read_bytes()


def test_a_date_is_a_date_and_nothing_else(photo):
    tags, place, written = kept(photo, "date")
    assert tags == {"DateTimeOriginal"}
    assert not place
    assert b"2021:02:03" in written


def test_all_is_what_holds_no_place_no_number_and_no_picture(photo):
    tags, place, written = kept(photo, "all")
    assert tags == {"Artist", "Model", "DateTimeOriginal", "FNumber"}
    assert not place
    for secret in (SERIAL, MAKER, THUMBNAIL, b"xmpmeta"):
        assert secret not in written


def test_a_place_goes_over_only_by_its_name(photo):
    tags, place, _ = kept(photo, "location")
    assert not tags
    assert place[ExifTags.GPS.GPSLatitude] == (48.0, 12.0, 30.0)


def test_a_serial_number_goes_over_only_by_its_name(photo):
    assert kept(photo, "BodySerialNumber")[0] == {"BodySerialNumber"}


@pytest.mark.parametrize("name", ["ImageResources", "MakerNote", "XMLPacket", "GPSInfo", "JPEGInterchangeFormat"])
def test_what_may_hold_a_picture_is_refused_by_any_name(photo, name):
    with pytest.raises(UsageError, match=f"no entry '{name}'.*Groups of them: date, location, all"):
        check_requests([open_media(photo)], EncoderConfig(keep_metadata=(name,)), ())


RECORDED = {
    "title": "Ward 7",
    "creation_time": "2020-01-02T03:04:05.000000Z",
    "location": "+48.2082+016.3738/",
    "VENDOR_SERIAL": "4711",
    "thumbnail_base64": "/9j/4AAQ",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("date", {"creation_time"}), ("all", {"title", "creation_time"}), ("location", {"location"})],
)
def test_groups_of_a_recording(name, expected, tmp_path):
    source = make_clip(tmp_path / "clip.mkv", metadata=RECORDED, n=6)
    through(source, tmp_path / "out.mkv", EncoderConfig(keep_metadata=(name,)))
    found = {key.lower() for key in contents(tmp_path / "out.mkv")[1]}
    assert expected <= found
    assert not found & ({key.lower() for key in RECORDED} - expected)


def test_a_group_may_be_empty(photo):
    check_requests([open_media(photo)], EncoderConfig(keep_metadata=("date", "all", "location")), ())
