"""Only the page itself is answered, on this machine or with the token; nothing is changed."""

import re
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from hierindex.errors import InputError
from hierindex.serve import explore
from hierindex.serve.explorer import PAGE
from hierindex.serve.server import Guard, hosts_of


def port_of(client) -> int:
    return urlsplit(str(client.base_url)).port


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost", "localhost:1", "", "{port}", "a b"]
)
@pytest.mark.parametrize("path", ["/", "/assets/index.html", "/api/index"])
def test_another_host_is_refused(client, path, host) -> None:
    answer = client.get(path, headers={"Host": host.format(port=port_of(client))})
    assert answer.status_code in (400, 403)
    assert "hierindex" not in answer.text


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_answered(client, host) -> None:
    answer = client.get("/api/index", headers={"Host": host.format(port=port_of(client))})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://{host}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
    ],
)
def test_other_sites_are_refused(client, headers) -> None:
    host = f"127.0.0.1:{port_of(client)}"
    given = {name: value.format(host=host) for name, value in headers.items()}
    answer = client.get("/api/index", headers=given)
    assert (answer.status_code, [*answer.json()]) == (403, ["error"])
    assert "access-control-allow-origin" not in answer.headers


def test_the_page_itself_and_links_to_it_are_answered(client) -> None:
    own = {"Origin": f"http://127.0.0.1:{port_of(client)}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/index", headers=own).status_code == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/assets/page.css", "/api/index", "/api/node", "/none"])
def test_every_answer_forbids_foreign_script(client, path) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*policy}
    assert not re.search("unsafe|http|\\*", headers["content-security-policy"])
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("path", sorted(PAGE.iterdir()), ids=lambda path: path.name)
def test_the_page_is_that_of_the_package(client, path) -> None:
    answer = client.get(f"/assets/{path.name}")
    assert answer.content == path.read_bytes()
    kinds = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
    assert answer.headers["content-type"].startswith(kinds[path.suffix[1:]])


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets//etc/passwd",
        "/assets/",
        "/api/",
        "/api/nodes/x",
        "/api/__init__",
        "/favicon.ico",
    ],
)
def test_nothing_else_is_served(client, path) -> None:
    assert client.get(path).status_code == 404
    assert client.get(path).json()["error"].startswith("Not Found")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(client, method) -> None:
    answer = client.request(method, "/api/index")
    assert (answer.status_code, [*answer.json()]) == (405, ["error"])


def test_other_machines_need_the_token(own) -> None:
    with explore(own, 0, "0.0.0.0") as explorer:
        url = urlsplit(explorer.page)
        with httpx.Client(base_url=f"http://127.0.0.1:{url.port}", timeout=60) as client:
            for path in ("/", "/assets/main.js", "/api/index", "/?token=", "/?token=x"):
                answer = client.get(path)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
                assert "token" in answer.json()["error"]
            cookies = f"hierindex-token-{url.port}=x; a=b"
            forged = client.get("/api/index", headers={"Cookie": cookies})
            assert forged.status_code == 401
            assert client.get(f"/api/index?{url.query}").status_code == 401
            welcome = client.get(f"/?{url.query}")
            assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
            assert "HttpOnly" in welcome.headers["set-cookie"]
            for path in ("/", "/api/index"):
                assert client.get(path).status_code == 200
            foreign = client.get("/api/index", headers={"Sec-Fetch-Site": "cross-site"})
            assert foreign.status_code == 403


def test_the_token_is_found_among_cookies_of_others(own) -> None:
    with explore(own, 0, "0.0.0.0") as explorer, explore(own, 0, "0.0.0.0") as other:
        with httpx.Client(timeout=60, follow_redirects=True) as browser:
            ports = [urlsplit(each.url).port for each in (explorer, other)]
            for port, each in zip(ports, (explorer, other), strict=True):
                welcome = f"http://127.0.0.1:{port}/?{urlsplit(each.page).query}"
                assert browser.get(welcome).status_code == 200
            for port in ports:  # the second explorer's cookie stands beside the first's
                assert browser.get(f"http://127.0.0.1:{port}/api/index").status_code == 200
            own_cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        for odd in ('prefs={"a":1}', "a b", "x[0]=1", 'k="a', "\xe9=1", "="):
            cookies = f"{odd}; {own_cookies}; {odd}".encode("latin-1")
            url = f"http://127.0.0.1:{ports[0]}/api/index"
            assert httpx.get(url, headers={"Cookie": cookies}, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("names", "port", "host", "status"),
    [
        (["127.0.0.1"], 80, "127.0.0.1", 200),
        (["127.0.0.1"], 80, "127.0.0.1:80", 200),
        (["127.0.0.1"], 81, "127.0.0.1", 403),
        (["127.0.0.1"], 80, "evil.example", 403),
        (["MyBox"], 8733, "mybox:8733", 200),
        (["mybox"], 8733, "MyBox:8733", 200),
        (["MyBox"], 80, "mybox", 200),
    ],
)
def test_browsers_lower_names_and_leave_out_port_80(names, port, host, status) -> None:
    guard = Guard(PlainTextResponse("ok"), hosts_of(names, port))
    headers = {"Host": host, "Origin": f"http://{host.lower()}"}
    answer = TestClient(guard).get("/", headers=headers)
    assert answer.status_code == status
    if status == 403:
        said = f"Nothing is answered at {host!r}; use the address that was printed."
        assert answer.json() == {"error": said}


def test_no_token_is_needed_on_this_machine(own) -> None:
    for host in ("localhost", "127.0.0.2"):
        with explore(own, 0, host) as explorer:
            assert explorer.page == explorer.url


def test_an_address_that_cannot_be_served(own) -> None:
    with explore(own, 0) as explorer:
        port = urlsplit(explorer.url).port
        assert repr(explorer) == f"Server('http://127.0.0.1:{port}/')"
        with pytest.raises(InputError, match=f"Cannot listen on 127.0.0.1:{port}"):
            explore(own, port)
    for port, host in ((99999, "127.0.0.1"), (0, "no.such.name.invalid"), (0, "192.0.2.1")):
        with pytest.raises(InputError, match=f"Cannot listen on {host}:{port}"):
            explore(own, port, host)


def test_the_token_is_not_in_the_repr() -> None:
    assert "s3cret" not in repr(Guard(PlainTextResponse("It is."), token="s3cret"))
