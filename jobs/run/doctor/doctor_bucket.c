/* Checks of a place in a bucket: rights, parts, and the conditions of writes, each with one probe.
 *
 * The probe is `.stoker-doctor/<whose>/probe` beneath the place's prefix. `whose` names this
 * process as no other: two doctors do not meet. One that was killed leaves this one object at most,
 * with an upload in parts begun under the same key. The next doctor removes both: at once where it
 * can see that the process is gone, else when they are an hour old, which no doctor lives to see.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/credentials/settings.h"
#include "aws/s3/s3.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"
#include "jobs/run/doctor/doctor_internal.h"
#include "jobs/run/plan/conditions.h"
#include "jobs/store/store_right.h"

#define LEFTOVER_MS   ((int64_t)60 * 60 * 1000)
#define LEFTOVERS_MAX 100 /* at a time */
#define HOST_DIGITS   16
#define HOST_ROOM     (HOST_DIGITS + 1)
#define WHOSE_MAX     64

#define READ_ONLY "--read-only"
#define NOT_PUT   "the probe was not written"

enum trial_state { TRIAL_DUE, TRIAL_WELL, TRIAL_BAD };

enum probe_state { PROBE_ABSENT, PROBE_THERE, PROBE_REFUSED, PROBE_LEFT };

struct bucket {
	struct err *why; /* it could not be opened; NULL: it is open */
	struct store *store;
	struct aws *aws;
	char *name, *prefix; /* of the bucket, and of the place in it */
	char *key;           /* of the probe, in the store */
	enum probe_state probe;
	enum trial_state trial; /* of the conditions of writes, which leaves the probe */
	struct err *bad;        /* why it is TRIAL_BAD */
	bool has_upload;        /* in parts, which could not be aborted */
};

/* ---- whose probe ---- */

/* Digits that are the same for all processes that see each other. */
static bool host_of(const struct proc_id *id, char ret[HOST_ROOM])
{
	char space[64] = "", hex[SHA256_HEX];
	AUTO(auto_free) char *words = NULL;
	ssize_t len = readlink("/proc/self/ns/pid", space, sizeof space - 1);

	if (len < 0)
		return false;
	words = mem_format("%s %s", id->boot_id, space);
	hash_sha256_hex(words, strlen(words), hex);
	memcpy(ret, hex, HOST_DIGITS);
	ret[HOST_DIGITS] = '\0';
	return true;
}

/* Returns the key of this process's probe. The caller frees it. */
static char *own_key(void)
{
	struct proc_id id = { 0 };
	char host[HOST_ROOM], chance[HASH_NAME_HEX];

	if (proc_identify(getpid(), &id) == 0 && host_of(&id, host))
		return mem_format(STORE_RIGHT_PROBES "%s-%lld-%llu/" STORE_RIGHT_PROBE, host,
				  (long long)id.pid, (unsigned long long)id.start_ticks);
	hash_random_hex(8, chance);
	return mem_format(STORE_RIGHT_PROBES "%s/" STORE_RIGHT_PROBE, chance);
}

/* True if the probe is that of a process which would be seen here, and is gone. */
static bool is_of_the_dead(const char *key)
{
	struct proc_id own = { 0 }, other;
	char host[HOST_ROOM], whose[WHOSE_MAX];
	size_t len = strcspn(key + strlen(STORE_RIGHT_PROBES), "/");
	char *rest;

	if (len >= sizeof whose || proc_identify(getpid(), &own) < 0 || !host_of(&own, host))
		return false;
	memcpy(whose, key + strlen(STORE_RIGHT_PROBES), len);
	whose[len] = '\0';
	if (!text_starts(whose, host) || whose[HOST_DIGITS] != '-')
		return false;
	other = own;
	other.pid = (pid_t)strtol(whose + HOST_DIGITS + 1, &rest, 10);
	if (*rest != '-' || other.pid <= 0)
		return false;
	other.start_ticks = strtoull(rest + 1, &rest, 10);
	return *rest == '\0' && !proc_alive(&other);
}

/* ---- the place ---- */

static void bucket_release(void *own)
{
	struct bucket *bucket = own;
	AUTO(err_freep) struct err *ignored = NULL;

	/* The next doctor finds an upload by the probe of its key. */
	if (bucket->has_upload)
		(void)!store_put(bucket->store, bucket->key, "", 0, &ignored);
	else if (bucket->probe == PROBE_THERE)
		(void)!store_delete(bucket->store, bucket->key, &ignored);
	err_free(bucket->why);
	err_free(bucket->bad);
	store_freep(&bucket->store);
	aws_freep(&bucket->aws);
	free(bucket->name);
	free(bucket->prefix);
	free(bucket->key);
	free(bucket);
}

