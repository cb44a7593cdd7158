/* Fills an empty compile cache from other caches: see driver_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/http/patience.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/cache_transfer.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/run/driver_internal.h"

#define CLAIM_NAME     "preload"
#define BEGUN          KEY_CLAIM_PREFIX "preload.begun" /* from the first object to the last */
#define WAIT_MS        1000                             /* between two tries of the claim */
#define WAIT_REMOTE_MS 10000
#define LOOK_MS        1000 /* between two looks for requests while a copy takes its time */
#define LOOK_REMOTE_MS 5000

/* A cache that is being filled. */
struct cache_preload {
	struct driver *driver;
	struct key_claim claim;
	struct mono renewed, looked;
	struct err *lost; /* why the copy was stopped; owned */
	bool stopped;     /* the copy was stopped, for the loop to hear what has come */
	struct sb words;  /* a line about each URL */
};

static void preload_release(struct cache_preload *preload)
{
	key_claim_clear(&preload->claim);
	err_free(preload->lost);
	sb_release(&preload->words);
}

static int on_object(void *arg, const struct store_object *object, struct err **err)
{
	bool *found = arg;

	(void)err;
	*found = !key_claim_is(object->key);
	return *found;
}

static int is_empty(struct store *cache, bool *ret, struct err **err)
{
	bool found = false;

	*ret = true;
	if (store_list(cache, "", on_object, &found, err) < 0)
		return -1;
	*ret = !found;
	return 0;
}

/* Finds out whether there is something to do: the cache is empty, or an earlier copy has not
 * ended. */
static int is_due(const struct cache_preload *preload, bool *ret, struct err **err)
{
	struct store *cache = preload->driver->cache;
	struct store_object begun;
	int found = store_stat(cache, BEGUN, &begun, err);

	*ret = found > 0;
	if (found < 0 || (found == 0 && is_empty(cache, ret, err) < 0))
		return err_wrap(err, "cannot read the compile cache");
	return 0;
}

/* The same run, begun again, has the claim of the process that died. */
static void init_claim(struct cache_preload *preload)
{
	const struct driver *driver = preload->driver;
	AUTO(auto_free) char *own = mem_format("%s %s", journal_url(driver->journal), driver->run);
	char nonce[SHA256_HEX];

	hash_sha256_hex(own, strlen(own), nonce);
	key_claim_init(&preload->claim, driver->cache, CLAIM_NAME, driver->run, nonce);
}

/* Takes the claim. Returns 1; 0 if another run has it, or has filled the cache meanwhile: then
 * *ret_due is false; -1. */
static int take_claim(struct cache_preload *preload, bool *ret_due, struct err **err)
{
	int taken = key_claim_try(&preload->claim, err);

	if (taken < 0 || is_due(preload, ret_due, err) < 0)
		return -1;
	if (taken > 0 && !*ret_due)
		return key_claim_release(&preload->claim, err) < 0 ? -1 : 0;
	return taken > 0;
}

/* True if the loop is to hear something: a signal, an answer, or what others have appended. */
static bool has_news(struct cache_preload *preload)
{
	struct driver *driver = preload->driver;
	AUTO(err_freep) struct err *ignored = NULL; /* is met again by the loop */
	int64_t before = driver->seq;
	bool remote = journal_is_remote(driver->journal);

	if (loop_stop_pending() || cancel_is_due())
		return true;
	if (clock_mono_now().ms - preload->looked.ms < (remote ? LOOK_REMOTE_MS : LOOK_MS))
		return false;
	if (beside_stop_file_read(driver))
		return true;
	(void)!driver_absorb(driver, &ignored);
	preload->looked = clock_mono_now();
	return driver->seq != before || driver->stood_down;
}

/* Keeps what is ours while a copy takes its time; false stops it. */
static bool on_progress(void *arg, const struct sync_sum *sum)
{
	struct cache_preload *preload = arg;
	AUTO(err_freep) struct err *ignored = NULL;

	(void)sum;
	preload->stopped |= has_news(preload);
	if (preload->stopped || driver_keep(preload->driver, &preload->lost) < 0)
		return false;
	if (clock_mono_now().ms - preload->renewed.ms >= KEY_CLAIM_RENEW_MS) {
		preload->renewed = clock_mono_now();
		/* A run without the claim may copy the same objects: twice, and no harm. */
		(void)!key_claim_renew(&preload->claim, &ignored);
	}
	return true;
}

/* Copies, and never over an object of somebody else. */
static int copy(struct cache_preload *preload, struct store *from, struct store *to,
		struct sync_sum *ret, struct err **err)
{
	const struct sync_options options = { .once = true,
					      .exclusive = true,
					      .stage = cache_stage,
					      .progress = on_progress,
					      .arg = preload };

	return sync_run(from, to, &options, ret, err);
}

/* Between two buckets: by a folder of the state, which a repeated copy goes on with. Objects that
 * the folder cannot have, or that were changed meanwhile, are left out, as in a single copy. */
static int copy_staged(struct cache_preload *preload, struct store *from, const char *url,
		       struct sync_sum *ret, struct err **err)
{
	AUTO(store_freep) struct store *stage = NULL;
	AUTO(auto_free) char *folder = NULL;
	struct sync_sum first;
	char hex[SHA256_HEX];

