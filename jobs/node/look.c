/* Tries what jobs need, where they run: see look.h. */
#include "jobs/node/look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/credentials/secret.h"
#include "aws/credentials/secrets.h"
#include "aws/credentials/sts.h"
#include "aws/http/refusal.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/cancel.h"
#include "jobs/store/store_right.h"

#define EACH_MS    10000 /* a check has no longer */
#define PARTS      "inside.parts"
#define SECRET_MAX ((size_t)64 << 10)

/* ---- findings ---- */

/* Writes to the log: this process stands for a command, whose output that is. */
static void say(const char *words)
{
	AUTO(auto_free) char *line = mem_format(LOOK_LINE "%s\n", words);

	(void)!fs_write_full(STDOUT_FILENO, line, strlen(line));
}

/* Writes a finding; why NULL: all is well, with the words of `seen`. `bad`: its state with an
 * error, unless nobody answered. */
static void tell_as(const char *bad, const char *check, const char *on, const char *field,
		    const struct err *why, const char *seen)
{
	const struct refusal_said *refusal = why ? refusal_of(why) : NULL;
	json_auto_t *line = json_object();
	AUTO(auto_free) char *text = NULL;
	const char *state = !why ? "ok" : why->code == EXIT_UNREACHABLE ? "unknown" : bad;

	js_put_str(line, "check", check);
	js_put_str(line, "on", on);
	js_put_str(line, "state", state);
	js_put_str(line, "seen", why ? why->message : seen);
	js_put_str(line, "cure", why ? why->hint : NULL);
	js_put_str(line, "code", refusal ? refusal->code : NULL);
	js_put_str(line, "request_id",
		   refusal && refusal->request_id[0] ? refusal->request_id : NULL);
	js_put_str(line, "field", why ? field : NULL);
	text = js_line(line);
	say(text);
}

static void tell(const char *check, const char *on, const char *field, const struct err *why,
		 const char *seen)
{
	tell_as("fail", check, on, field, why, seen);
}

/* ---- calls that are tried ---- */

static void try_identity(void)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *account = NULL;
	AUTO(auto_free) char *arn = NULL;
	AUTO(auto_free) char *seen = NULL;

	cancel_after(EACH_MS);
	if (sts_identity(&account, &arn, &why) == 0)
		seen = mem_format("the job has the rights of %s", arn ? arn : account);
	tell("inside.identity", NULL, NULL, why, seen);
}

/* Returns whether the right is there. */
static bool try_right(struct store *store, enum store_right right, const char *key,
		      const json_t *place)
{
	static const struct {
		const char *check, *seen;
	} rows[] = {
		[STORE_RIGHT_LIST] = { "inside.list", "can be listed" },
		[STORE_RIGHT_PUT] = { "inside.put", "can be written" },
		[STORE_RIGHT_GET] = { "inside.get", "can be read" },
		[STORE_RIGHT_DELETE] = { "inside.delete", "can be deleted from" },
	};
	const char *what = js_str(place, "what");
	AUTO(auto_free) char *seen = mem_format("the %s %s", what, rows[right].seen);
	AUTO(err_freep) struct err *why = NULL;

	cancel_after(EACH_MS);
	(void)!store_right_try(store, right, key, what, &why);
	tell(rows[right].check, js_str(place, "url"), js_str(place, "field"), why, seen);
	return !why;
}

/* Tries an upload in parts. Jobs look for those that were left in some places only. If it could not
 * be aborted, the probe stays: a later doctor finds the upload by it. */
static bool try_parts(const struct store *store, const char *key, const json_t *place)
{
	static const char *const states[S3_PARTS_STEPS] = { "fail", "warn", "warn", "fail" };
	const char *on = js_str(place, "url"), *field = js_str(place, "field");
	AUTO(s3_parts_trial_release) struct s3_parts_trial trial = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	bool is_well = true;

	cancel_after(EACH_MS);
	if (store_right_try_parts(store, key, js_bool(place, "uploads", false), &trial, &why) < 0) {
		tell(PARTS, on, field, why, NULL);
		return true;
	}
	for (size_t i = 0; i < S3_PARTS_STEPS; i++)
		if (trial.why[i]) {
			is_well = false;
			tell_as(states[i], PARTS, on, field, trial.why[i], NULL);
		}
	if (is_well)
		tell(PARTS, on, field, NULL, "an upload in parts begins, and is aborted");
	return !trial.why[S3_PARTS_ABORT];
}

static void try_place(const json_t *place)
{
	bool leaves_nothing;

	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *key = NULL;
	char chance[HASH_NAME_HEX];

	hash_random_hex(8, chance);
	key = mem_format(STORE_RIGHT_PROBES "%s/" STORE_RIGHT_PROBE, chance);
	if (store_open(js_str(place, "url"), &store, &why) < 0) {
		tell("inside.list", js_str(place, "url"), js_str(place, "field"), why, NULL);
		return;
	}
	try_right(store, STORE_RIGHT_LIST, key, place);
	if (json_is_true(json_object_get(place, "read_only")) ||
	    !try_right(store, STORE_RIGHT_PUT, key, place))
		return;
	try_right(store, STORE_RIGHT_GET, key, place);
	leaves_nothing = try_parts(store, key, place);
	try_right(store, STORE_RIGHT_DELETE, key, place);
	err_freep(&why);
	if (!leaves_nothing)
		(void)!store_put(store, key, "", 0, &why);
}

static void try_secret(const char *name, const char *from)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(secret_freep) char *value = NULL;
	AUTO(auto_free) char *field = mem_format("secrets.%s", name);

	if (!aws_secret_is(from))
		return; /* the engine hands it over */
	cancel_after(EACH_MS);
	(void)!aws_secret_read(from, SECRET_MAX, &value, &why);
	tell("inside.secret", from, field, why, "the secret can be read");
}

static int look(const void *task, int news_fd, int orders_fd)
{
	const struct agent_config *config = task;
	json_t *orders = config->order->look, *place, *from;
	const char *name;
	size_t i;

	(void)news_fd;
	(void)orders_fd;
	if (json_is_true(json_object_get(orders, "identity")))
		try_identity();
	json_array_foreach (json_object_get(orders, "places"), i, place)
		try_place(place);
	json_object_foreach (json_object_get(orders, "secrets"), name, from)
		try_secret(name, json_string_value(from));
	say("{}");
	return 0;
}

/* ---- the agent's side ---- */

bool look_needed(const struct agent_config *config)
{
	return config->order->look != NULL;
}

int look_start(struct helper *helper, const struct agent_config *config, int write_fd,
	       pid_t *ret_pid, struct err **err)
{
	if (helper_start_command(helper, "stoker-look", look, config, sizeof *config, write_fd,
				 err) < 0)
		return -1;
	*ret_pid = helper->pid;
	return 0;
}

void look_release(struct helper *helper)
{
	if (helper->pid)
		helper_close(helper);
}
