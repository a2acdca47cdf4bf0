import numpy as np
import pytest
from skimage import data

from ksame.models.detector import Face, FaceDetector
from ksame.models.mesh import FaceMesh, Mesh
from ksame.models.recogniser import SFace
from ksame.models.store import State, Store


def _ready(name: str) -> Store:
    store = Store()
    if store.offline and store.state(name) is not State.READY:
        pytest.skip(f"KSAME_OFFLINE is set and the model {name} is not in {store.folder}")
    return store


@pytest.fixture(scope="session")
def astronaut() -> np.ndarray:
    """A real photograph, 512 x 512, of one smiling person who looks at the camera."""
    return np.asarray(data.astronaut())


@pytest.fixture(scope="session")
def detector() -> FaceDetector:
    return FaceDetector(_ready("yunet"))


@pytest.fixture(scope="session")
def face(detector: FaceDetector, astronaut: np.ndarray) -> Face:
    return detector.detect(astronaut)[0]


@pytest.fixture(scope="session")
def face_mesh() -> FaceMesh:
    return FaceMesh(_ready("face-landmarker"))


@pytest.fixture(scope="session")
def mesh(face_mesh: FaceMesh, astronaut: np.ndarray, face: Face) -> Mesh:
    return face_mesh.fit(astronaut, face)


@pytest.fixture(scope="session")
def sface() -> SFace:
    return SFace(_ready("sface"))
