"""The checksums that S3 knows, over bodies that may be large. CRC32C and CRC64NVME come
from the AWS common runtime's own package."""

import base64
import hashlib
import zlib

from awscrt import checksums as crt

from standin.errors import Refusal

HEADER = "x-amz-checksum-"
ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
# Algorithms whose value over an object in parts can be that of the whole.
LINEAR = ("CRC32", "CRC32C", "CRC64NVME")
WIDTH = {"CRC32": 4, "CRC32C": 4, "CRC64NVME": 8}


class Crc:
    def __init__(self, algorithm):
        self.step = {"CRC32": zlib.crc32, "CRC32C": crt.crc32c, "CRC64NVME": crt.crc64nvme}[algorithm]
        self.value, self.width = 0, WIDTH[algorithm]

    def update(self, piece):
        self.value = self.step(piece, self.value)

    def digest(self):
        return self.value.to_bytes(self.width, "big")


def new(algorithm):
    if algorithm in WIDTH:
        return Crc(algorithm)
    return hashlib.new(algorithm.lower())


def over(algorithm, pieces):
    """base64, as it stands in headers and replies."""
    digest = new(algorithm)
    for piece in pieces:
        digest.update(piece)
    return base64.b64encode(digest.digest()).decode()


def of_body(algorithm, body):
    if algorithm == "SHA256":
        return base64.b64encode(body.sha256.digest()).decode()
    return over(algorithm, body.walk())


def composite(algorithm, values):
    """The checksum of the parts' checksums, with their number."""
    joined = b"".join(base64.b64decode(value) for value in values)
    return f"{over(algorithm, [joined])}-{len(values)}"


def given(request):
    """(algorithm, value) of the checksum that a request carries in a header or a trailer;
    (None, None): it carries none."""
    found = [(name, value) for name, value in request.headers.items()
             if name.startswith(HEADER) and name[len(HEADER):].upper() in ALGORITHMS]
    if len(found) > 1:
        raise Refusal("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types "
                      "are not allowed.")
    wanted = request.header("x-amz-sdk-checksum-algorithm")
    if wanted and not found:
        raise Refusal("InvalidRequest", "x-amz-sdk-checksum-algorithm specified, but no corresponding "
                      "x-amz-checksum-* or x-amz-trailer headers were found.")
    if not found:
        return None, None
    return found[0][0][len(HEADER):].upper(), found[0][1]


def verify(request):
    """What the request says of its body is true: (algorithm, value), of the body as it is."""
    md5 = request.header("content-md5")
    if md5 is not None:
        try:
            ok = len(base64.b64decode(md5, validate=True)) == 16
        except ValueError:
            ok = False
        if not ok:
            raise Refusal("InvalidDigest", "The Content-MD5 you specified was invalid.")
        if md5 != base64.b64encode(request.body.md5.digest()).decode():
            raise Refusal("BadDigest", "The Content-MD5 you specified did not match what we received.",
                          ExpectedDigest=md5, CalculatedDigest=request.body.md5.hexdigest())
    algorithm, value = given(request)
    if algorithm:
        try:
            length = len(base64.b64decode(value, validate=True))
        except ValueError:
            length = -1
        if length != len(new(algorithm).digest()):
            raise Refusal("InvalidRequest", f"Value for x-amz-checksum-{algorithm.lower()} header is invalid.")
        if value != of_body(algorithm, request.body):
            raise Refusal("BadDigest", f"The {algorithm} you specified did not match the calculated checksum.")
    return algorithm, value