/* Returns the key of an object of the store in its bucket. The caller frees it. */
static char *full_key(const struct bucket *bucket, const char *key)
{
	return mem_format("%s%s%s", bucket->prefix, bucket->prefix[0] ? "/" : "", key);
}

/* Opened once for all checks. NULL if it cannot be: that is told. */
static struct bucket *bucket_of(struct doctor_talk *talk)
{
	struct bucket *bucket = talk->own;

	if (!bucket) {
		bucket = mem_zero(1, sizeof *bucket);
		talk->own = bucket;
		talk->release = bucket_release;
		bucket->key = own_key();
		if (s3_parse_url(talk->on, &bucket->name, &bucket->prefix, &bucket->why) == 0 &&
		    store_open(talk->on, &bucket->store, &bucket->why) == 0 &&
		    aws_open(&bucket->aws, &bucket->why) == 0) {
			AUTO(auto_free) char *all = full_key(bucket, "");

			aws_set_place(bucket->aws, bucket->name, all);
		}
	}
	if (!bucket->why)
		return bucket;
	doctor_finding_of(talk, bucket->why, NULL);
	return NULL;
}

/* The same for checks that write. */
static struct bucket *bucket_to_write(struct doctor_talk *talk)
{
	if (!talk->read_only)
		return bucket_of(talk);
	doctor_finding(talk, DOCTOR_UNKNOWN, "omit " READ_ONLY, READ_ONLY);
	return NULL;
}

/* Tries the conditions of writes, once. What that did of writing and reading need not be tried
 * again; where it failed, each right is tried by itself, to tell which is missing. */
static bool is_well(struct doctor_talk *talk, struct bucket *bucket)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (bucket->trial != TRIAL_DUE)
		return bucket->trial == TRIAL_WELL;
	bucket->trial = TRIAL_BAD;
	if (conditions_try_at(bucket->store, bucket->key, talk->what, &bucket->bad) == 0) {
		bucket->trial = TRIAL_WELL;
		bucket->probe = PROBE_THERE;
		return true;
	}
	(void)!store_delete(bucket->store, bucket->key, &ignored);
	return false;
}

/* The same as bucket_to_write() once the probe is there. */
static struct bucket *bucket_with_probe(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_to_write(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!bucket)
		return NULL;
	(void)is_well(talk, bucket);
	if (bucket->probe == PROBE_ABSENT)
		bucket->probe = store_right_try(bucket->store, STORE_RIGHT_PUT, bucket->key,
						talk->what, &why) == 0
					? PROBE_THERE
					: PROBE_REFUSED;
	if (bucket->probe == PROBE_THERE)
		return bucket;
	doctor_finding_untried(talk, NOT_PUT);
	return NULL;
}

/* ---- the checks ---- */

void doctor_bucket_region(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_of(talk);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *why = NULL, *unset = NULL;
	AUTO(sb_release) struct sb region = SB_INIT;
	struct aws_call call = AWS_CALL_INIT(HEAD_BUCKET);
	const char *here = aws_region(&unset);

	if (!bucket)
		return;
	call.bucket = bucket->name;
	if (aws_perform(bucket->aws, &call, &reply, &why) < 0)
		doctor_finding_of(talk, why, "s3:ListBucket");
	else if (!http_header(reply.http, "x-amz-bucket-region", &region))
		doctor_finding(talk, DOCTOR_OK, NULL, "the bucket is there");
	else if (here && strcmp(here, region.text) != 0)
		doctor_finding(talk, DOCTOR_WARN,
			       "name a bucket of the jobs' region: between regions traffic is slow "
			       "and is paid for",
			       "the bucket is in %s, the jobs are in %s", region.text, here);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the bucket is in %s", region.text);
}

struct bucket_leftovers {
	char **keys;
	size_t count;
};

static int add_leftover(void *arg, const struct store_object *object, struct err **err)
{
	struct bucket_leftovers *found = arg;
	int64_t modified = object->modified.ms;

	(void)err;
	if ((modified > 0 && clock_utc_now().ms - modified > LEFTOVER_MS) ||
	    is_of_the_dead(object->key))
		auto_strv_add(&found->keys, &found->count, object->key);
	return found->count == LEFTOVERS_MAX;
}

/* Removes the probes that others have left. A failure shows in the checks that follow. */
static void clear_leftovers(const struct bucket *bucket)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_strv) char **keys = NULL;
	struct bucket_leftovers found = { 0 };

	(void)!store_list(bucket->store, STORE_RIGHT_PROBES, add_leftover, &found, &ignored);
	keys = found.keys;
	for (size_t i = 0; i < found.count; i++) {
		AUTO(auto_free) char *key = full_key(bucket, keys[i]);
		const struct s3_place place = { bucket->name, key };

		err_freep(&ignored);
		(void)!s3_abort_leftovers(bucket->aws, &place, 0, &ignored);
		err_freep(&ignored);
		(void)!store_delete(bucket->store, keys[i], &ignored);
	}
}

