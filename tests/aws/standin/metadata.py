"""Where machines and containers get their keys from without any: instance metadata
(version 2 only), the container endpoint, and the two services of SSO. None is signed."""

import json
import secrets
import time

from standin.errors import Refusal
from standin.wire import Reply

IMDS = "/latest/"
CONTAINER = "/v2/credentials/"


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def find(call):
    """Is it for one of these? Then service, operation and protocol are set."""
    path, request = call.request.path, call.request
    if path.startswith(IMDS):
        call.service, call.protocol, call.name = "imds", "rest-json", path
        call.operation = "PutToken" if request.method == "PUT" else "GetMetadata"
    elif path.startswith(CONTAINER):
        call.service, call.protocol, call.name, call.operation = "container", "rest-json", path, "GetCredentials"
    elif path == "/federation/credentials" and request.method == "GET":
        call.service, call.protocol, call.operation = "sso", "rest-json", "GetRoleCredentials"
        call.name = call.query.get("role_name", "")
    elif path == "/token" and request.method == "POST":
        call.service, call.protocol, call.operation = "sso-oidc", "rest-json", "CreateToken"
    else:
        return False
    return True


def text(status, body, **headers):
    return Reply(status, [("Content-Type", "text/plain"), *headers.items()], body.encode())


def imds(call):
    """Setting `imds`: {"role", "seconds", "v1", "region", "type"}; empty: there is none here."""
    settings, request, path = call.front.settings["imds"], call.request, call.request.path
    if not settings:
        return text(404, "Not Found")
    if call.operation == "PutToken":
        ttl = request.header("x-aws-ec2-metadata-token-ttl-seconds", "")
        if path != "/latest/api/token" or not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
            return text(400, "Bad Request")
        if request.header("x-forwarded-for") is not None:
            return text(403, "Forbidden")
        if settings.get("v1"):
            return text(404, "Not Found")
        token = secrets.token_urlsafe(40)
        call.front.tokens[token] = call.front.clock() + int(ttl)
        return text(200, token, **{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": ttl})
    token = request.header("x-aws-ec2-metadata-token")
    if not settings.get("v1") and call.front.tokens.get(token, 0) < call.front.clock():
        return text(401, "Unauthorized")
    role, where = settings.get("role", "node-role"), path.removeprefix("/latest/meta-data/")
    if where in ("iam/security-credentials/", "iam/security-credentials"):
        return text(200, role) if role else text(404, "Not Found")
    if where == f"iam/security-credentials/{role}":
        key = call.front.keyring.issue(settings.get("seconds", 21600))
        call.effect = True
        return Reply(200, [("Content-Type", "text/plain")], json.dumps(
            {"Code": "Success", "LastUpdated": iso(call.front.clock()), "Type": "AWS-HMAC",
             "AccessKeyId": key.access, "SecretAccessKey": key.secret, "Token": key.token,
             "Expiration": iso(key.expires)}).encode())
    if where == "instance-type" and "type" in settings:
        return text(200, settings["type"])
    if where == "placement/region":
        return text(200, settings.get("region", "us-east-1"))
    return text(404, "Not Found")


def container(call):
    """Of a container that runs, by its own URL and token; else the setting `container`:
    {"authorization", "seconds"}: the header that must be sent."""
    settings = call.front.settings["container"]
    asking = call.front.containers.get(call.request.path.removeprefix(CONTAINER))
    if asking:
        settings = {"seconds": settings.get("seconds", 21600), "authorization": asking.token}
    if not settings:
        return Reply(404, [("Content-Type", "application/json")], b'{"code":"NotFound","message":"none here"}')
    wanted = settings.get("authorization")
    if wanted and call.request.header("authorization") != wanted:
        return Reply(401, [("Content-Type", "application/json")],
                     b'{"code":"AccessDenied","message":"the authorization token is not the one"}')
    seconds = settings.get("seconds", 21600)
    key = asking.keys(seconds) if asking else call.front.keyring.issue(seconds)
    role = asking.role if asking else "arn:aws:iam::123456789012:role/task"
    call.effect = True
    return Reply(200, [("Content-Type", "application/json")], json.dumps(
        {"AccessKeyId": key.access, "SecretAccessKey": key.secret, "Token": key.token,
         "Expiration": iso(key.expires), "RoleArn": role, "AccountId": key.account}).encode())


def sso(call):
    """Setting `sso`: {"tokens": {token: seconds since 1970 until which it is good},
    "roles": [[account, role]], "seconds", "refresh": {refresh token: client id}}."""
    settings, token = call.front.settings["sso"], call.request.header("x-amz-sso_bearer_token")
    if settings.get("tokens", {}).get(token, 0) <= call.front.clock():
        raise Refusal("UnauthorizedException", "Session token not found or invalid", 401)
    pair = [call.query.get("account_id"), call.query.get("role_name")]
    if pair not in settings.get("roles", [pair]):
        raise Refusal("ForbiddenException", "No access", 403)
    key = call.front.keyring.issue(settings.get("seconds", 3600), pair[0],
                                   f"arn:aws:sts::{pair[0]}:assumed-role/{pair[1]}/sso")
    call.effect = True
    return Reply(200, [("Content-Type", "application/json")], json.dumps({"roleCredentials": {
        "accessKeyId": key.access, "secretAccessKey": key.secret, "sessionToken": key.token,
        "expiration": int(key.expires * 1000)}}).encode())


def sso_oidc(call):
    settings = call.front.settings["sso"]
    try:
        asked = json.loads(call.request.body.bytes())
    except ValueError:
        raise Refusal("InvalidRequestException", "no JSON", 400) from None
    refresh = asked.get("refreshToken")
    if asked.get("grantType") != "refresh_token":
        raise Refusal("UnsupportedGrantTypeException", "only refresh_token here", 400)
    if refresh is None or settings.get("refresh", {}).get(refresh) != asked.get("clientId") or not asked.get(
            "clientSecret"):
        raise Refusal("InvalidGrantException", "Invalid refresh token provided", 400)
    token, seconds = secrets.token_urlsafe(30), settings.get("token_seconds", 3600)
    following = secrets.token_urlsafe(30)
    settings.setdefault("tokens", {})[token] = call.front.clock() + seconds
    settings["refresh"][following] = asked["clientId"]
    call.effect = True
    return Reply(200, [("Content-Type", "application/json")], json.dumps(
        {"accessToken": token, "expiresIn": seconds, "refreshToken": following, "tokenType": "Bearer"}).encode())


HANDLERS = {"imds": imds, "container": container, "sso": sso, "sso-oidc": sso_oidc}


def handle(call):
    return HANDLERS[call.service](call)
