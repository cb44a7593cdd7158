/* What users lose: see losses.h. */
#include "tests/world/losses.h"

#include <stdio.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "tests/world/bucket.h"
#include "tests/world/kernel.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"
#include "tests/world/rules.h"
#include "tests/world/story.h"
#include "tests/world/tree.h"
#include "tests/world/truth.h"
#include "tests/world/workspace.h"

#define DAMAGED_MAX 64
#define BUCKET_URL  "s3://bucket/"

static int64_t cache_lost_ns;
static struct {
	const char *url; /* of the story */
	int64_t at_ns;
} damaged[DAMAGED_MAX];
static size_t damaged_count;
static const char *by_power;

void losses_reset(void)
{
	cache_lost_ns = -1;
	damaged_count = 0;
	by_power = NULL;
}

int64_t losses_of_cache_ns(void)
{
	return cache_lost_ns;
}

int64_t losses_of_checkpoint_ns(const char *url)
{
	for (size_t i = 0; i < damaged_count; i++)
		if (strcmp(damaged[i].url, url) == 0)
			return damaged[i].at_ns;
	return -1;
}

const char *losses_by_power(void)
{
	return by_power;
}

static void note_damage(const char *url)
{
	if (damaged_count == DAMAGED_MAX)
		return;
	damaged[damaged_count].url = url;
	damaged[damaged_count++].at_ns = now_ns;
}

static void remove_graph(uint64_t chance)
{
	const struct setting *s = &playing->setting;
	const char *const phases[] = { "train", s->evaluates_ahead ? "evaluate" : "train",
				       s->infers_ahead ? "infer" : "train" };
	const struct compiler *compiler = &compilers[chance % COMPILERS];
	int graph = (int)(chance / COMPILERS % GRAPHS_OF_JOB);
	AUTO(auto_free) char *path = NULL;
	char module[64];

	graph += setting_first_graph(phases[chance / COMPILERS / GRAPHS_OF_JOB % 3]);
	programs_graph_name(module, graph, false);
	path = mem_format("cache/%s/%s/model.done", compiler->place, module);
	if (!workspace_remove(path))
		return;
	trace_line("somebody removes %s", path);
	cache_lost_ns = now_ns;
}

static void remove_from_checkpoint(void)
{
	const struct story_event *marked =
		story_last(story_of(playing->run), EV_CHECKPOINT_COMPLETE, 0);
	const char *url = marked ? marked->event.url : NULL;
	AUTO(auto_free) char *path = url ? mem_format("%s/state.bin", url) : NULL;

	if (!url || losses_of_checkpoint_ns(url) >= 0)
		return;
	if (strncmp(url, BUCKET_URL, strlen(BUCKET_URL)) == 0)
		bucket_remove("bucket", path + strlen(BUCKET_URL));
	else if (!tree_remove(playing->hosts[0], path))
		return;
	trace_line("somebody removes %s", path);
	note_damage(url);
}

void losses_remove(uint64_t chance)
{
	if (chance % 2)
		remove_graph(chance / 2);
	else
		remove_from_checkpoint();
}

void losses_after_power(struct machine *machine)
{
	const struct story *story = story_of(playing->run);

	for (int64_t s = 0; story && s < story->count; s++) {
		const struct event *ev = &story->events[s].event;
		const struct truth_save *save =
			ev->kind == EV_CHECKPOINT_COMPLETE
				? rules_save_of(rules_attempt_of_url(ev->url), ev->step)
				: NULL;

		if (!save || ev->url[0] != '/' || losses_of_checkpoint_ns(ev->url) >= 0 ||
		    program_save_is_whole(save, machine, ev->url))
			continue;
		note_damage(ev->url);
		by_power = ev->url;
	}
}
