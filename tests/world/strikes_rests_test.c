/* What a run rests on, with each call failing in turn: its plan, its compile cache and its
 * checkpoints, whole or damaged; and the rights in its buckets. See strikes.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/run/journal/forget.h"
#include "jobs/run/plan/conditions.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/plan/preflight.h"
#include "jobs/store/store.h"
#include "tests/world/bucket.h"
#include "tests/world/kernel.h"
#include "tests/world/operators.h"
#include "tests/world/programs.h"
#include "tests/world/story.h"
#include "tests/world/strikes.h"
#include "tests/world/tree.h"
#include "tests/world/workspace.h"

#define JOB      "/srv/user/job/"
#define WORK     "/srv/user/work" /* the workspace; where it is far: FAR */
#define FAR      "s3://bucket/work"
#define ABOVE_MS ((int64_t)2 * 3600 * WORLD_S / WORLD_MS)

static int refuse(struct err **err, const char *words)
{
	return err_set(err, EXIT_REFUSED, "%s", words);
}

/* ---- the plan, and what the cache is for it ---- */

static int make_plan(struct plan **ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0)
		return -1;
	return operator_plan(STRIKES_SPEC, journal, ret, err);
}

static json_t *planned; /* what is viewed; made before the strikes */

static int keep_plan(const char *run, struct err **err)
{
	AUTO(plan_freep) struct plan *plan = NULL;

	(void)run;
	if (make_plan(&plan, err) < 0)
		return -1;
	json_decref(planned);
	planned = json_incref(plan->json);
	return 0;
}

static void plan_first(struct schedule *places)
{
	(void)places;
	strikes_do(keep_plan);
}

static void run_and_plan(struct schedule *places)
{
	strikes_run_to_end(places);
	strikes_do(keep_plan);
}

/* A cache that could not be read is not called cold, nor a change that is not there. */
static int view(enum cache_state wanted, const char *words, struct err **err)
{
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };

	if (cache_view_try(planned, &view, err) < 0)
		return -1;
	if (view.verdict == CACHE_UNKNOWN && strncmp(view.reason, "not known: ", 11) == 0)
		return refuse(err, view.reason);
	if (view.verdict != wanted || !strstr(view.reason, words))
		return err_set(err, EXIT_DEFECT, "the verdict is %d: %s", (int)view.verdict,
			       view.reason);
	return 0;
}

static int see_warm(const char *run, struct err **err)
{
	(void)run;
	return view(CACHE_WARM, "all 3 graphs of the compile manifest are in the cache", err);
}

static int see_nothing(const char *run, struct err **err)
{
	(void)run;
	return view(CACHE_COLD, "no precompile has been verified in this cache yet", err);
}

static int see_changes(const char *run, struct err **err)
{
	(void)run;
	return view(CACHE_COLD, "(and 2 more)", err);
}

static int see_damage(const char *run, struct err **err)
{
	(void)run;
	return view(CACHE_COLD, "changed graphs of the compile manifest: 1 of 3", err);
}

static int see_bad_manifest(const char *run, struct err **err)
{
	(void)run;
	return view(CACHE_COLD, "the compile manifest cannot be trusted: ", err);
}

/* The source, a hyperparameter, and a file that has nothing to do with graphs. */
static void change_job(struct schedule *places)
{
	static const char script[] = "train(2)\n";

	strikes_run_to_end(places);
	tree_put(places->hosts[0], JOB "train.py", script, strlen(script), 0644);
	strikes_edit_spec("max_steps: 8", "max_steps: 8, width: 3");
	strikes_edit_spec("include: [train.py]", "include: [train.py, notes.txt]");
	tree_put(places->hosts[0], JOB "notes.txt", "-", 1, 0644);
	strikes_do(keep_plan);
}

static char *graph_file(const char *name)
{
	char module[64];

	programs_graph_name(module, 0, false);
	return mem_format("cache/%s/%s/%s", compilers[0].place, module, name);
}

static void truncate_graph(struct schedule *places)
{
	AUTO(auto_free) char *key = graph_file("model.neff");

	run_and_plan(places);
	workspace_put(key, "short");
}

