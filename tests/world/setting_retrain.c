/*
 * What a setting has of retraining: see play.h. A share of the schedules plays turns of it: each
 * run is given data that has arrived since, goes on from the promoted model, is evaluated against
 * it, judged, infers and is promoted. All of it is drawn beside the rest, which is as it was
 * without.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/sb.h"
#include "tests/world/bucket.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/tree.h"

#define SHARE  4                          /* one in so many settings retrains */
#define BESIDE UINT64_C(0x7265747261696e) /* another chance than that of the rest */

static const char *const pauses[] = { NULL, "train", "evaluate", "gate", "infer" };

void setting_draw_retraining(struct schedule *schedule)
{
	struct setting *s = &schedule->setting;
	uint64_t kept[CHANCE_STATE];

	chance_keep(kept);
	chance_seed(schedule->seed ^ BESIDE, schedule->number);
	s->retrains = chance_one_in(SHARE);
	if (s->retrains) {
		s->repeat = 1 + (int)chance_below(3);
		s->infers = !chance_one_in(3);
		s->shards = (int)chance_below(5);
		s->together = chance_one_in(3);
		s->fetches = chance_one_in(3);
		s->advises = chance_one_in(8);
		s->refused = chance_one_in(2) ? 0 : 1 + (int)chance_below(3);
		s->pauses = chance_one_in(3) ? 1 + (int)chance_below(STK_LENGTH(pauses) - 1) : 0;
		s->keeps = chance_one_in(3) ? 2 : 0;
		s->task_ns = (50 + chance_below(chance_one_in(4) ? 4000 : 400)) * WORLD_MS;
		s->task_timeout_s = 60 + chance_below(240);
		/* Turns follow one another: hours of training are for the others. */
		if (s->step_ns > WORLD_S)
			s->steps = 4 + s->steps % 8;
		s->evaluates_ahead = chance_one_in(3);
		s->infers_ahead = s->infers && chance_one_in(3);
	}
	chance_go_on(kept);
}

const char *setting_pause(const struct setting *setting)
{
	return pauses[setting->pauses];
}

bool setting_is_refused(const struct schedule *schedule)
{
	int every = schedule->setting.refused;

	return every > 0 && schedule->runs % every == 0;
}

char *setting_place(const struct setting *s, const char *name)
{
	if (s->far_workspace)
		return mem_format("s3://bucket/%s", name);
	return mem_format("%s/%s", s->state == STATE_SHARE ? "/shared" : "/srv/user", name);
}

static void put(struct schedule *schedule, const char *name, const char *text)
{
	AUTO(auto_free) char *path = setting_place(&schedule->setting, name);

	if (schedule->setting.far_workspace)
		bucket_put("bucket", name, text, strlen(text));
	else
		tree_put(schedule->hosts[0], path, text, strlen(text), 0644);
}

void setting_add_metrics(const struct schedule *schedule, struct sb *spec)
{
	if (schedule->setting.retrains)
		sb_adds(spec, "  - {name: accuracy, regex: \"^accuracy: ([0-9.]+)\"}\n");
}

void setting_add_retraining(const struct schedule *schedule, struct sb *spec)
{
	const struct setting *s = &schedule->setting;
	AUTO(auto_free) char *data = setting_place(s, "data");
	AUTO(auto_free) char *holdout = setting_place(s, "holdout");
	AUTO(auto_free) char *results = setting_place(s, "results");

	if (!s->retrains)
		return;
	sb_addf(spec, "data: {url: %s, settle: 0s, fetch: %s}\n", data,
		s->fetches ? "true" : "false");
	sb_addf(spec,
		"evaluate:\n  command: [/opt/venv/bin/python, evaluate.py]\n  data: %s\n"
		"  repeat: %d\n  timeout: %llds\n",
		holdout, s->repeat, (long long)s->task_timeout_s);
	sb_adds(spec, s->evaluates_ahead ? "  compile: aot\n" : "");
	sb_adds(spec, "gate:\n  - {metric: accuracy, at_least: 0.5}\n"
		      "  - {metric: accuracy, max_drop: 10%}\n");
	sb_addf(spec, "promote: {when: %s, keep: %s}\n", s->advises ? "always" : "gate",
		s->keeps ? "2" : "all");
	if (!s->infers)
		return;
	sb_addf(spec,
		"infer:\n  command: [/opt/venv/bin/python, infer.py]\n  output: %s\n"
		"  together: %s\n  timeout: %llds\n",
		results, s->together ? "true" : "false", (long long)s->task_timeout_s);
	sb_adds(spec, s->infers_ahead ? "  compile: aot\n" : "");
	if (s->shards > 0)
		sb_addf(spec, "  shards: %d\n", s->shards);
}

void setting_put_holdout(struct schedule *schedule)
{
	if (!schedule->setting.retrains)
		return;
	put(schedule, "holdout/rows.csv", "1,2,3\n");
	for (int i = 0; i < 3; i++)
		setting_put_data(schedule);
}

void setting_put_data(struct schedule *schedule)
{
	char name[64], text[64];

	/* Nobody can save anything there just now. */
	if (!schedule->setting.far_workspace && faults_fill_disk())
		return;
	snprintf(name, sizeof name, "data/drop-%03d.csv", schedule->data);
	snprintf(text, sizeof text, "%d,%d\n", schedule->data, schedule->data % 7);
	schedule->data++;
	put(schedule, name, text);
}
