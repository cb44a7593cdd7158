/* Trial of the conditions of writes: see conditions.h. */
#include "jobs/run/plan/conditions.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store_right.h"

#define SCHEME    "s3://"
#define BYTES_MAX 64 /* size of the object; a longer one is not ours */

#define NONE_RIGHT  "'If-None-Match: *' for a missing object"
#define NONE_WRONG  "'If-None-Match: *' for an existing object"
#define MATCH_RIGHT "'If-Match' with the object's ETag"
#define MATCH_WRONG "'If-Match' with an ETag that the object no longer has"

#define OVERWRITTEN "200, and the object is overwritten"

struct trial {
	struct store *store; /* borrowed, as are `what` and `key` */
	const char *what, *key;
	char first[STORE_TAG], second[STORE_TAG]; /* tags of the two contents */
};

char *conditions_bucket(const char *url)
{
	size_t scheme = text_starts(url, SCHEME) ? strlen(SCHEME) : 0;

	return mem_copy_n(url, scheme + strcspn(url + scheme, "/"));
}

static int distrust(const struct trial *trial, const char *condition, const char *answer,
		    struct err **err)
{
	AUTO(auto_free) char *bucket = conditions_bucket(store_url(trial->store));
	const char *server = aws_endpoint_configured("S3");

	err_freep(err);
	err_set(err, EXIT_REFUSED,
		"the S3 server at '%s' cannot be trusted with the %s: in the bucket '%s' a write "
		"under the condition %s is answered with %s",
		server ? server : "AWS", trial->what, bucket + strlen(SCHEME), condition, answer);
	return err_hint(err,
			"put the %s on a server with conditional writes, such as Amazon S3, or in "
			"a folder; these conditions keep two drivers from one run",
			trial->what);
}

/* Judges a write that failed. If it was refused because of its condition, the same write without
 * one works. */
static int explain_failure(const struct trial *trial, const char *condition, struct err **err)
{
	AUTO(err_freep) struct err *also = NULL;
	AUTO(auto_free) char *answer = NULL;

	if ((*err)->code != EXIT_REFUSED)
		return err_wrap(err, "cannot try the conditions of writes on the %s '%s'",
				trial->what, store_url(trial->store));
	if (store_put(trial->store, trial->key, "", 0, &also) < 0) {
		err_freep(err);
		*err = TAKE(also);
		return store_right_denied(trial->store, trial->what, "write to", "s3:PutObject",
					  err);
	}
	answer = mem_format("an error: %s", (*err)->message);
	return distrust(trial, condition, answer, err);
}

/* A write under `condition` must be done, or not; `otherwise` is the answer of a server that does
 * the opposite. */
static int must_be_done(const struct trial *trial, const char *condition, bool done, int written,
			const char *otherwise, struct err **err)
{
	if (written < 0)
		return explain_failure(trial, condition, err);
	return (written > 0) == done ? 0 : distrust(trial, condition, otherwise, err);
}

static bool can_read(const struct trial *trial, bool with_tag)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	char tag[STORE_TAG];

	return store_get(trial->store, trial->key, BYTES_MAX, &bytes, with_tag ? tag : NULL,
			 &ignored) > 0;
}

/* A look that had no answer fails like one at an object without an ETag; the one fails by chance,
 * the other each time. */
static bool lacks_tag(const struct trial *trial)
{
	return can_read(trial, false) && !can_read(trial, true) && can_read(trial, false);
}

/* The object must be `text` after a write under `condition`; `otherwise` says what the server did
 * if it is not. */
static int must_read(const struct trial *trial, const char *text, char *ret_tag,
		     const char *condition, const char *otherwise, struct err **err)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	char tag[STORE_TAG] = "";
	int found = store_get(trial->store, trial->key, BYTES_MAX, &bytes, ret_tag ? ret_tag : tag,
			      err);

	if (found < 0 && (*err)->code == EXIT_UNREACHABLE && lacks_tag(trial))
		return distrust(trial, condition, "200, but gives the object no ETag", err);
	if (found == 0)
		err_set(err, EXIT_REFUSED, "the written object is missing");
	if (found <= 0)
		return store_right_denied(trial->store, trial->what, "read from", "s3:GetObject",
					  err);
	return strcmp(bytes.text, text) == 0 ? 0 : distrust(trial, condition, otherwise, err);
}

/* Each content differs from the others, so that the last one shows which write was done. */
static int try_absent(struct trial *trial, struct err **err)
{
	int written = store_put_if_absent(trial->store, trial->key, "first", 5, err);

	if (must_be_done(trial, NONE_RIGHT, true, written, "412", err) < 0)
		return -1;
	written = store_put_if_absent(trial->store, trial->key, "another", 7, err);
	if (must_be_done(trial, NONE_WRONG, false, written, OVERWRITTEN, err) < 0)
		return -1;
	return must_read(trial, "first", trial->first, NONE_WRONG,
			 "412, but the object is overwritten", err);
}

static int try_same(struct trial *trial, struct err **err)
{
	int written =
		store_replace_if_same(trial->store, trial->key, trial->first, "second", 6, err);

	if (must_be_done(trial, MATCH_RIGHT, true, written, "412, as if the ETag were another one",
			 err) < 0 ||
	    must_read(trial, "second", trial->second, MATCH_RIGHT,
		      "200, but the object is unchanged", err) < 0)
		return -1;
	if (strcmp(trial->first, trial->second) == 0)
		return distrust(trial, MATCH_RIGHT, "200, and two contents have the same ETag",
				err);
	written = store_replace_if_same(trial->store, trial->key, trial->first, "third", 5, err);
	if (must_be_done(trial, MATCH_WRONG, false, written, OVERWRITTEN, err) < 0)
		return -1;
	return must_read(trial, "second", NULL, MATCH_WRONG, "412, but the object is overwritten",
			 err);
}

int conditions_try_at(struct store *store, const char *key, const char *what, struct err **err)
{
	struct trial trial = { .store = store, .what = what, .key = key };

	return try_absent(&trial, err) < 0 || try_same(&trial, err) < 0 ? -1 : 0;
}

int conditions_try(struct store *store, const char *what, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *key = NULL;
	char chance[HASH_NAME_HEX];
	int result;

	if (store_directory(store))
		return 0;
	hash_random_hex(8, chance);
	key = mem_format(PREFLIGHT_KEY "%s", chance);
	result = conditions_try_at(store, key, what, err);
	/* A failure is ignored: the right to delete is tried when a run begins, and later probes
	 * remove leftovers. */
	(void)!store_delete(store, key, &ignored);
	return result;
}
