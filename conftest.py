"""For tests and for the examples in docstrings alike."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_state_of_the_user(tmp_path_factory):
    """Keep the user's own ledger out of fixtures that many tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSAME_STATE", str(tmp_path_factory.mktemp("state")))
        yield
