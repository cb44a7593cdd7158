"""Where credentials come from: each provider gives what it should, in the order of the
chain, renews in time, and fails with words that help and hold no secret."""

import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from who import ACCOUNT, CANARY, ROLE, SHORT, STATIC, instance, role


# --- the environment ---------------------------------------------------------------


def test_keys_in_the_environment(world):
    got = world.ask(AWS_ACCESS_KEY_ID="AKIDX", AWS_SECRET_ACCESS_KEY="s/+=", AWS_SESSION_TOKEN="t",
                    AWS_ACCOUNT_ID=ACCOUNT)
    assert got == {"provider": "environment", "access": "AKIDX", "secret": "s/+=", "token": "t", "account": ACCOUNT,
                   "expires": 0}


def test_the_older_name_of_the_token_beats_the_newer(world):
    got = world.ask(AWS_ACCESS_KEY_ID="AKIDX", AWS_SECRET_ACCESS_KEY="s", AWS_SESSION_TOKEN="new",
                    AWS_SECURITY_TOKEN="old")
    assert got["token"] == "old"


def test_a_key_without_its_secret_is_an_error_and_the_chain_ends_there(world):
    world.shared(STATIC.format(name="default", canary=CANARY))
    world.fails("gave no secret access key", AWS_ACCESS_KEY_ID="AKIDX")


@pytest.mark.parametrize("name, value, word", [
    ("AWS_ACCESS_KEY_ID", f"AKID{CANARY}\r\nHost: x", "access key id"),
    ("AWS_SECRET_ACCESS_KEY", CANARY + "\n", "secret access key"),
    ("AWS_SESSION_TOKEN", CANARY + " ", "session token"),
])
def test_a_line_end_that_was_copied_along_is_told(world, name, value, word):
    env = {"AWS_ACCESS_KEY_ID": "AKIDX", "AWS_SECRET_ACCESS_KEY": CANARY, "AWS_SESSION_TOKEN": CANARY, name: value}
    world.fails(f"the {word} of the environment", "holds a blank or a control character", **env)


def test_keys_in_the_environment_that_have_ended_are_told(world):
    env = {"AWS_ACCESS_KEY_ID": "AKIDX", "AWS_SECRET_ACCESS_KEY": CANARY}
    world.fails("have expired, at 2020-01-02T03:04:05.000Z", "clock", **env,
                AWS_CREDENTIAL_EXPIRATION="2020-01-02T04:04:05+01:00")
    world.fails("gave an unknown time", **env, AWS_CREDENTIAL_EXPIRATION="tomorrow")
    got = world.ask(**env, AWS_CREDENTIAL_EXPIRATION="2099-01-02T03:04:05.5Z")
    assert got["expires"] == 4071006245500


def test_a_profile_by_option_beats_the_environment_and_one_by_variable_does_not(world):
    world.shared(STATIC.format(name="p", canary=CANARY))
    env = {"AWS_ACCESS_KEY_ID": "AKIDX", "AWS_SECRET_ACCESS_KEY": "s"}
    assert world.ask("p", **env)["access"] == "AKIDp"
    assert world.ask(**env, AWS_PROFILE="p")["access"] == "AKIDX"


# --- the shared files --------------------------------------------------------------


def test_keys_of_both_files_and_the_credentials_file_comes_first(world):
    world.config(STATIC.format(name="default", canary="c")
                 + "[profile only]\naws_access_key_id = CONFonly\naws_secret_access_key = c\n")
    assert world.ask()["provider"] == "config-file"
    world.shared(STATIC.format(name="default", canary="s") + "aws_session_token = t\naws_account_id = 1\n")
    assert world.ask() == {"provider": "shared-credentials-file", "access": "AKIDdefault", "secret": "sdefault",
                           "token": "t", "account": "1", "expires": 0}
    assert world.ask(AWS_PROFILE="only")["access"] == "CONFonly"


def test_a_profile_with_half_a_pair_is_an_error(world):
    world.shared("[default]\naws_access_key_id = a\n")
    world.fails("the profile 'default' in", "gave no secret access key")


def test_nothing_at_all_tells_what_was_looked_at(world):
    got = world.fails("no AWS credentials", "no AWS_ACCESS_KEY_ID", "no keys of the profile 'default'",
                      "no container", "AWS_EC2_METADATA_DISABLED is true", "--profile")
    assert ".aws/credentials" in got["error"]


def test_a_broken_file_is_told_with_its_line(world):
    world.shared(f"[default]\naws_access_key_id = A\n{CANARY}\n")
    world.fails("credentials:3", "neither [a section] nor 'key = value'")


