"""Credentials that the machine itself has: of a container, of an instance, and what the
process remembers of them."""

import time

import pytest
from who import ACCOUNT, CANARY, SHORT, Server, instance


# --- containers --------------------------------------------------------------------


def test_a_container_with_its_token_from_variable_and_file(world, tmp_path):
    world.aws.settings(container={"authorization": "Basic abc", "seconds": 3600})
    url = world.aws.url + "/v2/credentials/x"
    got = world.ask(AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN="Basic abc")
    assert got["provider"] == "container" and got["account"] == ACCOUNT
    token = tmp_path / "token"
    token.write_text("Basic abc\n")
    world.aws.settings(container={"authorization": "Basic abc", "seconds": SHORT})
    who = world.start(AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=token,
                      AWS_CONTAINER_AUTHORIZATION_TOKEN="wrong")
    first = who.ask()
    token.write_text("Basic def")
    world.aws.settings(container={"authorization": "Basic def"})
    who.ask_until(lambda got: got["access"] != first["access"])


@pytest.mark.parametrize("url", [
    "http://example.com/x", f"http://127.0.0.1@{CANARY}.example/x", "http://169.254.170.2.evil.example/",
    "http://localhost.evil.example/", "http://127.0.0.1\\@evil.example/", "http://[::2]/x", "http:///x",
])
def test_a_container_is_asked_only_where_it_can_be(world, url):
    world.fails("names a host that needs TLS", AWS_CONTAINER_CREDENTIALS_FULL_URI=url)


def test_containers_that_fail(world, tmp_path):
    world.fails("does not begin with '/'", AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="@evil.example/")
    world.fails("is no URL", AWS_CONTAINER_CREDENTIALS_FULL_URI="file:///etc/passwd")
    url = world.aws.url + "/v2/credentials/" + CANARY
    env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}
    world.fails("control character", **env, AWS_CONTAINER_AUTHORIZATION_TOKEN=CANARY + "\r\nx: y")
    world.fails("is missing", **env, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=tmp_path / "no")
    world.aws.settings(container={"authorization": "right"})
    before = world.aws.mark()
    world.fails("it answered 401", "the authorization token is not the one", **env,
                AWS_CONTAINER_AUTHORIZATION_TOKEN=CANARY)
    assert world.aws.requests("GetCredentials", before) == 3
    with Server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz") as port:
        world.fails("cannot get the container's AWS credentials", "one JSON object",
                    AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://127.0.0.1:{port}/")
    # A port where nobody listens any more.
    world.fails("no answer", code=75, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://127.0.0.1:{port}/")


# --- the instance ------------------------------------------------------------------


def test_an_instance_with_version_2_and_renewal(world):
    world.aws.settings(imds={"role": "node-role", "seconds": 3600})
    who = world.start(**instance(world))
    first = who.ask()
    assert first["provider"] == "instance" and first["token"]
    assert who.ask()["access"] == first["access"]
    world.aws.settings(imds={"role": "node-role", "seconds": SHORT})
    who = world.start(**instance(world))
    first = who.ask()
    who.ask_until(lambda got: got["access"] != first["access"])


def test_a_proxy_is_never_told_of_the_instance(world):
    world.aws.settings(imds={"role": "r"})
    assert world.ask(**instance(world, http_proxy="http://127.0.0.1:1", HTTP_PROXY="http://127.0.0.1:1"))["access"]


def test_instances_that_fail(world):
    world.aws.settings(imds={"role": "r", "v1": True})
    world.fails("answered 404 to IMDSv2", "hop limit", **instance(world))
    world.aws.settings(imds={"role": ""})
    world.fails("no AWS credentials", "the instance has no role", **instance(world))
    with Server(None) as port:
        world.fails("no AWS credentials", "no instance metadata service",
                    **instance(world, AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{port}",
                               AWS_METADATA_SERVICE_TIMEOUT=None))
    refused = Server(b"HTTP/1.1 500 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    with refused as port:
        world.fails("answered 500", code=75, **instance(
            world, AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{port}",
            AWS_METADATA_SERVICE_NUM_ATTEMPTS="3"))
    assert len(refused.asked) == 3
    world.fails("is no URL", **instance(world, AWS_EC2_METADATA_SERVICE_ENDPOINT="169.254.169.254"))


# --- what is remembered ------------------------------------------------------------


def test_many_threads_ask_the_service_once(world):
    world.aws.settings(imds={"role": "r"})
    who = world.start(**instance(world))
    assert who.ask("threads", count=32) == {"same": 32}
    assert world.aws.requests("PutToken") == 1


def test_a_service_that_is_out_of_order_is_forgiven_while_the_keys_are_good(world):
    world.aws.settings(imds={"role": "r", "seconds": 30})
    who = world.start(**instance(world))
    first = who.ask()
    world.aws.settings(imds={"role": "r", "v1": True})
    since = world.aws.mark()
    # From a half of such a short life on others are sought, from two thirds on they must be had.
    while not world.aws.requests("PutToken", since):
        assert who.ask()["access"] == first["access"]
        time.sleep(0.1)
    got = who.ask_until(lambda got: got.get("access") != first["access"])
    assert "IMDSv1 is not used" in got["error"]
    world.aws.settings(imds={"role": "r"})
    assert who.ask()["access"] != first["access"]
