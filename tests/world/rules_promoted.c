/*
 * What rules 12 to 15 say of the models and results that really lie there: the entries of the
 * promoted versions, which are written once and follow one another, and the outputs of inference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/story.h"
#include "tests/world/truth.h"
#include "tests/world/workspace.h"

#define MODELS      "models/world/"
#define ENTRIES_MAX 64

/* Entry i is generation i + 1. */
static struct {
	char run[STORY_RUN_MAX], digest[SHA256_HEX];
} entries[ENTRIES_MAX];
static int entry_count;

void promoted_reset(void)
{
	entry_count = 0;
}

static char *entry_text(int generation)
{
	AUTO(auto_free) char *key = mem_format(MODELS "entries/%d.json", generation);

	return workspace_get(key);
}

/* What was not synced when a machine lost its power may be gone. */
static bool power_was_lost(void)
{
	for (int i = 0; i < fault_count; i++)
		if (faults[i].kind == FAULT_POWER && faults[i].struck > 0)
			return true;
	return playing->mishap == MISHAP_POWER;
}

/* An entry is written once; one that was acknowledged is there for good. */
static void check_known(void)
{
	for (int i = 0; i < entry_count; i++) {
		AUTO(auto_free) char *text = entry_text(i + 1);
		const struct story_event *done =
			story_last(story_of(entries[i].run), EV_PROMOTE_DONE, 0);
		char digest[SHA256_HEX] = "";

		if (text)
			hash_sha256_hex(text, strlen(text), digest);
		if (strcmp(digest, entries[i].digest) == 0)
			continue;
		if (done || !power_was_lost())
			rule_breaks("14", "the entry of generation %d is %s", i + 1,
				    text ? "another one now" : "gone");
		entry_count = i;
	}
}

static void check_entry(int generation, const char *run, const char *before)
{
	const char *last = generation > 1 ? entries[generation - 2].digest : "";
	const struct story *story = story_of(run);
	const struct story_event *verdict = story_last(story, EV_GATE_JUDGED, 0);

	if (strcmp(before, last) != 0)
		rule_breaks("14", "generation %d follows entry %s, and the one before it is %s",
			    generation, before, last);
	if (!verdict)
		rule_breaks("12", "generation %d is of run %s, which was not judged", generation,
			    run);
	else if (verdict->event.generation + 1 != generation ||
		 strcmp(EVENT_HAS(&verdict->event, digest) ? verdict->event.digest : "", before) !=
			 0)
		rule_breaks("14", "generation %d is of run %s, whose gate compared with %d",
			    generation, run, (int)verdict->event.generation);
	if (!story_last(story, EV_PROMOTE_INTENDED, 0))
		rule_breaks("13", "generation %d is of run %s, which intended none", generation,
			    run);
	for (int i = 0; i < generation - 1; i++)
		if (strcmp(entries[i].run, run) == 0)
			rule_breaks("13", "generations %d and %d are of run %s", i + 1, generation,
				    run);
}

/* Takes note of the next entry; false: there is none, or it is being written. */
static bool take_next(void)
{
	AUTO(auto_free) char *text = entry_text(entry_count + 1);
	json_auto_t *body = text ? json_loads(text, 0, NULL) : NULL;
	const char *run = js_str(body, "run"), *before = js_str(body, "before");

	if (!run || entry_count == ENTRIES_MAX)
		return false;
	check_entry(entry_count + 1, run, before ? before : "");
	snprintf(entries[entry_count].run, sizeof entries[0].run, "%s", run);
	hash_sha256_hex(text, strlen(text), entries[entry_count].digest);
	entry_count++;
	return true;
}

void promoted_check(void)
{
	if (!playing->setting.retrains)
		return;
	check_known();
	while (take_next())
		;
}

/* ---- which model it was ---- */

static int64_t step_at(const char *url)
{
	AUTO(auto_free) char *place = mem_format("%s/meta.json", url);
	AUTO(auto_free) char *text = place_get(place);
	json_auto_t *meta = text ? json_loads(text, 0, NULL) : NULL;

	return js_int(meta, "step", -1);
}