void doctor_bucket_list(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_of(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!bucket)
		return;
	if (store_right_try(bucket->store, STORE_RIGHT_LIST, bucket->key, talk->what, &why) < 0) {
		doctor_finding_of(talk, why, NULL);
		return;
	}
	if (!talk->read_only)
		clear_leftovers(bucket);
	doctor_finding(talk, DOCTOR_OK, NULL, "the %s can be listed", talk->what);
}

void doctor_bucket_put(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_to_write(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!bucket)
		return;
	if (!is_well(talk, bucket)) {
		bucket->probe = PROBE_REFUSED;
		if (store_right_try(bucket->store, STORE_RIGHT_PUT, bucket->key, talk->what, &why) <
		    0) {
			doctor_finding_of(talk, why, NULL);
			return;
		}
		bucket->probe = PROBE_THERE;
	}
	doctor_finding(talk, DOCTOR_OK, NULL, "the %s can be written", talk->what);
}

void doctor_bucket_get(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_with_probe(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!bucket)
		return;
	if (!is_well(talk, bucket) &&
	    store_right_try(bucket->store, STORE_RIGHT_GET, bucket->key, talk->what, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the %s can be read", talk->what);
}

/* True if the spec names the key: by ARN or id, or, as far as is known, by an alias. */
static bool names_key(const json_t *plan, const char *arn)
{
	const char *slash = strrchr(arn, '/'), *id = slash ? slash + 1 : arn, *text;
	const json_t *key;
	size_t i;

	json_array_foreach (js_path(plan, "spec.aws.kms_keys"), i, key) {
		text = json_string_value(key);
		if (strcmp(text, arn) == 0 || strcmp(text, id) == 0 || strstr(text, "alias/"))
			return true;
	}
	return false;
}

static void tell_well(struct doctor_talk *talk, const char *kms_key)
{
	AUTO(auto_free)
	char *by = kms_key ? mem_format("; S3 encrypts it by %s", kms_key) : NULL;

	doctor_finding(talk, DOCTOR_OK, NULL, "an upload in parts begins, and is aborted%s%s",
		       by ? by : "",
		       by && talk->plan && !names_key(talk->plan, kms_key)
			       ? ", which aws.kms_keys does not name, so that the policies that "
				 "--policy prints lack it"
			       : "");
}

/* Says what of a trial failed. A run does without what only finds parts that were left. */
static void tell_parts(struct doctor_talk *talk, const struct s3_parts_trial *trial)
{
	static const bool spared[S3_PARTS_STEPS] = {
		[S3_PARTS_FIND] = true, [S3_PARTS_LIST] = true
	};
	bool is_well = true;

	for (size_t i = 0; i < S3_PARTS_STEPS; i++) {
		const struct err *why = trial->why[i];

		if (why && spared[i])
			doctor_finding_warn(talk, why);
		else if (why)
			doctor_finding_of(talk, why, NULL);
		is_well = is_well && !why;
	}
	if (is_well)
		tell_well(talk, trial->kms_key);
}

void doctor_bucket_multipart(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_with_probe(talk);
	AUTO(auto_free) char *key = bucket ? full_key(bucket, bucket->key) : NULL;
	AUTO(s3_parts_trial_release) struct s3_parts_trial trial = { 0 };

	if (!bucket)
		return;
	s3_parts_try(bucket->aws, &(struct s3_place){ bucket->name, key }, true, &trial);
	bucket->has_upload = trial.why[S3_PARTS_ABORT] != NULL;
	tell_parts(talk, &trial);
}

void doctor_bucket_delete(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_with_probe(talk);
	AUTO(err_freep) struct err *why = NULL;

	if (!bucket)
		return;
	bucket->probe = PROBE_LEFT;
	if (store_right_try(bucket->store, STORE_RIGHT_DELETE, bucket->key, talk->what, &why) < 0) {
		doctor_finding_of(talk, why, NULL);
		return;
	}
	bucket->probe = PROBE_ABSENT;
	doctor_finding(talk, DOCTOR_OK, NULL, "the probe is removed again");
}

void doctor_bucket_conditions(struct doctor_talk *talk)
{
	struct bucket *bucket = bucket_to_write(talk);

	if (!bucket)
		return;
	if (is_well(talk, bucket))
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "writes that must not overwrite are refused, and replacements are "
			       "done of the known content alone");
	else if (bucket->probe == PROBE_REFUSED)
		doctor_finding_untried(talk, NOT_PUT);
	else
		doctor_finding_of(talk, bucket->bad, NULL);
}
