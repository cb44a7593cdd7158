"""STS: who am I, and keys of a role that the front accepts from then on. moto's would give
keys that nobody can verify."""

import time
import uuid
from xml.sax.saxutils import escape

from standin.errors import Refusal
from standin.wire import Reply


def document(operation, inner):
    space = "https://sts.amazonaws.com/doc/2011-06-15/"
    body = (f'<{operation}Response xmlns="{space}"><{operation}Result>{inner}</{operation}Result>'
            f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></{operation}Response>")
    return Reply(200, [("Content-Type", "text/xml")], body.encode())


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def identity(call):
    who = call.who
    return document("GetCallerIdentity", f"<Arn>{escape(who.arn)}</Arn><UserId>{escape(who.user_id)}</UserId>"
                    f"<Account>{who.account}</Account>")


def denied(call, action):
    who = call.who.arn if call.who else "anonymous"
    return Refusal("AccessDenied", f"User: {who} is not authorized to perform: sts:{action} on resource: "
                   f"{call.params['RoleArn']}", 403)


def grant(call, operation, more=""):
    """Keys of the role, for as long as asked, or as the test wishes."""
    settings, role = call.front.settings, call.params["RoleArn"]
    words = role.split(":")
    if len(words) != 6 or not words[5].startswith("role/"):
        raise Refusal("ValidationError", f"{role} is invalid")
    account, name, session = words[4], words[5].rpartition("/")[2], call.params["RoleSessionName"]
    seconds = call.params.get("DurationSeconds", 3600)
    if operation == "AssumeRole" and call.who.token and seconds > 3600:
        raise Refusal("ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit for roles "
                      "assumed by role chaining")
    key = call.front.keyring.issue(settings["sts_seconds"] or seconds, account,
                                   f"arn:aws:sts::{account}:assumed-role/{name}/{session}", f"AROATESTER:{session}")
    call.effect = True
    return document(operation, f"<Credentials><AccessKeyId>{key.access}</AccessKeyId><SecretAccessKey>{key.secret}"
                    f"</SecretAccessKey><SessionToken>{key.token}</SessionToken><Expiration>{iso(key.expires)}"
                    f"</Expiration></Credentials><AssumedRoleUser><AssumedRoleId>{key.user_id}</AssumedRoleId>"
                    f"<Arn>{escape(key.arn)}</Arn></AssumedRoleUser>{more}")


def assume(call):
    """The setting `roles` says who may: role → {"external_id", "serial", "code"}; a role
    that it does not name may be assumed by anybody."""
    wanted = call.front.settings["roles"].get(call.params["RoleArn"], {})
    for name, param in (("external_id", "ExternalId"), ("serial", "SerialNumber"), ("code", "TokenCode")):
        if name in wanted and call.params.get(param) != wanted[name]:
            raise denied(call, "AssumeRole")
    return grant(call, "AssumeRole")


def web_identity(call):
    """The setting `web_identity`: token → "good" or "expired"."""
    known = call.front.settings["web_identity"].get(call.params["WebIdentityToken"])
    if known == "expired":
        raise Refusal("ExpiredTokenException", "Token expired: current date/time must be before the expiration "
                      "date/time", 400)
    if known is None:
        raise Refusal("InvalidIdentityToken", "No OpenIDConnect provider found in your account", 400)
    return grant(call, "AssumeRoleWithWebIdentity", "<SubjectFromWebIdentityToken>system:serviceaccount:a:b"
                 "</SubjectFromWebIdentityToken>")


HANDLERS = {"GetCallerIdentity": identity, "AssumeRole": assume, "AssumeRoleWithWebIdentity": web_identity}


def handle(call):
    handler = HANDLERS.get(call.operation)
    if handler is None:
        raise Refusal("InvalidAction", f"The stand-in has no {call.operation}", 400)
    return handler(call)
