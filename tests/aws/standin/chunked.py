"""Bodies in the encoding aws-chunked, as SDKs stream them: taken apart, with the
signatures of their chunks and the checksums that trail them."""

import hashlib
import hmac

from standin import sigv4
from standin.errors import Refusal
from standin.wire import Body

UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
SIGNED = ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")


def broken(why):
    return Refusal("IncompleteBody", f"The request body is no valid aws-chunked encoding: {why}")


class Reader:
    def __init__(self, pieces):
        self.pieces, self.buffer = iter(pieces), bytearray()

    def more(self):
        piece = next(self.pieces, None)
        if piece is None:
            raise broken("it ends too soon")
        self.buffer += piece

    def line(self):
        while (end := self.buffer.find(b"\r\n")) < 0:
            self.more()
        found = bytes(self.buffer[:end])
        del self.buffer[:end + 2]
        return found.decode("latin-1")

    def take(self, size):
        while size:
            if not self.buffer:
                self.more()
            piece = bytes(self.buffer[:size])
            del self.buffer[:size]
            size -= len(piece)
            yield piece


class ChunkSigner:
    """Each chunk's signature is made from the one before."""

    def __init__(self, claim, secret):
        self.claim, self.last = claim, claim.signature
        self.key = sigv4.signing_key(secret, claim.day, claim.region, claim.service)

    def check(self, kind, digests, given):
        text = "\n".join((f"AWS4-HMAC-SHA256-{kind}", self.claim.date, self.claim.scope, self.last, *digests))
        self.last = hmac.new(self.key, text.encode(), "sha256").hexdigest()
        if not hmac.compare_digest(self.last, given):
            raise Refusal("SignatureDoesNotMatch", "The signature of a chunk does not match", 403)


def decode(request, claim, secret):
    """Put what the body holds in its place, and trailers among the headers."""
    how = request.header("x-amz-content-sha256")
    if how != UNSIGNED and how not in SIGNED:
        raise Refusal("NotImplemented", f"The stand-in does not read {how}", 501)
    signer = ChunkSigner(claim, secret) if how in SIGNED else None
    reader, plain = Reader(request.body.walk()), Body(request.body.folder)
    while True:
        size, _, extension = reader.line().partition(";")
        try:
            size = int(size, 16)
        except ValueError:
            raise broken("a chunk has no size") from None
        digest = hashlib.sha256()
        for piece in reader.take(size):
            digest.update(piece)
            plain.write(piece)
        if signer:
            signer.check("PAYLOAD", (sigv4.EMPTY, digest.hexdigest()), extension.removeprefix("chunk-signature="))
        if not size:
            break
        if reader.line():
            raise broken("a chunk is longer than it says")
    trailers = []
    while line := reader.line():
        trailers.append(line)
    plain.end()
    wanted = request.header("x-amz-decoded-content-length")
    if wanted is None or wanted != str(plain.size):
        raise broken("x-amz-decoded-content-length is not its length")
    take_trailers(request, trailers, signer)
    request.body.drop()
    request.body = plain


def take_trailers(request, lines, signer):
    announced = {name.strip().lower() for name in request.header("x-amz-trailer", "").split(",") if name.strip()}
    found = {}
    for line in lines:
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    given = found.pop("x-amz-trailer-signature", None)
    if set(found) != announced:
        raise Refusal("MalformedTrailerError", "The request contained trailing data that was not well-formed or did "
                      "not conform to our published schema.")
    if signer and announced:
        text = "".join(f"{name}:{value}\n" for name, value in sorted(found.items()))
        signer.check("TRAILER", (hashlib.sha256(text.encode()).hexdigest(),), given or "")
    request.headers.update(found)
