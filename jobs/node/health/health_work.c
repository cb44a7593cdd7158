/* The check-up from its beginning to node 0's verdict, in the helper: see health.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/variable.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/node/setup/network.h"
#include "jobs/store/store.h"

#define PORT_FIRST 32000 /* beside the ports that claims choose from */
#define PORT_COUNT 700
#define SLACK_MS   30000 /* for slow answers of the workspace */

bool health_needed(const struct agent_config *config)
{
	return config->order->has_health;
}

/* Other nodes may begin later, by as much as they may claim later; the rounds between the nodes
 * have the time of one more check-up. */
int64_t health_longest_ms(const struct agent_config *config)
{
	int64_t timeout = config->order->health.timeout_ms;

	return config->nodes == 1 ? timeout + SLACK_MS
				  : config->claim_wait_ms + 3 * timeout + 2 * SLACK_MS;
}

/* ---- environment and folder --------------------------------------------------------- */

/* The training's compile cache is left alone: what a test compiles stays here. The place on node 0
 * where the training's collectives meet is dropped too: a test of one node alone would meet all
 * others there, and a test of several nodes is told its own. */
static int make_env(struct checkup *c, struct err **err)
{
	static const char *const caches[] = { "NEURON_COMPILE_CACHE_URL",
					      "JAX_COMPILATION_CACHE_DIR" };
	static const char *const emptied[] = { "NEURON_CC_FLAGS", "NEURON_EXTRACT_GRAPHS_ONLY",
					       "XLA_FLAGS" };
	AUTO(auto_free) char *cache = fs_join(c->folder, "cache");

	if (command_env_build(c->config, c->claim, &c->env, err) < 0)
		return -1;
	for (size_t i = 0; i < STK_LENGTH(caches); i++)
		command_env_put(&c->env, caches[i], cache);
	for (size_t i = 0; i < STK_LENGTH(emptied); i++)
		if (command_env_get(&c->env, emptied[i]))
			command_env_put(&c->env, emptied[i], "");
	command_env_drop(&c->env, variable_rows[VAR_NEURON_ROOT_COMM].name);
	return 0;
}

static bool is_python(const char *path)
{
	const char *name = fs_basename(path);

	return strncmp(name, "python", 6) == 0 && name[6 + strspn(name + 6, "0123456789.")] == '\0';
}

/* Returns the command's Python: the command itself, or the one beside it (a virtual environment),
 * or the first one in PATH. The caller frees it. */
static char *find_python(const struct checkup *c)
{
	AUTO(auto_strv) char **argv = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	const char *path = command_env_get(&c->env, "PATH");
	AUTO(auto_free) char *program = NULL;
	AUTO(auto_free) char *beside = NULL;

	if (command_env_command(c->config, &c->env, &argv, &ignored) < 0)
		return NULL;
	program = proc_find_program(argv[0], c->config->src, path);
	if (program && is_python(program))
		return TAKE(program);
	if (program) {
		AUTO(auto_free) char *folder = fs_dirname(program);
		AUTO(auto_free) char *there = fs_join(folder, "python3");

		beside = proc_find_program(there, "/", path);
	}
	return beside ? TAKE(beside) : proc_find_program("python3", c->config->src, path);
}

/* Returns the address by which this machine reaches node 0, and by which others reach it. */
static char *own_address(const struct checkup *c, const char *host)
{
	char *found;

	if (c->config->node == 0)
		return mem_copy(c->claim->master_addr);
	found = network_towards(c->claim->master_addr);
	return found ? found : mem_copy(host);
}

static void introduce(struct checkup *c)
{
	AUTO(auto_free) char *addr = NULL;
	char host[256] = "";
	uint16_t chance;

	gethostname(host, sizeof host - 1);
	addr = own_address(c, host);
	hash_random_bytes(&chance, sizeof chance);
	js_put(c->told, "node", json_integer(c->config->node));
	js_put_str(c->told, "host", host);
	js_put_str(c->told, "addr", addr);
	js_put(c->told, "port", json_integer(PORT_FIRST + chance % PORT_COUNT));
	js_put(c->told, "rows", json_incref(c->rows));
	js_put(c->told, "figures", json_incref(c->figures));
}

static int begin_checkup(struct checkup *c, struct err **err)
{
	c->order = &c->config->order->health;
	c->begun = clock_mono_now();
	c->began = clock_utc_now();
	c->end.ms = c->begun.ms + c->order->timeout_ms;
	c->cores = (int)c->config->order->cores;
	c->folder = fs_join(c->config->dir, "health");
	c->told = json_object();
	c->rows = json_array();
	c->figures = json_object();
	/* A store of the helper's own: a store must not be used on both sides of a fork. */
	if (store_open(c->config->workspace, &c->store, err) < 0 ||
	    fs_remove_tree(c->folder, err) < 0 || fs_mkdirs(c->folder, err) < 0 ||
	    make_env(c, err) < 0)
		return -1;
	health_find_kind(c);
	c->python = find_python(c);
	introduce(c);
	return 0;
}

