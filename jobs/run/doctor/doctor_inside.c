/* The job that looks around: see doctor_inside.h. */
#include "jobs/run/doctor/doctor_inside.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data.h"
#include "jobs/engine/engine.h"
#include "jobs/run/driver.h"
#include "jobs/run/journal/forget.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/preflight.h"
#include "jobs/store/order.h"

#define LOG_CHUNK ((size_t)1 << 20)
/* Times that the job may take: to get a machine, to begin on it, and for the check-up; what the
 * agent then tries has ORDER_LOOK_MS. */
#define QUEUE_MS  ((int64_t)30 * 60 * 1000)
#define START_MS  ((int64_t)10 * 60 * 1000)
#define HEALTH_MS ((int64_t)90 * 1000)
/* A service's log may lag behind the end of its job. */
#define LOG_WAIT_MS  30000
#define LOG_PAUSE_MS 1000

/* ---- what is to be tried ---- */

static void add_place(json_t *places, const char *what, const char *url, const char *field,
		      bool read_only)
{
	json_t *place;

	if (!url || url[0] == '/' || data_url_is_list(url)) /* of a list, the file alone is read */
		return;
	place = json_object();
	js_put_str(place, "url", url);
	js_put_str(place, "what", what);
	js_put_str(place, "field", field);
	if (read_only)
		js_put(place, "read_only", json_true());
	json_array_append_new(places, place);
}

static void add_model_place(json_t *places, const json_t *plan, const char *section,
			    const char *member, const char *what, bool read_only)
{
	AUTO(auto_free) char *field = mem_format("%s.%s", section, member);

	add_place(places, what, js_str(json_object_get(plan, section), member), field, read_only);
}

/* Of places that jobs write to, they look in the cache alone for uploads that others have left. */
static void add_own_place(json_t *places, const struct preflight_place *own)
{
	size_t before = json_array_size(places);

	add_place(places, own->what, own->url, own->field, false);
	if (json_array_size(places) > before && strcmp(own->field, "compile.cache_url") == 0)
		js_put(json_array_get(places, before), "uploads", json_true());
}

/* The state is not among them: jobs know nothing of it. */
static json_t *make_look(const json_t *plan)
{
	json_t *places = json_array(), *secrets = json_object_get(plan, "secrets");
	struct preflight_place own[PREFLIGHT_PLACES];

	preflight_find(plan, NULL, own);
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		add_own_place(places, &own[i]);
	add_model_place(places, plan, "infer", "output", "place for results", false);
	add_model_place(places, plan, "data", "url", "data", true);
	add_model_place(places, plan, "evaluate", "data", "hold-out", true);
	add_model_place(places, plan, "promote", "url", "place of promoted models", true);
	return json_pack("{s:o, s:O*, s:b}", "places", places, "secrets", secrets, "identity",
			 aws_account_is_needed(plan) || aws_account_needs_region(plan));
}

/* ---- the plan of the job ---- */

/* What of a plan is about its training, and not about where it runs. */
static const char *const dropped[] = {
	"compile", "length",   "width",   "metrics",   "samples_per_step",
	"notify",  "stall",    "data",    "parent",    "evaluate",
	"gate",    "infer",    "promote", "benchmark", "debug",
	"steps",   "failures", "derived", "origins",
};
static const char *const dropped_of_spec[] = { "loggers", "progress", "env", "command",
					       "hyperparameters" };

static void drop(json_t *object, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_object_del(object, names[i]);
}

/* What SageMaker is asked for beside the machine: one that the agent starts, and no longer than it
 * may last. */
static void limit_sagemaker(json_t *settings)
{
	static const char *const names[] = { "instance_groups", "warm_pool", "max_wait",
					     "distribution" };

	if (!settings)
		return;
	drop(settings, names, STK_LENGTH(names));
	js_put_str(settings, "launcher", "node");
	js_put_str(settings, "max_runtime", "5m");
}

/* The plan of the spec, but for one node with the agent alone. Neither source nor secrets get
 * there: the agent reads the latter itself, to throw them away. */
static struct plan *make_plan(const struct doctor_inside *inside)
{
	json_t *plan = json_deep_copy(inside->plan), *spec = json_object_get(plan, "spec");
	json_t *limits = json_object_get(plan, "limits");
	json_t *health = json_object_get(plan, "health");

