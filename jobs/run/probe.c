/* Tries out what a run needs to be allowed: see probe.h. */
#include "jobs/run/probe.h"

#include <inttypes.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/store/store.h"

/* In the root of the prefix, so that a policy for it as a whole is enough. */
#define PROBE_KEY "stoker-probe-"

struct probe {
	struct store *store; /* borrowed */
	char *key;
};

static int pass_over(void *arg, const struct store_object *object, struct err **err)
{
	(void)arg;
	(void)object;
	(void)err;
	return 1;
}

static int try_list(const struct probe *probe, struct err **err)
{
	return store_list(probe->store, probe->key, pass_over, NULL, err);
}

static int try_put(const struct probe *probe, struct err **err)
{
	return store_put(probe->store, probe->key, "", 0, err);
}

static int try_get(const struct probe *probe, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	int there = store_get(probe->store, probe->key, 64, &text, NULL, err);

	if (there == 0)
		return err_set(err, EXIT_REFUSED, "what was written there is not there");
	return there;
}

static int try_delete(const struct probe *probe, struct err **err)
{
	return store_delete(probe->store, probe->key, err);
}

static const struct {
	const char *doing, *right;
	int (*attempt)(const struct probe *probe, struct err **err);
} tries[] = {
	{ "list", "s3:ListBucket", try_list },
	{ "write to", "s3:PutObject", try_put },
	{ "read from", "s3:GetObject", try_get },
	{ "delete from", "s3:DeleteObject", try_delete },
};

static int probe_one(struct store *store, const char *what, struct err **err)
{
	AUTO(auto_free) char *key = NULL;
	struct probe probe = { .store = store };
	uint64_t chance;

	random_bytes(&chance, sizeof chance);
	key = mem_format(PROBE_KEY "%016" PRIx64, chance);
	probe.key = key;
	for (size_t i = 0; i < STK_LENGTH(tries); i++) {
		if (tries[i].attempt(&probe, err) >= 0)
			continue;
		err_wrap(err, "cannot %s the %s '%s', which takes %s", tries[i].doing, what,
			 store_url(store), tries[i].right);
		if (!(*err)->hint)
			err_hint(err, "allow %s on it, or name another %s", tries[i].right, what);
		return -1;
	}
	return 0;
}

struct places {
	const char *seen[4];
	size_t count;
};

/* Once each, whoever names it first. */
static bool is_new(struct places *places, const char *url)
{
	for (size_t i = 0; i < places->count; i++)
		if (strcmp(places->seen[i], url) == 0)
			return false;
	places->seen[places->count++] = url;
	return true;
}

int probe_places(const json_t *plan, const struct journal *journal, struct err **err)
{
	const char *state = journal_is_far(journal) ? journal_url(journal) : NULL;
	const char *workspace = js_str(plan, "workspace");
	const struct {
		const char *what, *url;
	} named[] = {
		{ "state", state },
		{ "workspace", workspace },
		{ "compile cache", js_str(json_object_get(plan, "compile"), "cache") },
		{ "place for checkpoints", js_str(json_object_get(plan, "checkpoint"), "url") },
	};
	struct places places = { 0 };

	for (size_t i = 0; i < STK_LENGTH(named); i++) {
		AUTO(store_freep) struct store *store = NULL;

		if (!named[i].url || named[i].url[0] == '/' || !is_new(&places, named[i].url))
			continue;
		if (store_open(named[i].url, &store, err) < 0 ||
		    (!store_directory(store) && probe_one(store, named[i].what, err) < 0))
			return -1;
	}
	return 0;
}