static void release(struct checkup *c)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (c->folder)
		(void)!fs_remove_tree(c->folder, &ignored);
	store_freep(&c->store);
	command_env_release(&c->env);
	free(c->folder);
	free(c->python);
	json_decref(c->told);
	json_decref(c->rows);
	json_decref(c->figures);
}

/* ---- checks of this node -------------------------------------------------------------- */

/* Once something is wrong, the checks that take time are skipped. */
static void check_node(struct checkup *c)
{
	bool collectives = json_array_size(c->order->ops) > 0;

	health_check_place(c);
	if (!c->order->full)
		return;
	if (c->order->device) {
		c->kind->devices(c);
		c->kind->counters(c);
		if (!c->sick)
			health_check_tensor(c);
	}
	if (!c->sick && collectives && c->config->nodes > 1 && !json_object_get(c->told, "torch"))
		health_find_torch(c);
	if (!c->sick && collectives)
		health_check_collectives(c);
}

/* ---- the verdict ----------------------------------------------------------------------- */

/* Returns what the driver sees of each node: its figures, and its checks; with more than 8 nodes
 * only those that are not as they should be. */
static json_t *shown(const json_t *nodes)
{
	json_t *list = json_array();
	const json_t *told, *row;
	size_t i, n;

	json_array_foreach (nodes, i, told) {
		json_t *one = json_object(), *rows = json_array();

		js_put(one, "node", json_integer((json_int_t)i));
		js_put_str(one, "host", js_str(told, "host"));
		if (json_object_size(json_object_get(told, "figures")) > 0)
			js_put(one, "figures", json_deep_copy(json_object_get(told, "figures")));
		json_array_foreach (json_object_get(told, "rows"), n, row)
			if (json_array_size(nodes) <= 8 || !js_is(row, "verdict", ROW_OK))
				json_array_append(rows, (json_t *)row);
		js_put(one, "checks", rows);
		json_array_append_new(list, one);
	}
	return list;
}

static char *sick_words(const json_t *sick, int nodes)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(4000);
	const json_t *row;
	size_t i;

	json_array_foreach (sick, i, row) {
		const char *host = js_str(row, "host");

		if (nodes > 1)
			sb_addf(&words, "%snode %lld%s%s%s is sick: ", i ? "; " : "",
				(long long)js_int(row, "node", 0), host ? " (" : "",
				host ? host : "", host ? ")" : "");
		else
			sb_addf(&words, "%s%s%sthe node is sick: ", i ? "; " : "", host ? host : "",
				host ? ": " : "");
		sb_adds(&words, js_str(row, "words"));
	}
	return sb_take(&words);
}

/* Returns, on node 0, the verdict that all nodes follow, also for its report. */
static json_t *decide_for_all(struct checkup *c, const json_t *nodes)
{
	AUTO(health_baseline_release) struct baseline baseline = { 0 };
	json_t *sick, *verdict = json_object(), *warned = json_array();
	json_auto_t *across = NULL;
	const char *failing;
	AUTO(auto_free) char *common = health_common_failure(nodes);
	AUTO(auto_free) char *words = NULL;

	health_baseline_load(c, &baseline);
	sick = health_compare_nodes(c, nodes, &baseline, warned);
	if (common)
		json_array_clear(sick);
	else if (json_array_size(sick) == 0 && c->config->nodes > 1 &&
		 json_array_size(c->order->ops) > 0 && c->order->full) {
		struct mono end = { clock_mono_now().ms + c->order->timeout_ms };

		across = health_test_across(c, nodes, end, sick);
		health_compare_across(c, across, &baseline, warned);
	}
	failing = common ? common : js_str(across, "failing");
	words = sick_words(sick, c->config->nodes);
	js_put_str(verdict, "do", "verdict");
	js_put_str(verdict, "verdict",
		   json_array_size(sick) > 0 ? HEALTH_SICK
		   : failing                 ? HEALTH_FAILING
					     : HEALTH_HEALTHY);
	js_put_str(verdict, "words", failing ? failing : words);
	/* A node that is alone and only slow may be what is usual from now on. */
	if (!failing && (json_array_size(sick) == 0 || (c->config->nodes == 1 && !c->sick)))
		health_remember_figures(c, nodes, across);
	js_put(verdict, "sick", sick);
	js_put(verdict, "warned", warned);
	js_put(verdict, "nodes", shown(nodes));
	if (across)
		js_put(verdict, "across", json_incref(across));
	return verdict;
}