static void spoil_manifest(struct schedule *places)
{
	AUTO(auto_free) char *key = NULL;
	const struct story_event *verified;

	run_and_plan(places);
	verified = story_last(story_of(places->run), EV_CACHE_VERIFIED, 0);
	key = mem_format("cache/" LOCK_PREFIX "%s.json", verified->event.graph_key);
	workspace_put(key, "{");
}

/* A spec with all that a plan can hold. */
static void add_all(struct schedule *places)
{
	static const char tokens[] = "tokens";

	tree_put(places->hosts[0], "/srv/user/tokens.json", tokens, strlen(tokens), 0644);
	tree_put(places->hosts[0], JOB "data/big", tokens, strlen(tokens), 0644);
	strikes_edit_spec("include: [train.py]", "include: [train.py], link: [data]");
	strikes_edit_spec("limits:\n", "limits:\n  cost: 100\n");
	strikes_edit_spec("resources: {nodes: 1}",
			  "resources: {nodes: 1, instance: trn1.32xlarge, price: 21.50}");
	strikes_edit_spec("compile:\n", "compile:\n  depends_on: [../tokens.json]\n");
	strikes_add_to_spec("notify:\n  - {when: [failed], command: [./page-me]}\n"
			    "failures:\n  - {regex: \"the frobnicator\", class: user-code}\n"
			    "secrets: {KEY: \"env:HOME\"}\n");
}

static int plan_all(const char *run, struct err **err)
{
	AUTO(plan_freep) struct plan *plan = NULL;
	const json_t *depends, *links;

	(void)run;
	if (make_plan(&plan, err) < 0)
		return -1;
	depends = js_path(plan->json, "compile.ingredients.depends_on");
	links = js_path(plan->json, "source.links");
	if (!js_str(depends, "../tokens.json") || json_array_size(links) != 1 ||
	    json_number_value(js_path(plan->json, "limits.cost")) < 100 ||
	    json_number_value(js_path(plan->json, "limits.price")) <= 0 ||
	    json_array_size(json_object_get(plan->json, "notify")) != 1 ||
	    !json_object_get(plan->json, "health"))
		return err_set(err, EXIT_DEFECT, "something of the spec is not in the plan");
	return 0;
}

/* ---- runs on a damaged cache ---- */

static int see_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	const struct event **wanted = arg;

	(void)row, (void)err;
	if (ev && ev->kind == wanted[0]->kind)
		wanted[1] = wanted[0];
	return 0;
}

/* 1 if the run has such an event. */
static int has_event(const char *run, enum event_kind kind, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct event wanted = { .kind = kind }, *seen[2] = { &wanted, NULL };

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_event, seen, err) < 0)
		return -1;
	return seen[1] != NULL;
}

static int expect_event(const char *run, enum event_kind kind, struct err **err)
{
	int has = has_event(run, kind, err);

	return has != 0 ? has : err_set(err, EXIT_REFUSED, "no %s", event_rows[kind].name);
}

/* The run after the one before the strikes. */
static char *second(const char *run)
{
	return mem_format("%s-2", run);
}

static int drive_second(const char *run, struct err **err)
{
	AUTO(auto_free) char *name = second(run);

	return operator_run(name, STRIKES_SPEC, err);
}

/* A compiler that could not be looked at for minutes is not in the plan: the id belongs to that
 * plan then. */
static int drive_again(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *other = NULL;
	AUTO(auto_free) char *name = second(run);
	int result = operator_run(name, STRIKES_SPEC, &other);

	if (result >= 0 || other->code != EXIT_SPEC) {
		*err = TAKE(other);
		return result;
	}
	return operator_resume(name, err);
}

static int see_success(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row, (void)err;
	*(bool *)arg |= ev && ev->kind == EV_RUN_ENDED && ev->state == OUTCOME_SUCCEEDED;
	return 0;
}

/* Unless the run may have ended early, it has trained on a whole cache. */
static int check_trained(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	bool succeeded = false;

	if (expect_event(run, EV_RUN_ENDED, err) < 0 ||
	    journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_success, &succeeded, err) < 0 ||
	    keep_plan(run, err) < 0)
		return -1;
	if (strikes_may_end_run())
		return 0;
	return succeeded ? see_warm(run, err) : refuse(err, "the run has not succeeded");
}

