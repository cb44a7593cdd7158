"""A job of several containers (ecsProperties): one that runs before another and brings files
to a volume that both mount. Its main container is looked at as if it were the only one."""

import os

from standin.errors import Refusal

ROOTS = "/opt/"  # below which a process may be shown other folders: see processes.SHOWN


def wrong(message):
    return Refusal("ClientException", f"Error executing request, Exception : {message}", 400)


def task_of(properties):
    tasks = properties.get("taskProperties", [])
    if len(tasks) != 1:
        raise wrong("exactly one taskProperties is needed")
    return tasks[0]


def check(properties):
    """What is registered: containers by name, dependencies that exist, one that is essential."""
    containers = task_of(properties)["containers"]
    names = [each.get("name") for each in containers]
    if None in names or len(set(names)) != len(names):
        raise wrong("container names must be there and unique")
    if not any(each.get("essential", True) for each in containers):
        raise wrong("at least one container must be essential")
    for each in containers:
        for needed in each.get("dependsOn", []):
            row = next((other for other in containers if other["name"] == needed["containerName"]), None)
            if row is None or row is each:
                raise wrong(f"dependsOn names no other container: {needed['containerName']}")
            if needed["condition"] in ("SUCCESS", "COMPLETE") and row.get("essential", True):
                raise wrong(f"a container that others wait for to end cannot be essential: {row['name']}")


def containers_of(properties):
    """Each with the volumes of the task, as containerProperties has them."""
    task = task_of(properties)
    return [{**each, "volumes": task.get("volumes", [])} for each in task["containers"]]


def main_of(properties):
    return next(each for each in containers_of(properties) if each.get("essential", True))


def helpers_of(properties):
    """What must have ended well before the main one starts, in order."""
    by_name = {each["name"]: each for each in containers_of(properties)}
    return [by_name[each["containerName"]] for each in main_of(properties).get("dependsOn", [])]


def changes_of(properties, override):
    """What a submission says to the main container."""
    name, rows = main_of(properties)["name"], override.get("taskProperties", [{}])[0].get("containers", [])
    return next((each for each in rows if each.get("name", name) == name), {})


class Volumes:
    """Folders of one task that stand for its volumes and for what images hold."""

    def __init__(self, folder, images):
        self.folder, self.images = folder, images

    def shown(self, container):
        """[(folder, where the container sees it)]"""
        places = list(self.images.get(container["image"], {}).items())
        places = [(folder, target) for target, folder in places]
        for mount in container.get("mountPoints", []):
            volume = next(each for each in container["volumes"] if each["name"] == mount["sourceVolume"])
            path = volume.get("host", {}).get("sourcePath")
            if path is None:
                path = os.path.join(self.folder, "volumes", volume["name"])
                os.makedirs(path, exist_ok=True)
            if mount["containerPath"].startswith(ROOTS):
                places.append((path, mount["containerPath"]))
        return places


def detail(properties, job):
    """As DescribeJobs tells of it."""
    task = {name: value for name, value in task_of(properties).items() if name != "containers"}
    rows = []
    for each in task_of(properties)["containers"]:
        fields = dict(each)
        if each["name"] == main_of(properties)["name"]:
            fields |= {name: value for name, value in job.container().items()
                       if name in ("exitCode", "logStreamName", "reason", "environment")}
        rows.append(fields)
    arn = job.container().get("taskArn")
    return {"taskProperties": [{**task, "containers": rows, **({"taskArn": arn} if arn else {})}]}
