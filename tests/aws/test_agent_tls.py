"""The agent directory brings all that speaking to AWS needs: in a root that holds nothing
else, no /proc and no /etc, TLS is spoken and the peer is checked against the agent's own
certificates. Here call_lines stands in for the agent's program."""

import json
import os
import subprocess

import pytest
import stoker
from aws import Aws

CALL_LINES = stoker.BINARY.parent / "tests/call_lines"
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
RUN = [*AS_ROOT, "/usr/sbin/chroot"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key", folder / "certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both = folder / "both"
    both.write_text(key.read_text() + certificate.read_text())
    server = Aws(folder, certificate=both)
    server.make_bucket("bucket")
    server.words = certificate.read_text()
    yield server
    server.stop()


@pytest.fixture
def root(tmp_path):
    libcurl, = [line.split()[-1] for line in subprocess.run(
        ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
        if "libcurl.so.4 (libc6,x86-64" in line or "libcurl.so.4 (libc6,AArch64" in line][:1]
    subprocess.run([stoker.ROOT / "cmake/bundle_agent.sh", tmp_path / "agent", "/etc/ssl/certs/ca-certificates.crt",
                    stoker.ROOT / "jobs/node/start.sh", CALL_LINES, libcurl], check=True)
    return tmp_path


def put(server, root, **more):
    call = [{"operation": "PutObject", "bucket": "bucket", "key": "key", "body": "content"}]
    env = server.env(**more, HOME="/")
    done = subprocess.run([*RUN, root, "/agent/lib/loader", "--library-path", "/agent/lib", "/agent/stoker-node"],
                          input=json.dumps(call) + "\n", env=env, text=True, capture_output=True, timeout=300)
    # At the end the leak checker wants /proc and its options too, which it would read there.
    assert done.returncode == 0 or "LeakSanitizer has encountered a fatal error" in done.stderr, done.stderr
    return json.loads(done.stdout)


def test_a_stranger_is_refused_and_for_no_want_of_certificates(server, root):
    result = put(server, root)
    assert result["exit"] == 4 and "certificate problem" in result["error"], result


def test_whom_the_agents_certificates_vouch_for_is_spoken_to(server, root):
    with open(root / "agent/lib/ca-certificates.crt", "a") as file:
        file.write(server.words)
    assert put(server, root)["status"] == 200
    assert server.objects("bucket") == {"key": b"content"}


def test_the_agent_stays_small(root):
    """Every node of every attempt fetches it."""
    size = sum(path.stat().st_size for path in (root / "agent/lib").iterdir()
               if not path.name.startswith(("libasan", "libubsan", "libstdc++", "libgcc_s")))
    assert size < 24 << 20
