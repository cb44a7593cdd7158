/* Exchange between the nodes of a check-up, through the workspace. See health.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/node/node_flag.h"
#include "jobs/store/store.h"
#include "jobs/store/store_json.h"

#define LOCAL_MS      50
#define LOCAL_MAX_MS  200
#define REMOTE_MS     1000
#define REMOTE_MAX_MS 5000
/* Time for a node that was found sick to say so. */
#define SPEAK_MS        10000
#define SPEAK_REMOTE_MS 30000
/* Time to repeat a write while a service is away and other nodes wait. */
#define TELL_MS 120000

/* Marks an object as one of this start: an engine may have started the job before, and its objects
 * are still there. */
static void sign(const struct checkup *c, json_t *body)
{
	js_put(body, "v", json_integer(1));
	js_put_str(body, "nonce", c->config->nonce);
	js_put_str(body, "token", c->config->token);
	js_put(body, "restart", json_integer(c->config->restart));
}

static bool is_of_now(const struct checkup *c, const json_t *body)
{
	const char *token = js_str(body, "token"), *nonce = js_str(body, "nonce");

	return js_int(body, "restart", -1) == c->config->restart && token && nonce &&
	       strcmp(token, c->config->token) == 0 && strcmp(nonce, c->config->nonce) == 0;
}

/* Repeats the write until the service is back: a silent node is taken for sick. */
static int write_surely(struct checkup *c, const char *key, const json_t *body, struct err **err)
{
	int64_t end_ms = clock_mono_now().ms + TELL_MS, pause_ms = 0;
	int done;

	while ((done = store_json_put(c->store, key, body, err)) < 0 &&
	       (*err)->code == EXIT_UNREACHABLE && clock_mono_now().ms < end_ms) {
		err_freep(err);
		health_wait_a_moment(c, &pause_ms);
	}
	return done;
}

/* Returns NULL also if the object cannot be read now; the next look reads it. */
static json_t *read_object(struct checkup *c, const char *key)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;

	if (store_json_get(c->store, key, REPORT_MAX, &body, NULL, &ignored) <= 0 ||
	    !is_of_now(c, body))
		return NULL;
	return json_incref(body);
}

int health_tell_own(struct checkup *c, const char *state, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_node_key(c->config, HEALTH_FILE);

	sign(c, c->told);
	js_put_str(c->told, "state", state);
	return strcmp(state, "done") == 0 ? write_surely(c, key, c->told, err)
					  : store_json_put(c->store, key, c->told, err);
}

/* Returns a new reference to what the node has reported, NULL if nothing (yet). */
static json_t *read_node(struct checkup *c, int node)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/" HEALTH_FILE, c->config->prefix, node);

	if (node == c->config->node)
		return json_incref(c->told);
	return read_object(c, key);
}

json_t *health_read_orders(struct checkup *c)
{
	AUTO(auto_free) char *key = agent_config_key(c->config, HEALTH_FILE);

	return read_object(c, key);
}

int health_tell_all(struct checkup *c, json_t *body, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(c->config, HEALTH_FILE);

	sign(c, body);
	return write_surely(c, key, body, err);
}

void health_wait_a_moment(const struct checkup *c, int64_t *pause_ms)
{
	int64_t least = c->config->object_workspace ? REMOTE_MS : LOCAL_MS;
	int64_t most = c->config->object_workspace ? REMOTE_MAX_MS : LOCAL_MAX_MS;

	if (*pause_ms < least)
		*pause_ms = least;
	(void)cancel_pause(*pause_ms);
	*pause_ms = *pause_ms * 3 / 2 < most ? *pause_ms * 3 / 2 : most;
}

static bool has_failed(struct checkup *c)
{
	return node_flag_is_set(c->config, c->store, FAILED_FILE, c->config->restart);
}

bool health_peer_is_gone(struct checkup *c)
{
	return has_failed(c);
}

void health_let_the_sick_speak(struct checkup *c)
{
	int64_t end_ms = clock_mono_now().ms +
			 (c->config->object_workspace ? SPEAK_REMOTE_MS : SPEAK_MS),
		pause_ms = 0;

	while (!has_failed(c) && clock_mono_now().ms < end_ms)
		health_wait_a_moment(c, &pause_ms);
}

/* True if the node has reported what is waited for. */
static bool is_told(const json_t *told, int64_t round)
{
	return js_is(told, "state", "done") && js_int(told, "round", 0) >= round;
}

/* True if all nodes have begun; they have as long for that as they have for the claim. */
static bool have_all_begun(const struct checkup *c, const json_t *nodes)
{
	for (int i = 0; i < c->config->nodes; i++)
		if (json_is_null(json_array_get(nodes, (size_t)i)))
			return false;
	return true;
}

static size_t read_nodes(struct checkup *c, json_t *nodes, int64_t round)
{
	size_t missing = 0;

	for (int i = 0; i < c->config->nodes; i++) {
		json_t *told = json_array_get(nodes, (size_t)i);

		if (is_told(told, round))
			continue;
		told = read_node(c, i);
		if (told)
			json_array_set_new(nodes, (size_t)i, told);
		missing += !is_told(told, round);
	}
	return missing;
}

static void forget_untold(struct checkup *c, json_t *nodes, int64_t round)
{
	for (int i = 0; i < c->config->nodes; i++)
		if (!is_told(json_array_get(nodes, (size_t)i), round))
			json_array_set_new(nodes, (size_t)i, json_null());
}

json_t *health_gather(struct checkup *c, int64_t round, struct mono end)
{
	json_t *nodes = json_array();
	bool all_begun = round > 0;
	int64_t pause_ms = 0;

	for (int i = 0; i < c->config->nodes; i++)
		json_array_append_new(nodes, json_null());
	while (read_nodes(c, nodes, round) > 0) {
		/* From now on the slowest has as long as any other. */
		if (!all_begun && have_all_begun(c, nodes)) {
			all_begun = true;
			end.ms = clock_mono_now().ms + c->order->timeout_ms +
				 2 * (c->config->object_workspace ? REMOTE_MAX_MS : 2500);
		}
		if (clock_mono_now().ms >= end.ms || health_peer_is_gone(c))
			break;
		health_wait_a_moment(c, &pause_ms);
	}
	forget_untold(c, nodes, round);
	return nodes;
}
