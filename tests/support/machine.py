"""A spec for one type of machine, and what a plan without an account says that a job is given of it."""

import re

import stoker as cli

HEAD = """version: 1
name: x
engine: {engine}
workspace: s3://bucket/ws
command: [torchrun, train.py]
image: 123456789012.dkr.ecr.eu-west-1.amazonaws.com/t:1
{own}
resources:
  nodes: {nodes}
  instance: {instance}
"""
OWN = {"batch": "batch: {job_queue: q, agent: /opt/stoker}",
       "sagemaker": "sagemaker: {role: 'arn:aws:iam::123456789012:role/sagemaker'}", "local": "tags: {}"}


class Machine:
    def __init__(self, root):
        self.root = root
        (root / "job").mkdir()
        (root / "job/train.py").write_text("pass\n")
        self.catalogue = root / "config/stoker/instances.yaml"

    def write(self, instance, engine="batch", nodes=1, more="", own=""):
        text = HEAD.format(engine=engine, own=own or OWN[engine], nodes=nodes, instance=instance) + more
        if engine == "local":
            text = re.sub("(?m)^(workspace|image): .*\\n", "", text)
        (self.root / "job/stoker.yaml").write_text(text)
        return self

    def own(self, *rows):
        self.catalogue.parent.mkdir(parents=True, exist_ok=True)
        self.catalogue.write_text("version: 1\ninstances:\n" + "".join(f"  {row}\n" for row in rows))

    def stoker(self, *argv):
        env = cli.environment(HOME=str(self.root / "home"), XDG_CONFIG_HOME=str(self.root / "config"),
                              XDG_STATE_HOME=str(self.root / "state"), AWS_EC2_METADATA_DISABLED="true")
        return cli.stoker(*argv, env=env, cwd=self.root / "job")

    def refused(self, *words):
        """By all three commands, at the place of the type."""
        for command in ("validate", "plan", "run"):
            said = self.stoker(command, "stoker.yaml")
            assert said.code == 3, str(said)
            assert re.search(r"stoker\.yaml:(10:13|\d+:\d+): ", said.err) and "/dev/neuron" not in said.text, str(said)
            for word in words:
                assert word in said.err, str(said)
        problem, = [row for row in self.stoker("--json", "validate", "stoker.yaml").lines if not row.get("lint")]
        return problem

    def container(self):
        """As its job definition is registered."""
        said = self.stoker("--json", "plan", "--requests", "stoker.yaml")
        assert said.code == 0, str(said)
        return self.container_of(said.lines[0])

    @staticmethod
    def container_of(plan):
        body = plan["requests"][0]["sends"][0]["body"]
        if "containerProperties" in body:
            return body["containerProperties"]
        return body["nodeProperties"]["nodeRangeProperties"][0]["container"]

    def asks(self):
        return {row["type"]: int(row["value"]) for row in self.container()["resourceRequirements"]}

    def devices(self):
        return {row["hostPath"]: row["permissions"] for row in self.container()["linuxParameters"].get("devices", [])}