def test_a_profile_that_is_not_there(world):
    world.shared(STATIC.format(name="one", canary=CANARY))
    world.fails("the AWS profile 'two' is neither in", "choose one of: one", options=("two",))


def test_keys_that_a_service_refused_are_read_anew(world):
    world.shared(STATIC.format(name="default", canary="1"))
    who = world.start()
    assert who.ask()["secret"] == "1default"
    world.shared(STATIC.format(name="default", canary="2").replace("AKID", "AKIE"))
    assert who.ask()["secret"] == "1default"
    assert who.ask("expired", access="AKIDdefault") == {"may_change": True}
    assert who.ask()["secret"] == "2default"
    # A request that was under way with the old ones changes nothing.
    assert who.ask("expired", access="AKIDdefault") == {"may_change": True}
    assert who.ask("expired", access="AKIEdefault") == {"may_change": True}
    assert who.ask()["secret"] == "2default"
    # The same again: there is nothing to be had, and no use in asking on and on.
    assert who.ask("expired", access="AKIEdefault") == {"may_change": False}


def test_keys_of_the_environment_cannot_change(world):
    who = world.start(AWS_ACCESS_KEY_ID="A", AWS_SECRET_ACCESS_KEY="s")
    who.ask()
    assert who.ask("expired", access="A") == {"may_change": False}


# --- roles of profiles -------------------------------------------------------------


def test_a_role_with_the_keys_of_another_profile(world):
    world.aws.settings(roles={ROLE: {"external_id": "ext"}})
    world.aws.add_key("AKIDbase", "base-secret")
    world.shared("[base]\naws_access_key_id = AKIDbase\naws_secret_access_key = base-secret\n")
    world.config(role("p", source_profile="base", external_id="ext", role_session_name="me@x", duration_seconds=900))
    before = time.time()
    got = world.ask(AWS_PROFILE="p")
    assert got["provider"] == "assume-role" and got["access"].startswith("ASIA") and got["token"]
    assert before * 1000 + 890_000 < got["expires"] <= time.time() * 1000 + 900_000
    assert world.aws.effects("AssumeRole") == 1


def test_a_role_may_be_reached_through_roles_and_a_profile_may_be_its_own_source(world):
    world.aws.add_key("AKIDp1", "s1")
    world.shared("[p1]\naws_access_key_id = AKIDp1\naws_secret_access_key = s1\n")
    world.config(role("p1", source_profile="p1") + role("p2", source_profile="p3") + role("p3", source_profile="p1"))
    assert world.ask("p1")["provider"] == "assume-role"
    assert world.aws.effects("AssumeRole") == 1
    assert world.ask("p2")["provider"] == "assume-role"  # p1's keys are static: they count for others
    assert world.aws.effects("AssumeRole") == 3


@pytest.mark.parametrize("config, words", [
    (role("p", source_profile="q") + role("q", source_profile="p"), "leads back to itself"),
    (role("p", source_profile="p"), "leads back to itself"),
    (role("p", source_profile="nobody"), "the source_profile 'nobody' does not exist"),
    (role("p"), "neither source_profile nor credential_source"),
    (role("p", source_profile="q", credential_source="Environment"), "both source_profile and credential_source"),
    (role("p", source_profile="q") + "[profile q]\nregion = x\n", "source_profile gives no credentials: no keys"),
    (role("p", credential_source="Sun"), "credential_source is not one of"),
    (role("p", credential_source="Environment"), "credential_source gives no credentials: no AWS_ACCESS_KEY_ID"),
    (role("p", source_profile="p", mfa_serial="arn:aws:iam::1:mfa/me"), "MFA"),
    (role("p", source_profile="p", duration_seconds="60"), "duration_seconds is not a number from 900 to 43200"),
])
def test_roles_that_cannot_be(world, config, words):
    world.config(config)
    world.fails(words, "profile", options=("p",))


def test_a_role_with_the_keys_of_this_machine(world):
    world.config(role("p", credential_source="Environment"))
    env = world.aws.env()
    got = world.ask("p", AWS_ACCESS_KEY_ID=env["AWS_ACCESS_KEY_ID"],
                    AWS_SECRET_ACCESS_KEY=env["AWS_SECRET_ACCESS_KEY"])
    assert got["provider"] == "assume-role"
    world.config(role("p", credential_source="EcsContainer"))
    world.aws.settings(container={"seconds": 3600})
    assert world.ask("p", AWS_CONTAINER_CREDENTIALS_FULL_URI=world.aws.url + "/v2/credentials/x")["access"]
    world.config(role("p", credential_source="Ec2InstanceMetadata"))
    world.aws.settings(imds={"role": "r"})
    assert world.ask("p", **instance(world))["provider"] == "assume-role"
    assert world.aws.effects("AssumeRole") == 3


