"""How the rows of configs/live/rows.yaml on SageMaker's toolkit are tried: see lab.py and jobs.py."""

import io
import json
import tarfile

from jobs import TRAINING_OVER, TrainingJob, aws_image, come
from lab import NotTried, trial

LAST = {0: "Reporting training SUCCESS", 3: "Reporting training FAILURE"}
LINES = 5  # at the end of a log


def packed(code):
    """A program that ends so, as the toolkit unpacks it."""
    text, made = f"import sys\nprint('conform', flush=True)\nsys.exit({code})\n".encode(), io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        row = tarfile.TarInfo("program.py")
        row.size = len(text)
        archive.addfile(row, io.BytesIO(text))
    return made.getvalue()


@trial("toolkit-last-line", role=True)
def toolkit_last_line(lab):
    words, fine, image = [], True, aws_image(lab.region)
    if not image:
        raise NotTried("it is not published whose AWS's images are in this region")
    for code, last in LAST.items():
        name = f"toolkit-{code}"
        lab.put(f"{name}/source.tar.gz", packed(code))
        job = TrainingJob(lab, name, "ends", HyperParameters={key: json.dumps(value) for key, value in {
            "sagemaker_program": "program.py", "sagemaker_region": lab.region, "sagemaker_job_name": f"{lab.name}-{name}",
            "sagemaker_submit_directory": f"s3://{lab.bucket}/{lab.name}/{name}/source.tar.gz",
            "sagemaker_container_log_level": 20}.items()})
        # AWS's own image, whatever others take, by its own entry point.
        job.request["AlgorithmSpecification"] = {"TrainingImage": image,
                                                 "TrainingInputMode": "File"}
        job.request["Environment"] = {}
        status = job.create().when_over()["TrainingJobStatus"]
        if status not in TRAINING_OVER[:2] or not come(lab, job.lines, 1):
            raise NotTried(f"{job.name} is {status}, and its log cannot be read")
        ends = [text for _, text in job.lines()][-LINES:]
        fine &= any(last in text for text in ends)
        words.append(f"{status}: {next((text for text in ends if last in text), ends[-1])}")
    return fine, "; ".join(words)
