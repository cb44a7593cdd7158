"""The statements of IAM policies that a command's hints name, as they come."""

import json
import os


def statement_in(line):
    at = line.find('{"Sid":')
    return json.JSONDecoder().raw_decode(line[at:])[0] if at >= 0 else None


class Hints:
    """Those of one command, which is killed once nobody asks for more of them."""

    def __init__(self, job, *argv, env):
        self.job, self.argv, self.env, self.said, self.code = job, argv, env, [], None

    def __iter__(self):
        mine, its = os.pipe()
        process = self.job.start(*self.argv, env=self.env, stdout=its, stderr=its)
        os.close(its)
        try:
            with open(mine) as lines:
                for line in lines:
                    self.said.append(line)
                    if told := statement_in(line):
                        yield told
            self.code = process.wait()
        finally:
            process.kill()
            process.wait()


def first(job, *argv, env):
    """The first one; None: it ended without any."""
    return next(iter(Hints(job, *argv, env=env)), None)
