/* The requests of a plan: see plan_requests.h. */
#include "cmd/view/plan_requests.h"

#include "cmd/screen/out.h"
#include "cmd/view/plan_text.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/plan/plan.h"

/* Returns the request of a phase, borrowed, but none of a stage's phase 1; NULL: none. */
static const json_t *request_of(const json_t *requests, enum phase phase)
{
	const json_t *request;
	size_t i;

	json_array_foreach (requests, i, request)
		if (js_is(request, "phase", flow_phase_names[phase]) &&
		    !json_object_get(request, "stage"))
			return request;
	return NULL;
}

/* Returns the difference between the two phases that start a job: in the orders of their agents,
 * or in the member `sent` of the request. NULL if there is a single phase. */
static json_t *difference_of(const json_t *requests, const char *sent)
{
	static const enum phase phases[] = { PHASE_PRECOMPILE, PHASE_TRAIN };
	const json_t *sides[2];

	for (size_t i = 0; i < 2; i++) {
		const json_t *request = request_of(requests, phases[i]);
		const json_t *sends = json_object_get(request, "sends");

		sides[i] = sent ? json_object_get(json_array_get(sends, 0), sent) : request;
	}
	return sides[0] && sides[1] ? order_difference(sides[0], sides[1]) : NULL;
}

int plan_requests_make(const json_t *plan, struct plan_requests *ret, struct err **err)
{
	json_auto_t *marked = image_plan_marked(plan), *shown = plan_as_shown(marked);

	ret->requests = order_planned(shown);
	if (toolkit_limits_has_agent(plan))
		ret->difference = difference_of(ret->requests, NULL);
	if (sends_of_order(marked, ret->requests, err) < 0)
		return -1;
	if (!ret->difference)
		ret->difference = difference_of(ret->requests, "body");
	ret->placeholders = placeholders_of_requests(ret->requests);
	return 0;
}

void plan_requests_release(struct plan_requests *requests)
{
	json_decref(requests->requests);
	json_decref(requests->difference);
	json_decref(requests->placeholders);
}

void plan_requests_print(const json_t *plan, const struct plan_requests *requests)
{
	const json_t *row;
	size_t i;

	if (json_array_size(requests->placeholders) > 0)
		out_line("placeholders, for what only the run knows:");
	json_array_foreach (requests->placeholders, i, row)
		out_line("  %-17s %s", js_str(row, "mark"), js_str(row, "meaning"));
	plan_text_print_requests(plan, requests->requests, requests->difference);
}

void plan_requests_put(const struct plan_requests *requests, json_t *line)
{
	js_put(line, "requests", json_incref(requests->requests));
	js_put(line, "difference", json_incref(requests->difference));
	if (json_array_size(requests->placeholders) > 0)
		js_put(line, "placeholders", json_incref(requests->placeholders));
}