def test_a_role_that_may_not_be_taken_on_is_told_in_the_services_words(world):
    world.aws.settings(roles={ROLE: {"external_id": "other"}})
    world.aws.add_key("AKIDbase", CANARY)
    world.shared(f"[p]\naws_access_key_id = AKIDbase\naws_secret_access_key = {CANARY}\n")
    world.config(role("p", source_profile="p"))
    world.fails(f"cannot assume the role '{ROLE}'", "AccessDenied", "is not authorized to perform: sts:AssumeRole",
                options=("p",))


# --- web identity ------------------------------------------------------------------


def test_a_web_identity_whose_file_is_read_anew(world, tmp_path):
    token = tmp_path / "token"
    token.write_text("first-token\n")
    world.aws.settings(web_identity={"first-token": "good", "second-token": "good"}, sts_seconds=SHORT)
    who = world.start(AWS_WEB_IDENTITY_TOKEN_FILE=token, AWS_ROLE_ARN=ROLE, AWS_ROLE_SESSION_NAME="pod")
    first = who.ask()
    assert first["provider"] == "web-identity" and first["token"]
    token.write_text("second-token")
    world.aws.settings(web_identity={"second-token": "good"}, sts_seconds=900)
    who.ask_until(lambda got: got["access"] != first["access"])
    # Nothing was signed, and it was asked as often as it had to be.
    assert world.aws.effects("AssumeRoleWithWebIdentity") == 2


def test_a_web_identity_of_a_profile_also_as_a_source(world, tmp_path):
    token = tmp_path / "token"
    token.write_text("tok-en")
    world.aws.settings(web_identity={"tok-en": "good"})
    world.config(role("web", web_identity_token_file=token) + role("p", source_profile="web"))
    assert world.ask("web")["provider"] == "web-identity"
    # The environment's does not count for a source, nor where a profile was asked for.
    assert world.ask("p", AWS_WEB_IDENTITY_TOKEN_FILE="/nowhere", AWS_ROLE_ARN="x")["provider"] == "assume-role"


def test_web_identities_that_fail(world, tmp_path):
    token, empty = tmp_path / "token", tmp_path / "empty"
    token.write_text(CANARY)
    empty.write_text("\n")
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": ROLE}
    world.fails("InvalidIdentityToken", ROLE, **env)
    world.aws.settings(web_identity={CANARY: "expired"})
    world.fails("ExpiredToken", **env)
    world.fails("no role for it", AWS_WEB_IDENTITY_TOKEN_FILE=token)
    world.fails("is missing or empty", AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "no", AWS_ROLE_ARN=ROLE)
    world.fails("is missing or empty", AWS_WEB_IDENTITY_TOKEN_FILE=empty, AWS_ROLE_ARN=ROLE)
    empty.write_text("x" * 30000)
    world.fails("larger than", AWS_WEB_IDENTITY_TOKEN_FILE=empty, AWS_ROLE_ARN=ROLE)


# --- SSO ---------------------------------------------------------------------------

SESSION = f"""[profile p]
sso_session = my
sso_account_id = {ACCOUNT}
sso_role_name = Dev
[sso-session my]
sso_region = eu-west-2
sso_start_url = https://x.example/start
"""


def put_login(world, name, seconds, **more):
    folder = world.home / ".aws/sso/cache"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (hashlib.sha1(name.encode()).hexdigest() + ".json")
    path.write_text(json.dumps({"accessToken": CANARY, "expiresAt": iso(seconds), **more}))
    return path


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


REFRESHABLE = {"refreshToken": CANARY + "r", "clientId": "client", "clientSecret": CANARY + "c"}


def test_sso_with_a_login_that_is_good(world):
    world.config(SESSION)
    put_login(world, "my", 3600)
    world.aws.settings(sso={"tokens": {CANARY: time.time() + 3600}, "roles": [[ACCOUNT, "Dev"]]})
    got = world.ask("p")
    assert got["provider"] == "sso" and got["account"] == ACCOUNT and got["expires"] > time.time() * 1000
    assert world.aws.requests("CreateToken") == 0


