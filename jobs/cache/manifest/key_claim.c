/* Claims on graph keys, so that one run at a time precompiles: see key_claim.h. */
#include "jobs/cache/manifest/key_claim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/text/text.h"
#include "jobs/store/store_json.h"

#define CLAIM_BYTES_MAX    ((size_t)64 << 10)
#define NAME_BYTES_MAX     255    /* longest name of a run or host; a longer one is ignored */
#define CLAIM_ROUNDS       8      /* rounds; a contender can win each only once */
#define STALE_AFTER_MIN_MS 1000   /* lower bound of a claim's valid_ms */
#define STALE_AFTER_MAX_MS 600000 /* upper bound of it */
/* Time beyond this between two looks does not count as watched: machines that are put to sleep
 * together must not take each other for dead. */
#define WATCH_GAP_MAX_MS KEY_CLAIM_RENEW_MS

void key_claim_init(struct key_claim *claim, struct store *store, const char *graph_key,
		    const char *run, const char *nonce)
{
	*claim = (struct key_claim){
		.store = store,
		.key = mem_copy(graph_key),
		.run = mem_copy(run),
		.nonce = mem_copy(nonce),
	};
}

void key_claim_clear(struct key_claim *claim)
{
	free(claim->key);
	free(claim->run);
	free(claim->nonce);
	free(claim->holder);
	free(claim->host);
	free(claim->taken);
	free(claim->seen);
	*claim = (struct key_claim){ 0 };
}

bool key_claim_is(const char *object)
{
	return text_starts(object, KEY_CLAIM_PREFIX);
}

/* The claim as found in the store. */
struct there {
	json_t *object; /* NULL: absent; {}: does not parse */
	struct sb text;
	char tag[STORE_TAG];
};

static void there_clear(struct there *there)
{
	json_decref(there->object);
	sb_release(&there->text);
}

static char *object_of(const struct key_claim *claim)
{
	return mem_format(KEY_CLAIM_PREFIX "%s.json", claim->key);
}

static int read_claim(const struct key_claim *claim, struct there *ret, struct err **err)
{
	AUTO(auto_free) char *key = object_of(claim);
	AUTO(err_freep) struct err *garbage = NULL;
	int found;

	ret->text = SB_INIT_MAX(CLAIM_BYTES_MAX);
	found = store_get(claim->store, key, CLAIM_BYTES_MAX, &ret->text, ret->tag, err);
	if (found < 0)
		return err_wrap(err, "cannot read the claim on the graph key");
	if (found == 0)
		return 0;
	if (js_parse(ret->text.text, ret->text.len, "a claim", &ret->object, &garbage) < 0 ||
	    !json_is_object(ret->object)) {
		json_decref(ret->object);
		ret->object = json_object();
	}
	return 0;
}

static bool is_ours(const struct key_claim *claim, const struct there *there)
{
	const char *nonce = there->object ? js_str(there->object, "nonce") : NULL;

	return nonce && strcmp(nonce, claim->nonce) == 0;
}

static bool is_held(const struct there *there)
{
	return there->object && js_bool(there->object, "held", true);
}

/* Our claim now, a new reference; `old` is our own earlier claim, or NULL. */
static json_t *our_object(const struct key_claim *claim, const json_t *old, bool held)
{
	json_t *object = json_object();
	const char *old_host = old ? js_str(old, "host") : NULL;
	char host[256] = "?";
	uint32_t beat;

	gethostname(host, sizeof host - 1);
	hash_random_bytes(&beat, sizeof beat);
	js_put(object, "v", json_integer(1));
	js_put_str(object, "graph_key", claim->key);
	js_put_str(object, "run", claim->run);
	js_put_str(object, "host", old_host ? old_host : host);
	js_put_str(object, "nonce", claim->nonce);
	js_put(object, "since", json_integer(old ? js_int(old, "since", 0) : clock_utc_now().ms));
	js_put(object, "held", json_boolean(held));
	js_put(object, "valid_ms", json_integer(KEY_CLAIM_VALID_MS));
	js_put(object, "beat", json_integer(beat));
	return object;
}

/* Replaces the claim `there` by ours. Returns 1 if written, 0 if another process was faster, -1
 * with an error. */
static int write_over(const struct key_claim *claim, const struct there *there, bool held,
		      struct err **err)
{
	AUTO(auto_free) char *key = object_of(claim);
	json_auto_t *ours = our_object(claim, is_ours(claim, there) ? there->object : NULL, held);
	int written =
		store_json_replace(claim->store, key, there->object ? there->tag : NULL, ours, err);

	return written < 0 ? err_wrap(err, "cannot write the claim on the graph key") : written;
}

/* The time that a claim must stay unchanged before it is stale: its holder's valid_ms, within
 * bounds. */
