"""Arrays of numbers."""

float32 = "float32"


class Array:
    def __init__(self, rows):
        self.rows = rows

    def tolist(self):
        return self.rows


def array(rows, dtype=float32):
    return Array(rows)


def matmul(left, right, precision=None):
    columns = list(zip(*right.rows))
    return Array([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left.rows])
