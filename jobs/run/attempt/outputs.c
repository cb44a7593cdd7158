/* Outputs that an attempt left in STOKER_OUTPUT_DIR: see outputs.h. */
#include "jobs/run/attempt/outputs.h"

#include <string.h>

#include "jobs/run/attempt/order.h"

#define WHY_MAX         1000
#define NAMES_SHOWN_MAX 4 /* names shown of files that were not copied, per node */

struct gathered {
	bool any, counted;
	int64_t files, bytes, left;
	struct sb why;
};

/* "node 1: 'x' is a link…, and 2 more" */
static void add_names(struct gathered *all, int node, const struct node_report_outputs *outputs)
{
	size_t shown = outputs->names.count;

	if (shown > NAMES_SHOWN_MAX)
		shown = NAMES_SHOWN_MAX;
	for (size_t i = 0; i < shown; i++) {
		const char *name = outputs->names.items[i].name, *why = outputs->names.items[i].why;

		sb_addf(&all->why, "%snode %d: ", all->why.len ? "; " : "", node);
		if (name && *name)
			sb_addf(&all->why, "'%s' ", name);
		sb_adds(&all->why, why ? why : "is not there");
	}
	if (outputs->left > (int64_t)shown)
		sb_addf(&all->why, ", and %lld more", (long long)(outputs->left - (int64_t)shown));
}

static void add_node(struct gathered *all, int node, const struct node_report_outputs *outputs)
{
	if (!outputs->url)
		return;
	all->any = true;
	all->counted |= outputs->has_files;
	all->files += outputs->files;
	all->bytes += outputs->bytes;
	all->left += outputs->left;
	if (outputs->why)
		sb_addf(&all->why, "%snode %d: %s", all->why.len ? "; " : "", node, outputs->why);
	if (outputs->left > 0)
		add_names(all, node, outputs);
}

int outputs_gather(struct attempt_watch *watch, json_t **ret, struct err **err)
{
	const struct driver *driver = watch->driver;
	AUTO(auto_free) char *prefix = order_outputs(driver->run, watch->phase, watch->attempt);
	AUTO(auto_free) char *url = mem_format("%s/%s", store_url(driver->workspace), prefix);
	struct gathered all = { .why = SB_INIT_MAX(WHY_MAX) };

	for (int node = 0; node < watch->nodes; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (attempt_report(watch, node, &report, err) < 0) {
			sb_release(&all.why);
			return -1;
		}
		add_node(&all, node, &report.outputs);
	}
	if (all.any) {
		json_t *outputs = json_object();

		url[strlen(url) - 1] = '\0';
		js_put_str(outputs, "url", url);
		if (all.counted) {
			js_put(outputs, "files", json_integer(all.files));
			js_put(outputs, "size_bytes", json_integer(all.bytes));
		}
		if (all.left > 0)
			js_put(outputs, "left", json_integer(all.left));
		if (all.why.len > 0)
			js_put(outputs, "why", js_text(all.why.text, all.why.len));
		*ret = outputs;
	}
	sb_release(&all.why);
	return 0;
}

void outputs_record(struct attempt_watch *watch, const json_t *outputs)
{
	AUTO(err_freep) struct err *ignored = NULL;
	const char *why = js_str(outputs, "why");
	struct event ev;

	if (!why)
		return;
	attempt_event(watch, EV_OUTPUTS_LEFT, &ev);
	EVENT_SET_STR(&ev, reason, why);
	(void)!driver_record(watch->driver, &ev, &ignored);
}
