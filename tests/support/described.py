"""The rows of described.txt: what EC2 says of its instance types, recorded by others than the catalogue's makers."""

from pathlib import Path

TEXT = {"type", "arch", "gpu", "usd", "source"}


def read():
    """{type: {column: value}}; a price is a number, None where there is none, and absent where it was not recorded."""
    lines = [line.split() for line in Path(__file__).with_suffix(".txt").read_text().splitlines() if line[0] != "#"]
    found = {}
    for cells in lines[1:]:
        row = {name: cell if name in TEXT else int(cell) for name, cell in zip(lines[0], cells, strict=True)}
        name, price = row.pop("type"), row.pop("usd")
        found[name] = row if price == "?" else {**row, "usd": None if price == "-" else float(price)}
    return found


DESCRIBED = read()
