"""NEURON_CC_FLAGS: what goes to the compiler, what the wrapper keeps to itself,
and the hash of the former that every name in the cache ends with."""

import hashlib
import json
import os
import shlex

from neuron_standin import versions

WITH_VALUE = {"--cache_dir", "--log_level", "--compile_workdir"}
ALONE = {"--no_cache", "--retry_failed_compilation", "--dump"}


class Flags:
    def __init__(self, text: str | None = None):
        self.compiler: list[str] = []
        self.wrapper: dict[str, str] = {}
        words = shlex.split(os.environ.get("NEURON_CC_FLAGS", "") if text is None else text)
        while words:
            name, _, value = words[0].partition("=")
            if name in WITH_VALUE:
                self.wrapper[name] = value if "=" in words.pop(0) else words.pop(0)
            elif name in ALONE:
                self.wrapper[words.pop(0)] = "1"
            else:
                self.compiler.append(words.pop(0))
        self.target = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
        for word in [word for word in self.compiler if word.startswith("--target=")]:
            self.target = word.partition("=")[2]
            self.compiler.remove(word)

    @property
    def log_level(self) -> str:
        return self.wrapper.get("--log_level", "INFO")

    @property
    def retry_failed(self) -> bool:
        return "--retry_failed_compilation" in self.wrapper

    @property
    def no_cache(self) -> bool:
        return "--no_cache" in self.wrapper

    @property
    def file_content(self) -> str:
        """What is stored beside the graph, and hashed."""
        if versions.FLAGS_FORM == "A":
            return " ".join(self.compiler)
        target = [f"--target={self.target}"] if versions.FLAGS_FORM == "C" else []
        return json.dumps(target + self.compiler)

    @property
    def hash(self) -> str:
        return hashlib.md5(self.file_content.encode()).hexdigest()[:8]
