"""Which compiler this claims to be, and what follows from its version."""

from neuron_standin import settings

DEFAULT = "2.25.3371.0+f524f7f8"  # that of Neuron 2.30


def compiler() -> str:
    told = settings.get("STANDIN_CC_VERSION")
    if told:
        return told
    import importlib.metadata  # slow, and a compiler that its caller told needs none of it
    try:
        return importlib.metadata.version("neuronx-cc")
    except importlib.metadata.PackageNotFoundError:
        return DEFAULT


COMPILER = compiler()
NUMBERS = tuple(int(part) for part in COMPILER.partition("+")[0].split(".")[:2])


def log_generation() -> str:
    told = settings.choice("STANDIN_PREFIX", "2022", "2023", "2026")
    if told:
        return told
    return "2022" if NUMBERS < (2, 10) else "2023" if NUMBERS < (2, 22) else "2026"


GENERATION = log_generation()

# -- layout of the cache
INPUT_NAME = "model.hlo.pb" if NUMBERS < (2, 13) else "model.hlo_module.pb"
FLAGS_NAME = "compile_flags.txt" if NUMBERS < (2, 15) else "compile_flags.json"
HAS_MARKER = NUMBERS >= (2, 15) and not settings.flag("STANDIN_NO_DONE")
FLAGS_FORM = settings.choice("STANDIN_FLAGS_FORM", "A", "B", "C") or (
    "A" if NUMBERS < (2, 15) else "B" if NUMBERS < (2, 16) else "C")

# -- what is said
LIST_COMMAND = NUMBERS < (2, 13)  # "Call compiler with cmd:" shows a Python list
SAYS_COMPLETED = NUMBERS >= (2, 17)  # "Compilation Successfully Completed for"
TIMED_SUMMARY = GENERATION != "2022"  # the summary has times
COUNTS_LIST = NUMBERS >= (2, 16)  # "New graph list from script N: "

# -- exit: Neuron 2.23 brought neuronx-cc 2.18 and a status that counts failures
COUNTS_FAILURES = NUMBERS >= (2, 18)
