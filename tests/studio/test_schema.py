"""The API against its own description: whatever is sent, the server never fails, and answers as it says."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from studio.conftest import Api

schemathesis = pytest.importorskip("schemathesis")

QUICK = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def described(server, access, media, monkeypatch):
    """The schema, and a project with a film, its tracks and a job: jobs are noted, but run nothing."""
    monkeypatch.setattr("ksame.studio.jobs.Jobs._launch", lambda self, project, number: None)
    server.headers["authorization"] = f"Bearer {access.token}"
    trial = Api(server).begin("scene")
    trial.add(media / "m12.jpg")
    schema = schemathesis.openapi.from_asgi(
        "/api/openapi.json", server.app, headers={"authorization": f"Bearer {access.token}"}
    )
    return schema, trial


CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


def send_all(operation, mode, trial, token):
    """Send requests of one operation; return the status codes. Those of a project go to one that is there."""
    whole = operation.method == "delete" and operation.path == "/api/projects/{project}"
    seen = set()

    @QUICK
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        if "project" in (case.path_parameters or {}) and not whole:
            case.path_parameters["project"] = trial.project
        answer = case.call(headers={"authorization": f"Bearer {token}"})
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    try:
        send()
    except Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, "there is no wrong request"
    return seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that make and send requests
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_nothing_that_is_sent_makes_the_server_fail(described, access, mode):
    schema, trial = described
    operations = [result.ok() for result in schema.get_all_operations()]
    seen = {operation.label: send_all(operation, mode, trial, access.token) for operation in operations}
    assert len(seen) >= 20
    assert not [each for codes in seen.values() for each in codes if each >= 500]
    expected = {200, 201, 204, 404, 409, 422} if mode is schemathesis.GenerationMode.POSITIVE else {422}
    assert set().union(*seen.values()) >= expected - {409}, seen