def test_sso_without_a_session_uses_the_start_url(world):
    world.config(f"[profile p]\nsso_account_id = {ACCOUNT}\nsso_role_name = Dev\nsso_region = eu-west-2\n"
                 "sso_start_url = https://x.example/start\n")
    put_login(world, "https://x.example/start", 3600)
    world.aws.settings(sso={"tokens": {CANARY: time.time() + 3600}})
    assert world.ask("p")["provider"] == "sso"
    put_login(world, "https://x.example/start", -1, **REFRESHABLE, registrationExpiresAt=iso(9000))
    world.fails("the login has expired", "aws sso login --profile p", options=("p",))


def test_sso_renews_a_login_and_writes_it_back_for_the_other_tools(world):
    world.config(SESSION)
    path = put_login(world, "my", 300, **REFRESHABLE, registrationExpiresAt=iso(9000), own="kept")
    world.aws.settings(sso={"refresh": {CANARY + "r": "client"}, "token_seconds": 3600})
    assert world.ask("p")["provider"] == "sso"
    left = json.loads(path.read_text())
    assert left["accessToken"] != CANARY and left["refreshToken"] != CANARY + "r" and left["own"] == "kept"
    assert iso(3500) < left["expiresAt"] < iso(3700) and left["registrationExpiresAt"]
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert world.ask("p")["provider"] == "sso"
    assert world.aws.effects("CreateToken") == 1


def test_sso_goes_on_with_what_is_left_of_a_login_that_cannot_be_renewed(world):
    world.config(SESSION)
    put_login(world, "my", 300, **REFRESHABLE, registrationExpiresAt=iso(9000))
    world.aws.settings(sso={"tokens": {CANARY: time.time() + 300}})
    assert world.ask("p")["provider"] == "sso"


def test_a_service_of_keys_that_does_not_answer_holds_nobody_up(world):
    """It gives up, and does not wait for the end of what hangs; and an expired login is no reason to log
    in again while nobody knows whether it can be renewed."""
    for operation in ("AssumeRole", "CreateToken"):
        world.aws.fault("hang", operation=operation, count=0, seconds=3600)
    world.aws.add_key("AKIDbase", CANARY)
    world.shared(f"[p]\naws_access_key_id = AKIDbase\naws_secret_access_key = {CANARY}\n")
    world.config(SESSION.replace("profile p", "profile s") + role("p", source_profile="p"))
    put_login(world, "my", -10, **REFRESHABLE, registrationExpiresAt=iso(9000))
    with ThreadPoolExecutor() as pool:
        of_role, of_login = pool.map(world.ask, ("p", "s"))
    for got, words in ((of_role, "cannot assume the role"), (of_login, "cannot renew the SSO login of the AWS")):
        assert got["exit"] == 75 and words in got["error"] and CANARY not in str(got), got
        assert "aws sso login" not in str(got.get("hint")), got


def test_sso_that_fails(world):
    world.config(SESSION)
    world.fails("no login yet", "aws sso login --profile p", options=("p",))
    path = put_login(world, "my", -10)
    world.fails("the login has expired", "aws sso login", options=("p",))
    put_login(world, "my", 3600)
    world.fails("the login is no longer accepted", "aws sso login", options=("p",))
    world.aws.settings(sso={"tokens": {CANARY: time.time() + 3600}, "roles": []})
    world.fails("cannot get the keys of the SSO role 'Dev'", "Forbidden", options=("p",))
    path.write_text(f'{{"accessToken": "{CANARY}')
    world.fails("the cached login cannot be read", options=("p",))
    world.config(SESSION.replace("[sso-session my]", "[sso-session other]"))
    world.fails("no [sso-session my]", options=("p",))
    world.config(SESSION.replace("sso_role_name = Dev\n", ""))
    world.fails("sso_role_name is missing", options=("p",))
    world.config(SESSION.replace("sso_session = my", "sso_session = my\nsso_region = eu-west-1"))
    world.fails("sso_region differs", options=("p",))


# --- aws login ---------------------------------------------------------------------


def test_a_profile_of_aws_login_is_refused_clearly(world):
    world.config("[profile p]\nlogin_session = arn:aws:sts::1:assumed-role/x/y\n")
    world.fails("made by 'aws login', which stoker does not support", "export-credentials", options=("p",))


# --- a process ---------------------------------------------------------------------


def process(world, script, *arguments):
    path = world.home / "give keys"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    line = " ".join([f'"{path}"', *arguments])
    world.config(f"[profile p]\ncredential_process = {line}\n")


