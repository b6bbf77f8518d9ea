"""Commands on an index in an object store: S3's protocol, spoken by a server on loopback."""

import json

import pytest
from bucket import bucket
from platformdirs import user_cache_path

AT = "--index", "s3://library/books"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


@pytest.fixture
def library(monkeypatch, tmp_path):
    with bucket() as url:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        exported = user_cache_path("hierindex", appauthor=False) / "exported"
        exported.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        (tmp_path / "hierindex").mkdir()
        (tmp_path / "hierindex" / "exported").symlink_to(exported)
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "storm.txt").write_text("The storm broke the lamp of the tower.")
        monkeypatch.chdir(tmp_path)
        yield tmp_path / "docs"


def test_the_life_of_an_index_in_a_bucket(library, run) -> None:
    status, _, err = run("info", *AT)
    assert (status, err.count("\n")) == (2, 1)
    assert "s3://library/books" in err
    assert run("build", "docs", *AT)[0] == 0
    (library / "new.txt").write_text("The keeper painted the lighthouse green.")
    assert run("update", *AT)[0] == 0
    asked = json.loads(run("query", "Who painted the lighthouse?", *AT, "--json")[1])
    assert asked["citations"][0]["document"] == "new.txt"
    assert run("delete", "new.txt", *AT)[0] == 0
    assert "new.txt" not in run("tree", *AT)[1]
    assert run("outline", *AT)[0] == 0
    assert run("verify", *AT)[0] == 0
    assert not (library.parent / "s3:").exists()