static int check_second(const char *run, struct err **err)
{
	AUTO(auto_free) char *name = second(run);

	return check_trained(name, err);
}

static int resume(const char *run, struct err **err)
{
	return operator_resume(run, err);
}

/* Each process of the training is dead, long before its last step. */
static void kill_training(void)
{
	strikes_edit_spec("max_steps: 8", "max_steps: 40");
	strikes_run_until_event(EV_CHECKPOINT_COMPLETE);
}

static void lose_graph(struct schedule *places)
{
	AUTO(auto_free) char *key = graph_file("model.neff");

	(void)places;
	kill_training();
	(void)workspace_remove(key);
}

static void lose_manifest(struct schedule *places)
{
	AUTO(auto_free) char *key = NULL;
	const struct story_event *verified;

	kill_training();
	verified = story_last(story_of(places->run), EV_CACHE_VERIFIED, 0);
	key = mem_format("cache/" LOCK_PREFIX "%s.json", verified->event.graph_key);
	(void)workspace_remove(key);
}

/* ---- checkpoints ---- */

static int64_t left; /* the step of the last checkpoint */

/* The agent was killed before it could mark all checkpoints. */
static void leave_checkpoints(struct schedule *places)
{
	strikes_edit_spec("  url: " WORK "/saved\n", "");
	kill_training();
	for (int64_t step = 0; step < 40; step++) {
		AUTO(auto_free)
		char *key = mem_format("runs/%s/train-1/checkpoints/checkpoint-%lld/meta.json",
				       places->run, (long long)step);

		if (workspace_has(key))
			left = step;
	}
}

static int see_step(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row, (void)err;
	if (ev && ev->kind == EV_CHECKPOINT_CHOSEN && EVENT_HAS(ev, step))
		*(int64_t *)arg = ev->step;
	return 0;
}

/* None of them is lost, and nothing is trained twice, unless none could be marked for minutes. */
static int check_left(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	int64_t step = -1;

	if (expect_event(run, EV_RUN_ENDED, err) < 0 ||
	    journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_step, &step, err) < 0)
		return -1;
	if (step != left && !strikes_may_end_run())
		return err_set(err, EXIT_REFUSED, "it was resumed from step %lld, not from %lld",
			       (long long)step, (long long)left);
	return 0;
}

/* Nothing is left where checkpoints were. */
static void lose_checkpoints(struct schedule *places)
{
	static const char *const names[][2] = { { "checkpoint-", "/state.bin" },
						{ "checkpoint-", "/meta.json" },
						{ "marks/checkpoint-", ".stoker.json" } };
	AUTO(auto_free) char *folder = NULL;

	kill_training();
	folder = mem_format("saved/%s/attempt-1", places->run);
	if (!places->setting.far_workspace)
		(void)workspace_remove(folder);
	for (int step = 0; step <= 40 && places->setting.far_workspace; step++)
		for (size_t i = 0; i < STK_LENGTH(names); i++) {
			AUTO(auto_free)
			char *key = mem_format("%s/%s%d%s", folder, names[i][0], step, names[i][1]);

			(void)workspace_remove(key);
		}
}

/* Training again from the start would throw away what is, perhaps, only not mounted. */
static int refuse_to_begin_anew(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int result = operator_resume(run, &why);

	if (result >= 0 && has_event(run, EV_RUN_ENDED, err) > 0)
		return err_set(err, EXIT_DEFECT, "it ended without its checkpoint");
	if (why && (strstr(why->message, "is gone") || strstr(why->message, "is missing")))
		return 0;
	if (why)
		*err = TAKE(why);
	return why || *err ? -1 : refuse(err, "it left without a word");
}

/* ---- what a removal leaves ---- */

static int remove_run(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct forget_options options = { .with_checkpoints = false };
	json_auto_t *removal = NULL;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	return run_forget(journal, run, &options, NULL, NULL, NULL, &removal, err);
}