def test_a_process_is_run_without_a_shell_and_asked_again(world):
    count, ends = world.home / "count", world.home / "ends"
    ends.write_text(iso(3600))
    process(world, f"""echo "$#:$1:$2" >> '{count}'
echo '{{"Version": 1, "AccessKeyId": "A'$(wc -l < '{count}')'", "SecretAccessKey": "s", "SessionToken": "t",
 "AccountId": "1", "Expiration": "'$(cat '{ends}')'"}}'
""", "'a b'", "$HOME;ls")
    who = world.start("p")
    got = who.ask()
    assert got["provider"] == "process" and got["access"] == "A1" and got["token"] == "t" and got["account"] == "1"
    assert count.read_text() == "2:a b:$HOME;ls\n"
    assert who.ask()["access"] == "A1"
    ends.write_text(iso(SHORT))
    who = world.start("p")
    assert who.ask()["access"] == "A2"
    time.sleep(SHORT)
    # It gives the same time again, which is over.
    assert "have expired" in who.ask()["error"]
    assert len(count.read_text().splitlines()) == 3


@pytest.mark.parametrize("script, words", [
    (f"echo why >&2; echo {CANARY}; exit 3", "exit status 3: why"),
    ("printf 'x\\033[31m' >&2; exit 1", "x\\x1b[31m"),
    ("kill -9 $$", "killed by signal 9"),
    (f"echo {CANARY}", "let the command print one JSON object"),
    (f"""echo '{{"Version": 2, "AccessKeyId": "{CANARY}", "SecretAccessKey": "{CANARY}"}}'""", '"Version": 1'),
    (f"""echo '{{"Version": 1, "SecretAccessKey": "{CANARY}"}}'""", "gave no access key id"),
    (f"""echo '{{"Version": 1, "AccessKeyId": "{CANARY}"}}'""", "gave no secret access key"),
    (f"yes {CANARY}", "more than 64 KiB"),
], ids=["status", "escape", "signal", "text", "version", "no-id", "no-secret", "flood"])
def test_a_process_that_fails(world, script, words):
    if script.startswith("yes"):
        script = f"yes {CANARY} | head -c 300000"
    process(world, script)
    world.fails("the credential_process of the profile 'p'", words, options=("p",))


def test_a_process_that_is_not_there(world):
    world.config("[profile p]\ncredential_process = no-such-program-anywhere x\n")
    world.fails("program 'no-such-program-anywhere' not found", options=("p",))
    world.config("[profile p]\ncredential_process = 'open\n")
    world.fails("a quote that is not closed", options=("p",))


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_us(world):
    process(world, """sleep 3600 &
echo $! > "$HOME/pid"
echo '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s"}'
""")
    assert world.ask("p")["access"] == "A"  # while it sleeps
    os.kill(int((world.home / "pid").read_text()), 9)


# --- the order ---------------------------------------------------------------------


def test_the_chain_has_botocores_order(world, tmp_path):
    """Everything is there at once; what wins is taken away, one by one."""
    token = tmp_path / "token"
    token.write_text("web-token")
    world.aws.settings(web_identity={"web-token": "good"}, imds={"role": "r"}, container={"seconds": 900},
                       sso={"tokens": {CANARY: time.time() + 3600}})
    world.aws.add_key("AKIDdefault", "xdefault")
    put_login(world, "my", 3600)
    world.shared(STATIC.format(name="default", canary="x"))
    script = """echo '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s"}'"""
    process(world, script)
    command = f'credential_process = "{world.home}/give keys"\n'
    sso = SESSION.split("[sso-session")[0].partition("\n")[2]
    tail = "[sso-session" + SESSION.split("[sso-session")[1]
    static = STATIC.format(name="default", canary="x").partition("\n")[2]
    env = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s",
           "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": ROLE,
           "AWS_CONTAINER_CREDENTIALS_FULL_URI": world.aws.url + "/v2/credentials/x", **instance(world)}
    lines = {"role": f"role_arn = {ROLE}\nsource_profile = default\n", "sso": sso, "process": command,
             "static": static}

    def provider():
        world.config("[default]\n" + "".join(lines.values()) + tail)
        return world.ask(**env)["provider"]

    assert provider() == "environment"
    env["AWS_ACCESS_KEY_ID"] = None
    assert provider() == "assume-role"
    del lines["role"]
    assert provider() == "web-identity"
    env["AWS_WEB_IDENTITY_TOKEN_FILE"] = None
    assert provider() == "sso"
    del lines["sso"]
    assert provider() == "shared-credentials-file"
    world.shared("")
    assert provider() == "process"
    del lines["process"]
    assert provider() == "config-file"
    del lines["static"]
    assert provider() == "container"
    env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = None
    assert provider() == "instance"
