"""Prints "PASSED FAILED SKIPPED" of a JUnit report, as ctest and pytest write
them, so that ./test can add up its runners; then the name of each failed test,
on a line of its own."""

import sys
import xml.etree.ElementTree as ET


def main() -> None:
    total = failed = skipped = 0
    names = []
    for suite in ET.parse(sys.argv[1]).getroot().iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
        names += [
            f"{case.get('classname', '')}::{case.get('name', '')}"
            for case in suite.iter("testcase")
            if case.find("failure") is not None or case.find("error") is not None
        ]
    print(total - failed - skipped, failed, skipped)
    print(*names, sep="\n")


main()
