"""A registry of images that is not AWS's, over TLS, as far as those who look at an image go."""

import hashlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import run as run_program


class Handler(BaseHTTPRequestHandler):
    """As the OCI distribution API says, with a token for everybody."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        registry = self.server.registry
        registry.seen.append(f"{self.command} {self.path}")
        if self.path.startswith("/token"):
            return self.reply(200, json.dumps({"token": "for-everybody"}).encode())
        if self.path.startswith("/elsewhere/"):
            assert "Authorization" not in self.headers  # it is for the registry alone
            return self.reply(200, registry.texts[self.path.rpartition("/")[2]])
        realm = f"https://localhost:{self.server.server_port}/token"
        if registry.login:
            return self.reply(401, WWW_Authenticate='Basic realm="friends"')
        if self.headers.get("Authorization") != "Bearer for-everybody":
            return self.reply(401, WWW_Authenticate=f'Bearer realm="{realm}",service="reg, istry",scope="repository:a/b:pull"')
        kind, _, digest = self.path.removeprefix("/v2/a/b/").partition("/")
        if kind == "manifests" and digest in registry.texts:
            return self.reply(200, registry.texts[digest])
        if kind == "blobs" and digest in registry.texts:
            return self.reply(307, Location=f"https://localhost:{self.server.server_port}/elsewhere/{digest}")
        if self.path != "/v2/a/b/manifests/v1":
            return self.reply(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
        if registry.bare and self.command == "HEAD":
            return self.reply(405)
        assert "application/vnd.oci.image.index.v1+json" in self.headers["Accept"]
        said = {} if registry.bare else {"Docker_Content_Digest": registry.digest}
        return self.reply(200, registry.manifest, **said)

    do_HEAD = do_GET


class Registry:
    """On loopback, with the image a/b:v1. `texts`: what it has by digest."""
    login = bare = False

    def __init__(self, folder):
        certificate, secret = folder / "certificate", folder / "key"
        run_program(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                     "-addext", "subjectAltName=DNS:localhost", "-keyout", secret, "-out", certificate],
                    check=True, capture_output=True)
        self.certificate, self.seen, self.texts = certificate, [], {}
        self.push(b'{"schemaVersion": 2}')
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.registry = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, secret)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.image = f"localhost:{self.server.server_port}/a/b:v1"

    def put(self, text):
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        self.texts[digest] = text
        return digest

    def push(self, manifest):
        self.manifest, self.digest = manifest, self.put(manifest)

    def set_env(self, env):
        """The image sets that: an index, a manifest, a config."""
        config = self.put(json.dumps({"config": {"Env": [f"{name}={value}" for name, value in env.items()]}}).encode())
        manifest = self.put(json.dumps({"schemaVersion": 2, "config": {"digest": config}}).encode())
        self.push(json.dumps({"schemaVersion": 2, "manifests": [
            {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}},
            {"digest": manifest, "platform": {"os": "linux", "architecture": "amd64"}}]}).encode())
        return config

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
