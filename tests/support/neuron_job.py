"""What happened to a run of the kind `neuron`."""


def verdict(project):
    return project.events(kind="cache.verified")[-1]


def phases(project):
    return [(row["phase"], row["class"]) for row in project.events(kind="attempt.ended")]
