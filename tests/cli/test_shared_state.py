"""State on a shared file system: the journal as objects, the lease as one."""

import json


def shared(project) -> tuple:
    return "--state", f"dir:{project.root / 'shared'}"


def test_a_run_on_dir_state_is_as_any_other(project):
    state = shared(project)
    result = project.stoker(*state, "--json", "run", project.spec_path, "--id", "one")
    assert result.code == 0, str(result)
    assert result.lines == project.ok(*state, "events", "one").lines
    status, = project.ok(*state, "--json", "status", "@last").lines
    assert (status["run"], status["state"]) == ("one", "succeeded")
    assert project.stoker(*state, "run", project.spec_path, "--id", "one").code == 0
    assert project.ok(*state, "events", "one").lines == result.lines
    lease = json.loads((project.root / "shared" / "runs" / "one" / "lease.json").read_text())
    assert lease["held"] is False