/* Before a precompile each node speaks for itself. */
static const char *outcome_of(const struct checkup *c, const json_t *verdict)
{
	const char *said = js_str(verdict, "verdict");

	if (!c->order->full)
		return c->sick ? HEALTH_SICK : HEALTH_HEALTHY;
	if (!said)
		return HEALTH_OTHER;
	if (health_is_sick(json_object_get(verdict, "sick"), c->config->node))
		return HEALTH_SICK;
	if (strcmp(said, HEALTH_HEALTHY) == 0)
		return HEALTH_HEALTHY;
	return strcmp(said, HEALTH_FAILING) == 0 && c->config->node == 0 ? HEALTH_FAILING
									 : HEALTH_OTHER;
}

/* Does, on the other nodes, what node 0 orders, until its verdict. Returns NULL if there was
 * none. */
static json_t *obey(struct checkup *c)
{
	int64_t end_ms = c->begun.ms + health_longest_ms(c->config), pause_ms = 0, round = 0;

	while (clock_mono_now().ms < end_ms) {
		/* The order matters: a node that is found sick fails only after the verdict. */
		bool gone = health_peer_is_gone(c);
		json_auto_t *orders = health_read_orders(c);
		const char *what = js_str(orders, "do");

		if (what && strcmp(what, "verdict") == 0)
			return json_incref(orders);
		if (what && js_int(orders, "round", 0) > round) {
			round = js_int(orders, "round", 0);
			health_join_round(c, orders);
			pause_ms = 0;
			continue;
		}
		if (gone)
			return NULL;
		health_wait_a_moment(c, &pause_ms);
	}
	return NULL;
}

/* ---- the whole check-up ------------------------------------------------------------- */

static json_t *reach_verdict(struct checkup *c)
{
	json_auto_t *nodes = NULL;
	json_auto_t *verdict = NULL;
	struct mono end = { c->begun.ms + c->config->claim_wait_ms };

	if (c->config->nodes == 1) {
		nodes = json_pack("[O]", c->told);
		return decide_for_all(c, nodes);
	}
	if (c->config->node > 0)
		return obey(c);
	nodes = health_gather(c, 0, end);
	if (health_peer_is_gone(c))
		return NULL;
	verdict = decide_for_all(c, nodes);
	/* A node that left meanwhile is why others fail, so that verdict does not count. */
	return health_peer_is_gone(c) ? NULL : json_incref(verdict);
}

static json_t *report_of(const struct checkup *c, const json_t *verdict)
{
	static const char *const members[] = { "words", "sick", "warned", "nodes", "across" };
	json_t *report = json_object();

	const char *said = js_str(verdict, "verdict");

	js_put_str(report, "verdict", said ? said : c->sick ? HEALTH_SICK : "unknown");
	js_put(report, "began", json_integer(c->began.ms));
	js_put(report, "ended", json_integer(clock_utc_now().ms));
	for (size_t i = 0; i < STK_LENGTH(members) && c->config->node == 0; i++)
		if (json_object_get(verdict, members[i]))
			js_put(report, members[i],
			       json_incref(json_object_get(verdict, members[i])));
	if (!json_object_get(report, "nodes"))
		js_put(report, "checks", json_incref(c->rows));
	return report;
}

static json_t *conclude(const struct checkup *c, const json_t *verdict)
{
	const char *outcome = outcome_of(c, verdict);
	AUTO(auto_free) char *own = c->sick ? health_checkup_sick_words(c->rows) : NULL;
	json_t *ret = json_object();

	js_put_str(ret, "outcome", outcome);
	js_put(ret, "report", report_of(c, verdict));
	if (strcmp(outcome, HEALTH_HEALTHY) != 0)
		js_put_str(ret, "message",
			   js_str(verdict, "words") ? js_str(verdict, "words") : own);
	return ret;
}

/* The agent is told first: once the other nodes know, one of them may end and take this one
 * down. */
static void announce(struct checkup *c, json_t *verdict, health_fn fn, void *arg)
{
	json_auto_t *said = conclude(c, verdict);
	AUTO(err_freep) struct err *ignored = NULL;

	fn(arg, said);
	if (!verdict || c->config->nodes == 1)
		return;
	if (c->config->node == 0)
		(void)!health_tell_all(c, verdict, &ignored);
	if (js_is(said, "outcome", HEALTH_OTHER))
		health_let_the_sick_speak(c);
}

static void apologise(const struct err *why, health_fn fn, void *arg)
{
	json_auto_t *said = json_object();

	js_put_str(said, "outcome", HEALTH_FAILING);
	js_put_str(said, "message", why->message);
	js_put_str(said, "hint", why->hint);
	fn(arg, said);
}

void health_work(const struct agent_config *config, const struct claim *claim, health_fn fn,
		 void *arg)
{
	AUTO(release) struct checkup c = { .config = config, .claim = claim };
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *verdict = NULL;

	if (begin_checkup(&c, &why) < 0) {
		apologise(why, fn, arg);
		return;
	}
	check_node(&c);
	if (c.order->full) {
		if (config->nodes > 1)
			(void)!health_tell_own(&c, "done", &why);
		verdict = reach_verdict(&c);
	}
	announce(&c, verdict, fn, arg);
}
