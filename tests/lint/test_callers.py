"""What nobody calls is deleted: a function or table that only its own file or only tests use
is not exported, and no struct has a slot for a function that is never called."""

import collections
import functools
import os
import re
import subprocess

import pytest
import tree

BUILD = tree.ROOT / os.environ.get("STOKER_BUILD", "build/clang")

# Exports for tests alone: name → why no test can get there through what the product calls.
SEAMS = {
    "aws_settings_forget": "settings are read once a process; tests of several in one process begin anew",
    "credentials_forget": "the same, of credentials",
    "profile_parse": "the fuzzer reads a text a few thousand times a second, without files",
    "spec_parse": "the same, of a spec",
    "metrics_file_parse": "the same, of metrics.json",
    "flow_rule_find": "the simulator and the tests of the flow see which rule an event fires",
    "flow_rule_count": "the simulator sees that every rule was reached",
    "flow_rule_name": "the simulator says which rule was not",
    "state_dir_type_is_network": "file systems that the machine of the tests has not mounted",
    "journal_objects_on": "a journal over a store that loses replies",
    "lease_try": "a lease that is looked at without waiting for it",
    "machine_cpu_from": "processors that the machine of the tests has not",
    "host_evidence_mount_of": "mounts that the machine of the tests has not",
    "host_evidence_oom_kills_in": "hierarchies of cgroups that the machine of the tests has not",
    "engine_env_sagemaker": "SageMaker's file lies beneath /opt/ml",
    "worker_dies": "an hour of deaths without an hour of waiting",
    "worker_may_start": "the same",
}


def product_objects():
    """(library or program, its objects as a listing of nm)."""
    programs = [str(path) for folder in ("stoker", "stoker-node", "stoker-post", "stoker-derive")
                for path in sorted((BUILD / f"CMakeFiles/{folder}.dir").rglob("*.o"))
                if is_source(path.relative_to(BUILD / f"CMakeFiles/{folder}.dir"))]
    libraries = sorted(str(path) for path in BUILD.glob("libstoker_*.a"))
    if len(libraries) < 5 or not programs:
        pytest.fail(f"there are no objects in {BUILD}: run 'cmake --preset clang && "
                    f"cmake --build --preset clang'", pytrace=False)
    return libraries + programs


def is_source(path):
    """Of a file that is still there, or of one that the build makes."""
    return path.parts[0] == "embedded" or (tree.ROOT / path.with_suffix("")).is_file()


@functools.cache
def exports_and_calls():
    """({name: the object that defines it}, names that another object refers to)."""
    listed = subprocess.run(["nm", "-A", "--format=posix", "--extern-only", *product_objects()],
                            capture_output=True, text=True, check=True).stdout
    homes, called = {}, collections.defaultdict(set)
    for line in listed.splitlines():
        home, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind in "TDBRC":
            homes[name] = home
        elif kind in "Uvw":
            called[name].add(home)
    assert len(homes) > 500, "nm shows nothing"
    return homes, called


def unreached():
    homes, called = exports_and_calls()
    return {name: home for name, home in homes.items() if name != "main" and not called[name]}


def test_every_export_has_a_caller_in_another_file():
    wrong = [f"{name} ({os.path.basename(home)}) has no caller in another file of the product: delete it, or "
             f"make it static" for name, home in sorted(unreached().items()) if name not in SEAMS]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_every_test_seam_is_one():
    words = set(re.findall(r"\w+", "".join(tree.text(name) for name in tree.c_files("tests"))))
    alone = unreached()
    wrong = [f"{name}: strike it from SEAMS; " + ("the product calls it" if name not in alone else "no test uses it")
             for name in SEAMS if name not in alone or name not in words]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


# --- slots for functions -------------------------------------------------------------

STRUCT = re.compile(r"\bstruct(?:\s+(\w+))?\s*\{")
POINTER = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\(")


def body_from(source, start):
    depth = 0
    for match in re.finditer(r"[{}]", source[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return source[start:start + match.end()]
    return source[start:]


def slots(source, types):
    """(struct, slot, offset) of members that point to functions, by themselves or by a type of `types`."""
    for struct in STRUCT.finditer(source):
        begin = struct.end() - 1
        body = body_from(source, begin)
        depths, depth = [], 0
        for char in body:
            depth += {"{": 1, "}": -1}.get(char, 0)
            depths.append(depth)
        members = [*POINTER.finditer(body), *re.finditer(rf"\b(?:{'|'.join(types)})\s+(\w+)\s*;", body)]
        for member in members:
            before = body[:member.start()]
            # Not a parameter of another one.
            if depths[member.start()] == 1 and before.count("(") == before.count(")"):
                yield struct[1] or "(unnamed)", member[1], begin + member.start()


def sees(name):
    """The files from which `name` is included, and itself."""
    found, last = {name}, None
    while last != found:
        last = set(found)
        found |= {user for user, what in includes().items() if what & last}
    return found


@functools.cache
def includes():
    return {name: set(re.findall(r'^\s*#\s*include\s*"([^"]+)"', tree.code(name), re.MULTILINE))
            for name in tree.c_files()}


def is_called(slot, sources):
    """Called, or handed on: put in a variable, or given to a function with other arguments."""
    path = rf"(?:\w+(?:\[\w+\])?(?:->|\.))+{slot}\b"
    use = re.compile(rf"(?:->|\.)\s*{slot}\s*\)?\s*\(|[=?:,]\s*{path}(?!\s*=[^=])|{path}\s*,")
    return any(use.search(source) for source in sources)


def test_every_slot_for_a_function_has_a_caller():
    names = tree.c_files()
    code = {name: tree.code(name) for name in names}
    types = sorted({match[1] for source in code.values()
                    for match in re.finditer(r"\btypedef\b[^;{]*?\(\s*\*\s*(\w+)\s*\)\s*\(", source)})
    wrong, count = [], 0
    for name in names:
        users = None
        for struct, slot, offset in slots(code[name], types):
            users = users or [code[user] for user in sorted(sees(name)) if user in code]
            count += 1
            if not is_called(slot, users):
                wrong.append(f"{name}:{tree.line_of(code[name], offset)}: nobody calls '{slot}' of struct {struct}: "
                             f"delete it and what fills it")
    assert count > 100, "no slots are found"
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
