"""What the stand-ins' two kinds of files look like: an input for the compiler and
what it makes of it. Both say what they are."""

MAGIC = b"STAND-IN NEFF, no machine can run it\n"
END = b"END\n"


def graph_input(name: str, graph: str) -> bytes:
    return f"stand-in for an HLO module of function {name}\n{graph}\n".encode()


def graph_name(data: bytes) -> str:
    """Of the function in an input: what settings select by."""
    return data.split(b"\n", 1)[0].decode().rpartition(" ")[2]


def neff(size: int, filling: object = bytes) -> bytes:
    """A compiled graph; `filling` gives so many bytes."""
    return MAGIC + filling(max(size - len(MAGIC) - len(END), 1)) + END


def is_whole(data: bytes) -> bool:
    return data.startswith(MAGIC) and data.endswith(END)
