/*
 * many_jobs: watches or submits many jobs through one handle of an engine, and says what that
 * cost the processor. For tests/aws/test_many.py and for tests/bench.
 *
 * usage: many_jobs watch|submit ENGINE WORKSPACE PLAN NAMES ROUNDS PAUSE_MS
 *
 * PLAN is the engine's plan, as JSON. NAMES holds a job a line: its name, a space, its prefix.
 * A line comes out for each round: {"cpu","wall","states":{name: count},"error"}; CPU and wall in
 * seconds. Between two rounds nothing is done for so long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/base/text.h"
#include "jobs/engine/engine.h"

static const char *const state_names[] = {
	[ENGINE_QUEUED] = "queued",   [ENGINE_STARTING] = "starting",
	[ENGINE_RUNNING] = "running", [ENGINE_STOPPING] = "stopping",
	[ENGINE_ENDED] = "ended",     [ENGINE_UNSEEN] = "unseen",
};

#define TEXT_MAX ((size_t)16 << 20)

struct list {
	struct engine_name *jobs;
	size_t count;
};

static void give_up(const char *what, const struct err *err)
{
	AUTO(auto_free) char *words = err ? err_format(err) : NULL;

	fprintf(stderr, "many_jobs: %s%s%s\n", what, words ? ": " : "", words ? words : "");
	exit(1);
}

static char *load(const char *path)
{
	struct sb text = SB_INIT;
	struct err *err = NULL;

	if (fs_read(path, TEXT_MAX, &text, &err) < 0)
		give_up(path, err);
	return text.text;
}

static struct list load_names(const char *path)
{
	struct list list = { 0 };
	char *text = load(path), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *space = strchr(line, ' ');

		if (!space)
			continue;
		*space = '\0';
		list.jobs = mem_grow(list.jobs, list.count + 1, sizeof *list.jobs);
		list.jobs[list.count++] =
			(struct engine_name){ mem_copy(line), mem_copy(space + 1) };
	}
	free(text);
	return list;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static json_t *watch(struct engine *engine, const struct list *list, struct err **err)
{
	AUTO(auto_free) struct engine_status *seen = mem_zero(list->count + 1, sizeof *seen);
	json_int_t counts[STK_LENGTH(state_names)] = { 0 };
	json_t *states = json_object();

	(void)!engine->ops->survey(engine, list->jobs, list->count, seen, err);
	for (size_t i = 0; i < list->count; i++)
		counts[seen[i].state]++;
	for (size_t i = 0; i < STK_LENGTH(counts); i++)
		if (counts[i] > 0)
			js_put(states, state_names[i], json_integer(counts[i]));
	return states;
}

static json_t *submit(struct engine *engine, const struct list *list, struct err **err)
{
	char *env[] = { NULL };
	json_t *states = json_object();

	for (size_t i = 0; i < list->count && !*err; i++) {
		struct engine_job job = { .name = list->jobs[i].name,
					  .run = "many",
					  .phase = "train",
					  .attempt = 1,
					  .nodes = 1,
					  .prefix = list->jobs[i].prefix,
					  .agent_key = "agents/x/",
					  .env = env };

		if (engine->ops->submit(engine, &job, err) == 0)
			js_put(states, "submitted",
			       json_integer(js_int(states, "submitted", 0) + 1));
	}
	return states;
}

static void round_of(struct engine *engine, const struct list *list, bool submits)
{
	double cpu = cpu_seconds();
	int64_t begun = mono_now().ms;
	AUTO(err_freep) struct err *err = NULL;
	json_t *states = (submits ? submit : watch)(engine, list, &err);
	json_auto_t *line = json_pack("{s:f, s:f, s:o}", "cpu", cpu_seconds() - cpu, "wall",
				      (double)(mono_now().ms - begun) / 1000, "states", states);
	AUTO(auto_free) char *text = NULL;

	if (err) {
		AUTO(auto_free) char *words = err_format(err);

		js_put_str(line, "error", words);
	}
	text = js_line(line);
	puts(text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct engine_where where = { 0 };
	const struct engine_ops *ops;
	struct engine *engine = NULL;
	struct err *err = NULL;
	json_auto_t *plan = NULL;
	AUTO(auto_free) char *text = NULL;
	struct list list;

	if (argc != 8)
		give_up("watch|submit ENGINE WORKSPACE PLAN NAMES ROUNDS PAUSE_MS", NULL);
	ops = engine_find(argv[2]);
	text = load(argv[4]);
	if (!ops || js_parse(text, strlen(text), argv[4], &plan, &err) < 0)
		give_up(argv[2], err);
	where = (struct engine_where){ .workspace = argv[3], .plan = plan };
	if (ops->open(&where, &engine, &err) < 0)
		give_up("cannot open", err);
	list = load_names(argv[5]);
	for (long left = strtol(argv[6], NULL, 10), pause = strtol(argv[7], NULL, 10); left > 0;
	     left--) {
		struct timespec rest = { pause / 1000, pause % 1000 * 1000000 };

		round_of(engine, &list, strcmp(argv[1], "submit") == 0);
		if (left > 1)
			nanosleep(&rest, NULL);
	}
	ops->close(engine);
	for (size_t i = 0; i < list.count; i++) {
		free((char *)(uintptr_t)list.jobs[i].name);
		free((char *)(uintptr_t)list.jobs[i].prefix);
	}
	free(list.jobs);
	return 0;
}