/* Of each checkpoint one copy is left: that beneath checkpoint.url, where there is one. */
static int check_copies(const char *run, struct err **err)
{
	AUTO(auto_free) char *copy = mem_format("saved/%s/attempt-1/checkpoint-8/meta.json", run);
	AUTO(auto_free)
	char *only = mem_format("runs/%s/train-1/checkpoints/checkpoint-8/meta.json", run);
	AUTO(auto_free) char *list = mem_format("/srv/user/state/runs/%s/kept.json", run);

	if (!workspace_has(copy) && !workspace_has(only))
		return refuse(err, "the checkpoint is gone");
	if (workspace_has(copy) && workspace_has(only))
		return refuse(err, "a second copy is left");
	if (tree_exists(self->machine, list) != workspace_has(only))
		return refuse(err, "it is not told what is kept");
	return 0;
}

static void save_at_home(struct schedule *places)
{
	strikes_edit_spec(places->setting.far_workspace ? "  url: " FAR "/saved\n"
							: "  url: " WORK "/saved\n",
			  "");
	strikes_run_to_end(places);
}

/* ---- the rights in buckets ---- */

static void leave_probes(struct schedule *places)
{
	(void)places;
	bucket_put("bucket", "work/" PREFLIGHT_KEY "old", "", 0);
	bucket_put("bucket", "work/cache/" PREFLIGHT_KEY "old", "", 0);
	world_play_until(now_ns + ABOVE_MS * WORLD_MS);
}

static int probe_places(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(preflight_release) struct preflight probe = { 0 };

	(void)run;
	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    operator_plan(STRIKES_SPEC, journal, &plan, err) < 0 ||
	    preflight_state(&probe, journal, err) < 0)
		return -1;
	return preflight_places(&probe, plan->json, journal, err);
}

/* Leftovers of the probe that was struck are too young to be removed. */
static int check_probed(const char *run, struct err **err)
{
	(void)run, (void)err;
	if (bucket_get("bucket", "work/" PREFLIGHT_KEY "old", NULL) ||
	    bucket_get("bucket", "work/cache/" PREFLIGHT_KEY "old", NULL))
		return refuse(err, "the leftovers are still there");
	return 0;
}

static const struct strike_action actions[] = {
	STRIKE("plan all", "sqlite", add_all, plan_all),
	STRIKE("view warm", "sqlite", run_and_plan, see_warm),
	STRIKE("view warm bucket", "bucket", run_and_plan, see_warm),
	STRIKE("view nothing", "sqlite", plan_first, see_nothing),
	STRIKE("view nothing bucket", "bucket", plan_first, see_nothing),
	STRIKE("view changes", "sqlite", change_job, see_changes),
	STRIKE("view changes bucket", "bucket", change_job, see_changes),
	STRIKE("view damage", "sqlite", truncate_graph, see_damage),
	STRIKE("view damage bucket", "bucket", truncate_graph, see_damage),
	STRIKE("view manifest", "sqlite", spoil_manifest, see_bad_manifest),
	STRIKE("view manifest bucket", "bucket", spoil_manifest, see_bad_manifest),
	STRIKE("repair", "sqlite", truncate_graph, drive_second, .again = drive_again,
	       .check = check_second, .share = 10),
	STRIKE("lost graph", "sqlite", lose_graph, resume, .check = check_trained, .share = 5),
	STRIKE("lost manifest", "bucket", lose_manifest, resume, .check = check_trained,
	       .share = 5),
	STRIKE("left checkpoints", "sqlite", leave_checkpoints, resume, .check = check_left,
	       .share = 3),
	STRIKE("lost checkpoints", "sqlite", lose_checkpoints, refuse_to_begin_anew, .share = 3),
	STRIKE("lost checkpoints bucket", "bucket", lose_checkpoints, refuse_to_begin_anew,
	       .share = 3),
	STRIKE("rm copies", "sqlite", strikes_run_to_end, remove_run, .check = check_copies),
	STRIKE("rm copies bucket", "bucket", strikes_run_to_end, remove_run, .check = check_copies),
	STRIKE("rm only copies", "sqlite", save_at_home, remove_run, .check = check_copies),
	STRIKE("rm only copies bucket", "bucket", save_at_home, remove_run, .check = check_copies),
	STRIKE("probe", "far", leave_probes, probe_places, .check = check_probed),
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
