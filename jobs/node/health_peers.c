/* How the nodes of a check-up hear each other: through the workspace. See health.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/node/health_inside.h"
#include "jobs/node/note.h"
#include "jobs/store/store.h"

#define NEAR_MS     50
#define NEAR_MAX_MS 200
#define FAR_MS      1000
#define FAR_MAX_MS  5000
/* For a node that was found sick to say so. */
#define SPEAK_MS     10000
#define SPEAK_FAR_MS 30000
/* For a service that is away while others wait to be told. */
#define TELL_MS 120000

/* An engine may have started the job before, and what was told then is still there. */
static void sign(const struct checkup *c, json_t *body)
{
	js_put(body, "v", json_integer(1));
	js_put_str(body, "nonce", c->task->nonce);
	js_put_str(body, "token", c->task->token);
	js_put(body, "restart", json_integer(c->task->restart));
}

static bool is_of_now(const struct checkup *c, const json_t *body)
{
	const char *token = js_str(body, "token"), *nonce = js_str(body, "nonce");

	return js_int(body, "restart", -1) == c->task->restart && token && nonce &&
	       strcmp(token, c->task->token) == 0 && strcmp(nonce, c->task->nonce) == 0;
}

static int tell(struct checkup *c, const char *key, const json_t *body, struct err **err)
{
	AUTO(auto_free) char *text = js_line(body);

	return store_put(c->store, key, text, strlen(text), err);
}

/* Again, until the service is back: who is not heard of is taken for sick. */
static int tell_surely(struct checkup *c, const char *key, const json_t *body, struct err **err)
{
	int64_t end_ms = mono_now().ms + TELL_MS, pause_ms = 0;
	int done;

	while ((done = tell(c, key, body, err)) < 0 && (*err)->code == EXIT_UNREACHABLE &&
	       mono_now().ms < end_ms) {
		err_freep(err);
		wait_a_moment(c, &pause_ms);
	}
	return done;
}

/* What cannot be read now is read at the next look. */
static json_t *hear(struct checkup *c, const char *key)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	json_t *body = NULL;

	if (store_get(c->store, key, REPORT_MAX, &text, NULL, &ignored) <= 0 ||
	    js_parse(text.text, text.len, key, &body, &ignored) < 0)
		return NULL;
	if (is_of_now(c, body))
		return body;
	json_decref(body);
	return NULL;
}

int tell_own(struct checkup *c, const char *state, struct err **err)
{
	AUTO(auto_free) char *key = task_node_key(c->task, HEALTH_FILE);

	sign(c, c->told);
	js_put_str(c->told, "state", state);
	return strcmp(state, "done") == 0 ? tell_surely(c, key, c->told, err)
					  : tell(c, key, c->told, err);
}

/* What node k has told, NULL: nothing (yet). A new reference. */
static json_t *hear_node(struct checkup *c, int node)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/" HEALTH_FILE, c->task->prefix, node);

	if (node == c->task->node)
		return json_incref(c->told);
	return hear(c, key);
}

json_t *hear_verdict(struct checkup *c)
{
	AUTO(auto_free) char *key = task_key(c->task, HEALTH_FILE);

	return hear(c, key);
}

int tell_all(struct checkup *c, json_t *body, struct err **err)
{
	AUTO(auto_free) char *key = task_key(c->task, HEALTH_FILE);

	sign(c, body);
	return tell_surely(c, key, body, err);
}

void wait_a_moment(const struct checkup *c, int64_t *pause_ms)
{
	int64_t least = c->task->far ? FAR_MS : NEAR_MS;
	int64_t most = c->task->far ? FAR_MAX_MS : NEAR_MAX_MS;
	struct timespec pause;

	if (*pause_ms < least)
		*pause_ms = least;
	pause = (struct timespec){ *pause_ms / 1000, *pause_ms % 1000 * 1000000 };
	nanosleep(&pause, NULL);
	*pause_ms = *pause_ms * 3 / 2 < most ? *pause_ms * 3 / 2 : most;
}

static bool has_failed(struct checkup *c)
{
	return note_stands(c->task, c->store, FAILED_FILE, c->task->restart);
}

bool peer_is_gone(struct checkup *c)
{
	return has_failed(c);
}

void let_the_sick_speak(struct checkup *c)
{
	int64_t end_ms = mono_now().ms + (c->task->far ? SPEAK_FAR_MS : SPEAK_MS), pause_ms = 0;

	while (!has_failed(c) && mono_now().ms < end_ms)
		wait_a_moment(c, &pause_ms);
}

/* Has it told what is waited for? */
static bool is_told(const json_t *told, int64_t round)
{
	return js_is(told, "state", "done") && js_int(told, "round", 0) >= round;
}

/* All that have begun; how long the others have to: as they have for the claim. */
static bool have_all_begun(const struct checkup *c, const json_t *nodes)
{
	for (int i = 0; i < c->task->nodes; i++)
		if (json_is_null(json_array_get(nodes, (size_t)i)))
			return false;
	return true;
}

static size_t look_at_nodes(struct checkup *c, json_t *nodes, int64_t round)
{
	size_t missing = 0;

	for (int i = 0; i < c->task->nodes; i++) {
		json_t *told = json_array_get(nodes, (size_t)i);

		if (is_told(told, round))
			continue;
		told = hear_node(c, i);
		if (told)
			json_array_set_new(nodes, (size_t)i, told);
		missing += !is_told(told, round);
	}
	return missing;
}

static void forget_untold(struct checkup *c, json_t *nodes, int64_t round)
{
	for (int i = 0; i < c->task->nodes; i++)
		if (!is_told(json_array_get(nodes, (size_t)i), round))
			json_array_set_new(nodes, (size_t)i, json_null());
}

json_t *gather(struct checkup *c, int64_t round, struct mono end)
{
	json_t *nodes = json_array();
	bool all_begun = round > 0;
	int64_t pause_ms = 0;

	for (int i = 0; i < c->task->nodes; i++)
		json_array_append_new(nodes, json_null());
	while (look_at_nodes(c, nodes, round) > 0) {
		/* From then on the slowest has as long as any other. */
		if (!all_begun && have_all_begun(c, nodes)) {
			all_begun = true;
			end.ms = mono_now().ms + js_int(c->order, "timeout_ms", 0) +
				 2 * (c->task->far ? FAR_MAX_MS : 2500);
		}
		if (mono_now().ms >= end.ms || peer_is_gone(c))
			break;
		wait_a_moment(c, &pause_ms);
	}
	forget_untold(c, nodes, round);
	return nodes;
}