	drop(plan, dropped, STK_LENGTH(dropped));
	drop(spec, dropped_of_spec, STK_LENGTH(dropped_of_spec));
	limit_sagemaker(json_object_get(spec, "sagemaker"));
	js_put(plan, "nodes", json_integer(1));
	if (json_object_get(spec, "resources"))
		js_put(json_object_get(spec, "resources"), "nodes", json_integer(1));
	js_put(plan, "look", make_look(inside->plan));
	js_put(plan, "secrets", json_object());
	js_put(plan, "phases",
	       json_pack("[{s:s, s:[s], s:{}}]", "phase", flow_phase_names[PHASE_TRAIN], "command",
			 "true", "env"));
	js_put(plan, "retry", json_pack("{s:i, s:i}", "attempts", 1, "without_progress", 1));
	js_put(limits, "queue_ms", json_integer(QUEUE_MS));
	js_put(limits, "start_ms", json_integer(START_MS));
	json_object_del(limits, "deadline_ms");
	json_object_del(limits, "cost");
	if (health) {
		js_put(health, "ops", json_array());
		js_put(health, "timeout_ms", json_integer(HEALTH_MS));
	}
	js_put_str(json_object_get(plan, "checkpoint"), "sync", "none");
	json_object_del(json_object_get(plan, "checkpoint"), "url");
	drop(json_object_get(plan, "source"), (const char *const[]){ "bundle", "links" }, 2);
	return plan_of_json(plan);
}

double doctor_inside_cost(const json_t *plan)
{
	const json_t *price = json_object_get(json_object_get(plan, "limits"), "price");

	return price ? json_number_value(price) * DOCTOR_INSIDE_MINUTES / 60 : -1;
}

/* ---- the run ---- */

struct looking {
	const char *run;
	json_t *findings;      /* so far */
	json_t *told;          /* those of the agent */
	char job[FLOW_ID_MAX]; /* "" before there is one */
	char *trouble, *cure;  /* of its end, as the run has it; NULL: none */
	bool whole;            /* the agent has looked at all */
};

static json_t *add_finding(struct looking *looking, const char *check, const char *on,
			   const char *state, const char *seen)
{
	json_t *finding = json_object();

	js_put_str(finding, "check", check);
	js_put_str(finding, "on", on);
	js_put_str(finding, "state", state);
	js_put_str(finding, "seen", seen);
	json_array_append_new(looking->findings, finding);
	return finding;
}

/* What the check-up has counted and tried. */
static void add_health(struct looking *looking, const json_t *health)
{
	static const char *const states[][2] = {
		{ "ok", "ok" },
		{ "warned", "warn" },
		{ "sick", "fail" },
		{ "unchecked", "unknown" },
	};
	const json_t *node = json_array_get(json_object_get(health, "nodes"), 0), *check;
	size_t i;

	json_array_foreach (json_object_get(node, "checks"), i, check)
		for (size_t row = 0; row < STK_LENGTH(states); row++)
			if (js_is(check, "verdict", states[row][0]))
				add_finding(looking, "inside.health", js_str(check, "check"),
					    states[row][1], js_str(check, "words"));
}

static void replace(char **text, const char *by)
{
	free(*text);
	*text = by && *by ? mem_copy(by) : NULL;
}

static void on_event(void *arg, const struct event *ev, json_t *row)
{
	struct looking *looking = arg;

	(void)row;
	if (!ev)
		return;
	if (ev->kind == EV_ATTEMPT_INTENDED) {
		snprintf(looking->job, sizeof looking->job, "%s", ev->job);
	} else if (ev->kind == EV_HEALTH_CHECKED) {
		add_health(looking, ev->health);
	} else if (ev->kind == EV_RUN_ENDED && ev->exit_code != EXIT_DONE) {
		replace(&looking->trouble, EVENT_HAS(ev, evidence) ? ev->evidence : ev->reason);
		replace(&looking->cure, ev->hint);
	}
}

static enum interrupt on_interrupt(void *arg, int signo)
{
	(void)arg;
	(void)signo;
	return INTERRUPT_STOP;
}

/* ---- its log ---- */