	hash_sha256_hex(url, strlen(url), hex);
	folder = mem_format("%s/preload/%s-%.16s", journal_dir(preload->driver->journal),
			    preload->driver->run, hex);
	if (store_open(folder, &stage, err) < 0 || copy(preload, from, stage, &first, err) < 0)
		return -1;
	if (first.stopped)
		return 0;
	if (copy(preload, stage, preload->driver->cache, ret, err) < 0)
		return -1;
	ret->objects[SYNC_REFUSED] += first.objects[SYNC_REFUSED];
	ret->objects[SYNC_FAILED] += first.objects[SYNC_FAILED];
	return ret->stopped ? 0 : fs_remove_tree(folder, err);
}

static void add_words(struct cache_preload *preload, const char *url, const struct sync_sum *sum,
		      const struct err *why)
{
	int64_t objects = sum->objects[SYNC_MOVED] + sum->objects[SYNC_SAME];
	int64_t left = sum->objects[SYNC_REFUSED] + sum->objects[SYNC_FAILED];
	double mib = (double)(sum->bytes[SYNC_MOVED] + sum->bytes[SYNC_SAME]) / (1 << 20);
	struct sb *words = &preload->words;

	sb_addf(words, "%s'%s': ", words->len > 0 ? "; " : "", url);
	if (why)
		sb_addf(words, "not preloaded: %s", why->message);
	else if (objects + left == 0)
		sb_adds(words, "not preloaded: nothing is there");
	else
		sb_addf(words, "%lld objects, %.1f MiB", (long long)objects, mib);
	if (!why && left > 0)
		sb_addf(words, ", and %lld objects not", (long long)left);
}

/* Copies what is at the URL; the reason for which that cannot be is in *ret_why. */
static void copy_from(struct cache_preload *preload, const char *url, struct sync_sum *ret,
		      struct err **ret_why)
{
	struct store *cache = preload->driver->cache;
	AUTO(store_freep) struct store *from = NULL;
	int result = store_open(url, &from, ret_why);

	if (result == 0 && !store_directory(from) && !store_directory(cache))
		result = copy_staged(preload, from, url, ret, ret_why);
	else if (result == 0)
		result = copy(preload, from, cache, ret, ret_why);
	(void)result; /* is told with the URL */
}

/* Copies from one URL. Graphs that cannot be had from there are told, and the run compiles them. */
static int preload_one(struct cache_preload *preload, const char *url, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	struct sync_sum sum = { 0 };

	copy_from(preload, url, &sum, &why);
	if (preload->lost) {
		*err = TAKE(preload->lost);
		return -1;
	}
	if (preload->stopped)
		return 0;
	add_words(preload, url, &sum, why);
	return 0;
}

static int preload_all(struct cache_preload *preload, const json_t *urls, struct err **err)
{
	struct store *cache = preload->driver->cache;
	const json_t *url;
	size_t i;

	preload->renewed = preload->looked = clock_mono_now();
	if (store_put_if_absent(cache, BEGUN, "{}\n", 3, err) < 0)
		return -1;
	json_array_foreach (urls, i, url)
		if (!preload->stopped && preload_one(preload, json_string_value(url), err) < 0)
			return -1;
	return preload->stopped ? 0 : store_delete(cache, BEGUN, err);
}

static int record(struct driver *driver, const char *words, struct err **err)
{
	struct event ev = { .kind = EV_CACHE_PRELOADED };

	EVENT_SET_STR(&ev, reason, words);
	return driver_record(driver, &ev, err);
}

int cache_preload(struct driver *driver, int64_t *ret_wait_ms, struct err **err)
{
	const json_t *urls = json_object_get(json_object_get(driver->plan, "compile"), "preload");
	AUTO(preload_release)
	struct cache_preload preload = { .driver = driver, .words = SB_INIT };
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *words = NULL;
	bool due = false;
	int taken, result;

	*ret_wait_ms = 0;
	if (json_array_size(urls) == 0 || !driver->cache || driver->facts.preloaded)
		return 0;
	if (is_due(&preload, &due, err) < 0)
		return -1;
	init_claim(&preload);
	taken = due ? take_claim(&preload, &due, err) : 0;
	if (taken < 0)
		return -1;
	if (!due)
		return record(driver, "the compile cache is not empty: nothing is preloaded", err);
	if (taken == 0) {
		*ret_wait_ms = store_directory(driver->cache) ? WAIT_MS : WAIT_REMOTE_MS;
		return 0;
	}
	result = preload_all(&preload, urls, err);
	(void)!key_claim_release(&preload.claim, &ignored);
	if (result < 0)
		return -1;
	if (preload.stopped) {
		*ret_wait_ms = 1;
		return 0;
	}
	words = mem_format("the compile cache was empty, and is preloaded from %s",
			   preload.words.text);
	return record(driver, words, err);
}

/* ---- view before a run begins ---- */

json_t *cache_preload_view(const json_t *plan)
{
	const json_t *compile = json_object_get(plan, "compile"), *url;
	json_t *rows = json_array();
	size_t i;

	json_array_foreach (json_object_get(compile, "preload"), i, url) {
		AUTO(store_freep) struct store *from = NULL;
		AUTO(err_freep) struct err *why = NULL;
		json_t *row = json_object();
		bool empty;

		js_put(row, "url", json_incref((json_t *)(uintptr_t)url));
		if (store_open(json_string_value(url), &from, &why) < 0 ||
		    is_empty(from, &empty, &why) < 0)
			js_put_str(row, "why", patience_reason(why));
		else if (empty)
			js_put_str(row, "why", "nothing is there");
		json_array_append_new(rows, row);
	}
	return rows;
}
