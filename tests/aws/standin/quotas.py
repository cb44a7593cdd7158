"""Service Quotas. The setting `quotas` says what an account has: code, or name → value; None: AWS lists no such quota.
What it does not name is plenty."""

from standin.answers import answer
from standin.errors import Refusal

PLENTY = 100000
PAGE = 100
SAGEMAKER = ("for training job usage", "for spot training job usage", "for training warm pool usage")
LONGEST = "Longest run time for a training job"
DEFAULTS = {LONGEST: 432000}
TYPES = ("ml.trn1.2xlarge", "ml.trn1.32xlarge", "ml.g5.12xlarge", "ml.m5.xlarge", "ml.c5.xlarge", "ml.p4d.24xlarge")


def row(call, service, code, name):
    settings = call.front.settings["quotas"]
    value = settings.get(code, settings.get(name, DEFAULTS.get(name, PLENTY)))
    return value is not None and {
        "ServiceCode": service, "ServiceName": service, "QuotaCode": code, "QuotaName": name, "Value": float(value),
        "Unit": "None", "Adjustable": True, "GlobalQuota": False,
        "QuotaArn": f"arn:aws:servicequotas:{call.region}:{call.who.account}:{service}/{code}"}


def get(call):
    code = call.params["QuotaCode"]
    found = row(call, call.params["ServiceCode"], code, code)
    if not found:
        raise Refusal("NoSuchResourceException", "The request failed because the specified quota does not exist.", 400)
    return answer(call, {"Quota": found})


def listing(call):
    """The names that tests ask for are at the end: whoever reads the first page alone finds none."""
    names = [f"Number of things, {number}" for number in range(PAGE)]
    names += [LONGEST, *(f"{kind} {what}" for kind in TYPES for what in SAGEMAKER)]
    rows = [row(call, call.params["ServiceCode"], f"L-{number:08X}", name) for number, name in enumerate(names)]
    rows = [each for each in rows if each]
    start, size = int(call.params.get("NextToken", "0")), call.params.get("MaxResults", PAGE)
    more = {"NextToken": str(start + size)} if start + size < len(rows) else {}
    return answer(call, {"Quotas": rows[start:start + size], **more})


HANDLERS = {"GetServiceQuota": get, "GetAWSDefaultServiceQuota": get, "ListServiceQuotas": listing}
