"""The OpenAPI description: complete, and no request that it allows or forbids makes the server fail."""

import json

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema_rs import validator_for
from schemathesis import GenerationMode
from starlette.testclient import TestClient
from support.serving import here_app

from accord.app.server.limits import Limits

EXAMPLES = 20  # for each path and mode; docs/server.md tells how to try many more


@pytest.fixture(scope="module")
def client(model, data_folder, tmp_path_factory):
    limits = Limits(megabytes=1, nodes=200, edges=400, graphs=3)
    with TestClient(here_app(model, tmp_path_factory.mktemp("uploads"), limits, str(data_folder))) as made:
        yield made


@pytest.fixture(scope="module")
def description(client):
    return client.get("/openapi.json").json()


def test_every_path_is_described_with_an_example_and_its_refusals(description):
    assert set(description["paths"]) == {
        f"/api/{name}" for name in ("answers", "draw", "explain", "graphs", "health", "model", "predict", "sweeps")
    }
    for path, methods in description["paths"].items():
        for operation in methods.values():
            assert operation["summary"] and operation["operationId"]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                assert "example" in body, path
                assert {"400", "404", "413", "422", "503", "504"} <= set(operation["responses"])
    text = json.dumps(description)
    for reference in {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
        assert reference in description["components"]["schemas"]


def test_examples_obey_their_schemas(description):
    for methods in description["paths"].values():
        for operation in methods.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                schema = {**body["schema"], "components": description["components"]}
                assert validator_for(schema).is_valid(body["example"]), operation["operationId"]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
@pytest.mark.parametrize("name", ["answers", "draw", "explain", "graphs", "predict", "sweeps"])
def test_no_request_makes_the_server_fail(client, description, name, mode):
    operation = schemathesis.openapi.from_dict(description)[f"/api/{name}"]["POST"]
    statuses = set()

    @settings(max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def attack(case):
        send(case)
        if isinstance(case.body, dict) and "graph" in case.body:  # reach what is done with a good graph
            case.body = {**case.body, "graph": {"id": "test-0"}}
            send(case)

    def send(case):
        sent = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
        response = client.request(sent.method, sent.url, content=sent.body, headers=dict(sent.headers))
        statuses.add(response.status_code)
        assert response.status_code < 500, response.text
        assert str(response.status_code) in description["paths"][f"/api/{name}"]["post"]["responses"], response.text
        assert response.headers["content-type"] == "application/json"

    attack()
    assert statuses
