/* Figures of earlier check-ups of such machines, in the workspace: see health.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/store/store_json.h"

#define OBJECT_MAX ((size_t)1 << 20)
#define KEPT       0.8 /* weight of the old figure, with each new one */

/* Machines of one instance type are alike. A machine without a type is known by its host name,
 * unless that is a container's. */
static char *key_for(const struct checkup *c)
{
	const char *instance = c->config->order->instance;
	char host[256] = "", *key;

	gethostname(host, sizeof host - 1);
	if (instance && *instance)
		key = mem_format("health/%s.json", instance);
	else if (!c->config->platform.apart && host[0])
		key = mem_format("health/host-%s.json", host);
	else
		key = mem_copy("health/other.json");

	for (char *at = key + strlen("health/"); *at; at++)
		if (*at == '/')
			*at = '_';
	return key;
}

void health_baseline_load(struct checkup *c, struct baseline *ret)
{
	AUTO(err_freep) struct err *ignored = NULL;

	*ret = (struct baseline){ .key = key_for(c) };
	ret->there = store_json_get(c->store, ret->key, OBJECT_MAX, &ret->object, ret->tag,
				    &ignored) > 0;
	ret->url = mem_format("%s/%s", c->config->workspace, ret->key);
	if (!json_is_object(json_object_get(ret->object, "figures"))) {
		json_decref(ret->object);
		ret->object = json_pack("{s:i, s:{}}", "v", 1, "figures");
	}
}

void health_baseline_release(struct baseline *baseline)
{
	free(baseline->key);
	free(baseline->url);
	json_decref(baseline->object);
	*baseline = (struct baseline){ 0 };
}

static const json_t *figure_of(const struct baseline *baseline, const char *name)
{
	return json_object_get(json_object_get(baseline->object, "figures"), name);
}

static double kept_busbw(const struct baseline *baseline, const char *name)
{
	return js_real(figure_of(baseline, name), "busbw", -1);
}

bool health_baseline_is_slow(const struct baseline *baseline, const char *name, double busbw)
{
	return busbw >= 0 && busbw < HEALTH_SLOW * kept_busbw(baseline, name);
}

int64_t health_baseline_slower(const struct baseline *baseline, const char *name)
{
	return js_int(json_object_get(figure_of(baseline, name), "slower"), "runs", 0) + 1;
}

char *health_baseline_words(const struct baseline *baseline, const char *name, bool counted)
{
	AUTO(sb_release) struct sb words = SB_INIT;

	sb_addf(&words, "the baseline of healthy runs is %.2f GB/s (%s", kept_busbw(baseline, name),
		baseline->url);
	if (counted)
		sb_addf(&words,
			"; %d slower runs in a row replace the baseline, and this is number %lld",
			HEALTH_SLOW_RUNS, (long long)health_baseline_slower(baseline, name));
	sb_addc(&words, ')');
	return sb_take(&words);
}

/* Records a slower figure beside the kept one; of several slower ones the fastest. */
static json_t *slower_figure(const json_t *old, double busbw)
{
	const json_t *before = json_object_get(old, "slower");
	int64_t runs = js_int(before, "runs", 0) + 1;
	double best = js_real(before, "busbw", busbw);
	json_t *figure;

	if (best < busbw)
		best = busbw;
	if (runs >= HEALTH_SLOW_RUNS)
		return json_pack("{s:f, s:i}", "busbw", best, "runs", 1);
	figure = json_copy((json_t *)old);
	js_put(figure, "slower", json_pack("{s:f, s:I}", "busbw", best, "runs", (json_int_t)runs));
	return figure;
}

void health_baseline_add(struct baseline *baseline, const char *name, double busbw)
{
	const json_t *old = figure_of(baseline, name);
	double before = kept_busbw(baseline, name);
	json_t *figure;

	if (busbw <= 0)
		return;
	if (health_baseline_is_slow(baseline, name, busbw))
		figure = slower_figure(old, busbw);
	else
		figure = json_pack("{s:f, s:I}", "busbw",
				   before > 0 ? KEPT * before + (1 - KEPT) * busbw : busbw, "runs",
				   (json_int_t)js_int(old, "runs", 0) + 1);
	js_put(json_object_get(baseline->object, "figures"), name, figure);
	baseline->changed = true;
}

/* If another node has stored a newer one meanwhile, ours is not missed. */
void health_baseline_store(struct checkup *c, const struct baseline *baseline)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (baseline->changed)
		(void)!store_json_replace(c->store, baseline->key,
					  baseline->there ? baseline->tag : NULL, baseline->object,
					  &ignored);
}