void promoted_check_model(const struct story *story, const struct event *done)
{
	int64_t step = step_at(done->url), wanted = story->shadow.candidate_step;

	if (step != wanted)
		rule_breaks("12", "generation %d is of step %d, and the candidate of %d",
			    (int)done->generation, (int)step, (int)wanted);
	for (const struct truth_command *c = truth_commands; c; c = c->next)
		if (strcmp(c->run, story->run) == 0 && c->phase >= TRUTH_EVALUATE &&
		    strncmp(c->task, "baseline", strlen("baseline")) != 0 && c->model_step >= 0 &&
		    c->model_step != wanted)
			rule_breaks("12", "%s was given the model of step %d, not of %d", c->task,
				    (int)c->model_step, (int)wanted);
}

/* ---- the outputs of inference ---- */

static int64_t rows_of(const json_t *manifest, int64_t shard)
{
	const json_t *row;
	int64_t count = 0;
	size_t i;

	json_array_foreach (json_object_get(manifest, "files"), i, row)
		count += js_int(row, "shard", -1) == shard;
	return count;
}

static void check_row(const struct story *story, const json_t *row)
{
	AUTO(auto_free)
	char *name = mem_format("results/%s/%s", story->run, js_str(row, "file"));
	AUTO(auto_free) char *place = setting_place(&playing->setting, name);
	AUTO(auto_free) char *text = place_get(place);
	AUTO(auto_free)
	char *wanted = mem_format("shard-%d of step %d\n", (int)js_int(row, "shard", -1),
				  (int)story->shadow.candidate_step);

	if (!text || strcmp(text, wanted) != 0)
		rule_breaks("15", "%s holds '%s', and not '%s'", name, text ? text : "nothing",
			    wanted);
}

static bool is_listed(const json_t *manifest, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(manifest, "files"), i, row)
		if (js_is(row, "file", name))
			return true;
	return false;
}

/* What superseded attempts, restarts and nodes may have left. */
static void check_surplus(const struct story *story, const json_t *manifest, int64_t shard)
{
	enum { RESTARTS = 3, NODES = 4 };
	int64_t attempts = story->shadow.attempts[PHASE_INFER];

	for (int64_t at = 0; at < attempts * RESTARTS * (NODES + 1); at++) {
		int node = (int)(at % (NODES + 1)) - 1;
		int restart = (int)(at / (NODES + 1) % RESTARTS);
		AUTO(auto_free)
		char *sub = node < 0 ? mem_copy("") : mem_format("node-%d/", node);
		AUTO(auto_free)
		char *name = mem_format("shard-%lld/%lld.%d/%srows.csv", (long long)shard,
					(long long)(at / (NODES + 1) / RESTARTS + 1), restart, sub);
		AUTO(auto_free) char *key = mem_format("results/%s/%s", story->run, name);
		AUTO(auto_free) char *place = setting_place(&playing->setting, key);
		AUTO(auto_free) char *text = place_get(place);

		if (text && !is_listed(manifest, name))
			rule_breaks("15", "%s lies there, and the manifest does not name it", name);
	}
}

void promoted_check_outputs(const struct story *story)
{
	AUTO(auto_free) char *key = mem_format("results/%s/manifest.json", story->run);
	AUTO(auto_free) char *place = setting_place(&playing->setting, key);
	AUTO(auto_free) char *text = NULL;
	json_auto_t *manifest = NULL;
	bool inferred = false;
	const json_t *row;
	size_t i;

	for (int64_t s = 0; s < story->count; s++)
		inferred |= story->events[s].event.kind == EV_ATTEMPT_ENDED &&
			    story->events[s].event.phase == PHASE_INFER &&
			    story->events[s].event.class == CLASS_NONE;
	if (!playing->setting.retrains || !inferred)
		return;
	text = place_get(place);
	manifest = text ? json_loads(text, 0, NULL) : NULL;
	if (!manifest) {
		rule_breaks("15", "the inference ended well, and there is no %s", place);
		return;
	}
	json_array_foreach (json_object_get(manifest, "files"), i, row)
		check_row(story, row);
	for (int64_t shard = 0; shard < story->policy.stages[PHASE_INFER].tasks; shard++) {
		int64_t rows = rows_of(manifest, shard);
		int64_t wanted = playing->setting.together ? playing->setting.nodes : 1;

		if (rows != wanted)
			rule_breaks("15", "shard %d has %d outputs, not %d", (int)shard, (int)rows,
				    (int)wanted);
		check_surplus(story, manifest, shard);
	}
}