/* Takes the findings of a log, whose lines may lie anywhere between others. */
static void take_findings(struct looking *looking, const struct sb *log)
{
	for (const char *line = log->text, *end; line && *line; line = end + 1) {
		json_auto_t *finding = NULL;

		end = strchrnul(line, '\n');
		if (!*end)
			return; /* half a line */
		if (!text_starts(line, LOOK_LINE))
			continue;
		line += strlen(LOOK_LINE);
		finding = json_loadb(line, (size_t)(end - line), 0, NULL);
		if (js_str(finding, "check"))
			json_array_append(looking->told, finding);
		else if (json_is_object(finding))
			looking->whole = true;
	}
}

/* Reads the log to its end. A log that cannot be read is as one without findings. */
static void read_log(struct looking *looking, const json_t *plan)
{
	const struct engine_ops *ops = engine_find(js_str(plan, "engine"));
	const struct engine_where where = { .workspace = js_str(plan, "workspace"), .plan = plan };
	AUTO(auto_free)
	char *prefix = mem_format("runs/%s/%s-1/", looking->run, flow_phase_names[PHASE_TRAIN]);
	AUTO(err_freep) struct err *why = NULL;
	AUTO(sb_release) struct sb log = SB_INIT_MAX(LOG_CHUNK);
	struct engine *engine = NULL;
	struct mono since = clock_mono_now();
	uint64_t offset = 0;

	if (!looking->job[0] || aws_account_enter_region(plan, &why) < 0 ||
	    ops->open(&where, &engine, &why) < 0)
		return;
	sb_adds(&log, "");
	do {
		if (ops->logs(engine, looking->job, prefix, 0, &offset, LOG_CHUNK - log.len - 1,
			      &log, &why) < 0)
			break;
		json_array_clear(looking->told);
		take_findings(looking, &log);
	} while (!looking->whole && clock_mono_now().ms - since.ms < LOG_WAIT_MS &&
		 cancel_pause(LOG_PAUSE_MS));
	ops->close(engine);
}

/* ---- all of it ---- */

/* How the job went: the first finding. */
static void add_end(struct looking *looking, const struct err *why)
{
	const char *state = looking->whole                         ? "ok"
			    : why && why->code == EXIT_UNREACHABLE ? "unknown"
								   : "fail";
	json_t *finding = json_object();

	js_put_str(finding, "check", "inside.job");
	js_put_str(finding, "on", looking->job[0] ? looking->job : NULL);
	js_put_str(finding, "state", state);
	if (looking->whole)
		js_put_str(finding, "seen", "a job of one node began, and looked at all");
	else if (why || looking->trouble)
		js_put_str(finding, "seen", why ? why->message : looking->trouble);
	else
		js_put_str(finding, "seen",
			   "the job ended, and its log does not have all findings");
	if (!looking->whole)
		js_put_str(finding, "cure", why ? why->hint : looking->cure);
	json_array_insert_new(looking->findings, 0, finding);
}

/* The run has done its work. One that has not ended stays, as any run of a killed driver. */
static void forget(const struct doctor_inside *inside, const char *run)
{
	const struct forget_options options = { .with_checkpoints = true };
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *removal = NULL;

	(void)!run_forget(inside->journal, run, &options, inside->rules, NULL, NULL, &removal,
			  &ignored);
}

json_t *doctor_inside_examine(const struct doctor_inside *inside)
{
	AUTO(plan_freep) struct plan *plan = make_plan(inside);
	AUTO(err_freep) struct err *why = NULL;
	char run[RUN_ID_LEN + 1];
	struct looking looking = { .run = run, .findings = json_array(), .told = json_array() };
	const struct driver_options options = {
		.run = run,
		.plan = plan,
		.on_event = on_event,
		.on_away = inside->on_away,
		.on_interrupt = on_interrupt,
		.arg = &looking,
		.lease = inside->rules,
	};
	enum exit_code code;

	text_run_id_new(run);
	inside->on_begin(run);
	(void)!driver_run(inside->journal, &options, &code, &why);
	read_log(&looking, plan->json);
	json_array_extend(looking.findings, looking.told);
	add_end(&looking, why);
	forget(inside, run);
	json_decref(looking.told);
	free(looking.trouble);
	free(looking.cure);
	return looking.findings;
}