static int64_t stale_after_ms(const struct there *there)
{
	int64_t valid_ms = js_int(there->object, "valid_ms", KEY_CLAIM_VALID_MS);

	if (valid_ms > STALE_AFTER_MAX_MS)
		return STALE_AFTER_MAX_MS;
	return valid_ms < STALE_AFTER_MIN_MS ? STALE_AFTER_MIN_MS : valid_ms;
}

/* True if another run's claim has been watched for long enough without a change. `read_at` is the
 * time before it was read. */
static bool is_stale(struct key_claim *claim, const struct there *there, struct mono read_at)
{
	int64_t ms = read_at.ms - claim->seen_at.ms;

	if (!claim->seen || strcmp(claim->seen, there->text.text) != 0) {
		free(claim->seen);
		claim->seen = mem_copy(there->text.text);
		claim->seen_at = clock_mono_now();
		claim->watched_ms = 0;
		return false;
	}
	claim->watched_ms += ms < WATCH_GAP_MAX_MS ? ms : WATCH_GAP_MAX_MS;
	claim->seen_at = read_at;
	return claim->watched_ms >= stale_after_ms(there);
}

static void note_holder(struct key_claim *claim, const struct there *there)
{
	const char *run = js_str(there->object, "run"), *host = js_str(there->object, "host");

	free(claim->holder);
	free(claim->host);
	claim->holder = run && strlen(run) <= NAME_BYTES_MAX ? mem_copy(run) : NULL;
	claim->host = host && strlen(host) <= NAME_BYTES_MAX ? mem_copy(host) : NULL;
	claim->since_ms = js_int(there->object, "since", 0);
}

static void note_taken(struct key_claim *claim, const struct there *there)
{
	const char *run = there->object ? js_str(there->object, "run") : NULL;

	free(TAKE(claim->taken));
	if (!there->object || is_ours(claim, there))
		return;
	if (!is_held(there))
		claim->taken =
			mem_format("run %.255s, the last holder, has ended", run ? run : "?");
	else
		claim->taken = mem_format("run %.255s has not renewed its claim for %lld s",
					  run ? run : "?", (long long)(claim->watched_ms / 1000));
}

/* Goes on without a claim: a full disk or a missing right, if it matters, shows in the compilation
 * too. */
static int do_without(struct key_claim *claim, struct err **err)
{
	if ((*err)->code == EXIT_UNREACHABLE)
		return -1;
	free(TAKE(claim->taken));
	claim->taken = mem_copy((*err)->message);
	err_freep(err);
	return 1;
}

/* The claim could not be written in any round. */
static int not_written(struct key_claim *claim, bool seen, bool changed, struct err **err)
{
	if (seen && changed)
		return 0; /* many contenders: the caller tries again soon */
	if (seen)
		err_set(err, EXIT_REFUSED,
			"cannot write the claim on the graph key: the claim is unchanged, but a "
			"conditional write to it is refused (412)");
	else
		err_set(err, EXIT_REFUSED,
			"cannot write the claim on the graph key: its place holds something that "
			"is not an object");
	return do_without(claim, err);
}

int key_claim_try(struct key_claim *claim, struct err **err)
{
	char tag[STORE_TAG] = "";
	bool seen = false, changed = false;

	for (int i = 0; i < CLAIM_ROUNDS; i++) {
		AUTO(there_clear) struct there there = { 0 };
		struct mono read_at = clock_mono_now();
		int written;

		if (read_claim(claim, &there, err) < 0)
			return -1;
		seen |= there.object != NULL;
		changed |= seen && tag[0] && strcmp(tag, there.tag) != 0;
		memcpy(tag, there.tag, sizeof tag);
		if (there.object && !is_ours(claim, &there) && is_held(&there)) {
			note_holder(claim, &there);
			if (!is_stale(claim, &there, read_at))
				return 0;
		}
		written = write_over(claim, &there, true, err);
		if (written < 0)
			return do_without(claim, err);
		if (written > 0) {
			note_taken(claim, &there);
			free(TAKE(claim->seen));
			return 1;
		}
	}
	return not_written(claim, seen, changed, err);
}

/* Rewrites the claim while it is ours; the run's drivers and agents all renew it, so a write may
 * lose. */
static int rewrite(const struct key_claim *claim, bool held, struct err **err)
{
	for (int i = 0; i < CLAIM_ROUNDS; i++) {
		AUTO(there_clear) struct there there = { 0 };
		int written;

		if (read_claim(claim, &there, err) < 0)
			return -1;
		if (!is_ours(claim, &there) || !is_held(&there))
			return 0;
		written = write_over(claim, &there, held, err);
		if (written != 0)
			return written;
	}
	return 1; /* other processes of this run keep renewing it */
}

int key_claim_renew(const struct key_claim *claim, struct err **err)
{
	return rewrite(claim, true, err);
}

int key_claim_release(const struct key_claim *claim, struct err **err)
{
	return rewrite(claim, false, err) < 0 ? -1 : 0;
}
