"""One request on its way through the front: what it turned out to be, and what became
of it."""

from dataclasses import dataclass, field

from standin.sigv4 import pairs_of


@dataclass
class Call:
    request: object
    front: object
    connection: object
    service: str = ""
    protocol: str = "json"
    operation: str = ""
    name: str = ""             # bucket/key, or the name of what is meant: what rules match
    region: str = ""
    bucket: str = ""
    key: str = ""
    query: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)  # by the service model
    claim: object = None
    who: object = None         # the key that signed
    ids: list = field(default_factory=list)
    fault: object = None       # the rule that strikes
    effect: bool = False       # something has changed
    was_read: bool = False     # the body has come
    noted: bool = False        # it stands in the ledger

    def header(self, name, default=None):
        return self.request.header(name, default)


def query_of(text):
    """A query as words; what is no UTF-8 is kept as surrogates, to be refused later."""
    return {name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
            for name, value in reversed(list(pairs_of(text)))}
