/*
 * Test between the nodes: an all-reduce over all of them, and if that fails, a search for the node
 * to blame. Groups that fail are halved, and their halves tested side by side; two nodes that are
 * fine alone but not together are each tested with one that is known to be good. If each node fails
 * alone, none of them is to blame.
 *
 * Node 0 writes health.json: {"round", "do": "test", "how", "limit_ms", "groups": [{"members":
 * [rank…], "addr","port": of the first}…]}; each node of a group answers by "round" and "result" in
 * its own health.json, and the others by "round" alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/node/health/health_internal.h"

#define ALL_REDUCE   "all_reduce"
#define SSH_SECONDS  5
#define ROUNDS_MAX   24   /* halving a million nodes, and the crosswise tests */
#define SLACK_MS     5000 /* for the answers of a round */
#define SLACK_REMOTE 15000

/* Least time of a round: a slow start must not be taken for a hang, so a round that would have less
 * is not begun. In a far workspace other nodes begin later than node 0, and answer later. */
#define ROUND_LEAST  1000 /* ms */
#define LEAST_PARTS  32   /* a round has at least this fraction of health.timeout */
#define LEAST_REMOTE 20000
#define LATE_REMOTE  10000

static bool has_member(const json_t *group, int node)
{
	const json_t *member;
	size_t i;

	json_array_foreach (json_object_get(group, "members"), i, member)
		if (json_integer_value(member) == node)
			return true;
	return false;
}

static json_t *group_of(const json_t *groups, int node)
{
	json_t *group;
	size_t i;

	json_array_foreach (groups, i, group)
		if (has_member(group, node))
			return group;
	return NULL;
}

/* ---- each node's part ----------------------------------------------------------------- */

static char *by_mpi(struct checkup *c, const json_t *group, struct mono end)
{
	const json_t *hosts = json_object_get(group, "hosts");
	int ranks = c->cores * (int)json_array_size(hosts);

	/* The group's first node runs the test for all of them. */
	if (js_int(group, "first", -1) != c->config->node)
		return NULL;
	return health_run_nccom(c, ALL_REDUCE, ranks, hosts, end, "across", c->figures);
}

static char *by_torch(struct checkup *c, const json_t *group, struct mono end)
{
	const json_t *members = json_object_get(group, "members"), *member;
	const char *addr = js_str(group, "addr");
	int rank = 0;
	size_t i;

	json_array_foreach (members, i, member)
		if (json_integer_value(member) == c->config->node)
			rank = (int)i;
	return health_run_torch(c, (int)json_array_size(members), rank, addr ? addr : "127.0.0.1",
				js_int(group, "port", 0), end, "across", c->figures);
}

void health_join_round(struct checkup *c, const json_t *orders)
{
	const json_t *group = group_of(json_object_get(orders, "groups"), c->config->node);
	struct mono end = { clock_mono_now().ms + js_int(orders, "limit_ms", 0) };
	const char *how = js_str(orders, "how");
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *wrong = NULL;
	json_t *result = json_object();

	json_object_del(c->figures, "across");
	if (group && how)
		wrong = strcmp(how, "mpi") == 0 ? by_mpi(c, group, end) : by_torch(c, group, end);
	js_put(result, "well", json_boolean(!wrong));
	js_put_str(result, "words", wrong);
	js_put(c->told, "round", json_integer(js_int(orders, "round", 0)));
	js_put(c->told, "result", result);
	/* Node 0 takes silence for a failure; not being able to write is one. */
	if (c->config->node > 0)
		(void)!health_tell_own(c, "done", &ignored);
}

/* ---- choice of the test ----------------------------------------------------------------- */

/* True if ssh gets to that machine without a prompt. */
static bool reaches(struct checkup *c, char *ssh, const char *addr)
{
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *timeout = mem_format("ConnectTimeout=%d", SSH_SECONDS);
	AUTO(auto_free) char *to = mem_copy(addr);
	char *argv[] = { ssh,
			 (char[]){ "-o" },
			 (char[]){ "BatchMode=yes" },
			 (char[]){ "-o" },
			 timeout,
			 to,
			 (char[]){ "true" },
			 NULL };
	struct mono end = { clock_mono_now().ms + 2 * SSH_SECONDS * 1000 };

	return addr[0] != '-' &&
	       health_tool_run(&c->env, c->folder, argv, end, &result, &ignored) == 0 &&
	       !result.hung && result.status == 0;
}

static bool can_mpi(struct checkup *c, const json_t *nodes)
{
	AUTO(auto_free) char *mpirun = health_tool_find(&c->env, "mpirun");
	AUTO(auto_free) char *ssh = health_tool_find(&c->env, "ssh");
	AUTO(auto_free)
	char *tool = c->kind->collectives ? health_tool_find(&c->env, c->kind->collectives) : NULL;
	const json_t *told;
	size_t i;

	if (!mpirun || !ssh || !tool || c->cores < 1 || !health_checkup_meets_others(c))
		return false;
	json_array_foreach (nodes, i, told) {
		const char *addr = js_str(told, "addr");

		if (js_int(told, "cores", 0) != c->cores || !addr ||
		    (i > 0 && !reaches(c, ssh, addr)))
			return false;
	}
	return true;
}

static const char *find_way(struct checkup *c, const json_t *nodes)
{
	const json_t *told;
	bool torch = true;
	size_t i;

	if (can_mpi(c, nodes))
		return "mpi";
	json_array_foreach (nodes, i, told)
		torch = torch && js_bool(told, "torch", false);
	return torch ? "torch" : NULL;
}

/* ---- node 0's part --------------------------------------------------------------------- */

struct across {
	struct checkup *c;
	const json_t *nodes; /* reports of the nodes on themselves */
	const char *how;
	struct mono end;
	int64_t round;
	json_t *rounds;   /* for the report */
	json_t *good;     /* nodes of groups that did well */
	json_t *suspects; /* members of failed groups with two good halves */
	bool cut_short;   /* no time was left to find the node */
	bool gone;        /* a node has left: a node that is silent since may be well */
	bool common;      /* each node fails alone, too */
	char *words;      /* message of the first failure */
};

static json_t *group_new(const struct across *a, json_t *members)
{
	int first = (int)json_integer_value(json_array_get(members, 0));
	const json_t *told = json_array_get(a->nodes, (size_t)first);
	json_t *group = json_object(), *hosts = json_array();
	const json_t *member;
	size_t i;

	json_array_foreach (members, i, member) {
		const json_t *one = json_array_get(a->nodes, (size_t)json_integer_value(member));

		json_array_append(hosts, json_object_get(one, "addr"));
	}
	js_put(group, "first", json_integer(first));
	js_put_str(group, "addr", js_str(told, "addr"));
	/* Another port in each round: a process that hung in an earlier one may
	 * still hold its port. */
	js_put(group, "port", json_integer(js_int(told, "port", 0) + a->round % ROUNDS_MAX));
	js_put(group, "hosts", hosts);
	js_put(group, "members", members);
	return group;
}

static json_t *slice(const json_t *members, size_t from, size_t to)
{
	json_t *part = json_array();

	for (size_t i = from; i < to; i++)
		json_array_append(part, json_array_get(members, i));
	return part;
}

/* Returns why the group failed, NULL if it did well. The caller frees it. */
static char *failure_of_group(const json_t *results, const json_t *group)
{
	const json_t *member;
	size_t i;

	json_array_foreach (json_object_get(group, "members"), i, member) {
		long long node = (long long)json_integer_value(member);
		const json_t *told = json_array_get(results, (size_t)node);
		const json_t *result = json_object_get(told, "result");
		const char *words = js_str(result, "words");

		if (json_is_null(told))
			return mem_format("node %lld has not reported the result of the test",
					  node);
		if (!js_bool(result, "well", false))
			return mem_format("node %lld: %s", node, words ? words : "it failed");
	}
	return NULL;
}

static int64_t left_ms(const struct across *a)
{
	return a->end.ms - clock_mono_now().ms;
}

/* Returns the share of the time left for each of `rounds` rounds that may all hang. */
static int64_t share_ms(const struct across *a, int rounds)
{
	return left_ms(a) / rounds - (a->c->config->object_workspace ? LATE_REMOTE : 0);
}

static bool is_enough(const struct across *a, int64_t limit_ms)
{
	return limit_ms >= ROUND_LEAST &&
	       (!a->c->config->object_workspace || limit_ms >= LEAST_REMOTE) &&
	       limit_ms >= a->c->order->timeout_ms / LEAST_PARTS;
}

/* Returns the number of rounds to go, this one included: down to single nodes, and then
 * crosswise. */
static int rounds_to_go(const json_t *groups)
{
	const json_t *group;
	size_t most = 1, i;
	int rounds = 2;

	json_array_foreach (groups, i, group)
		if (json_array_size(json_object_get(group, "members")) > most)
			most = json_array_size(json_object_get(group, "members"));
	for (; most > 1; most = (most + 1) / 2)
		rounds++;
	return rounds;
}

/* Runs one round, with the groups side by side. Returns a new array of the groups that failed, each
 * with its "words". If the orders cannot be written, no node answers. */
static json_t *go_round(struct across *a, json_t *groups, int64_t limit_ms)
{
	json_auto_t *orders = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *results = NULL;
	json_t *failed = json_array(), *group;
	struct mono end;
	size_t i;

	a->round++;
	orders = json_pack("{s:s, s:I, s:s, s:I, s:O}", "do", "test", "round", (json_int_t)a->round,
			   "how", a->how, "limit_ms", (json_int_t)limit_ms, "groups", groups);
	(void)!health_tell_all(a->c, orders, &ignored);
	end.ms = clock_mono_now().ms + limit_ms +
		 (a->c->config->object_workspace ? SLACK_REMOTE : SLACK_MS);
	health_join_round(a->c, orders);
	results = health_gather(a->c, a->round, end);
	a->gone = health_peer_is_gone(a->c);
	json_array_foreach (groups, i, group) {
		AUTO(auto_free) char *words = failure_of_group(results, group);
		const json_t *member;
		size_t n;

		if (words) {
			js_put_str(group, "words", words);
			json_array_append(failed, group);
			if (!a->words)
				a->words = TAKE(words);
			continue;
		}
		json_array_foreach (json_object_get(group, "members"), n, member)
			json_array_append(a->good, (json_t *)member);
	}
	json_array_append_new(a->rounds,
			      json_pack("{s:i, s:i, s:I}", "groups", (int)json_array_size(groups),
					"failed", (int)json_array_size(failed), "limit_ms",
					(json_int_t)limit_ms));
	return failed;
}

/* Returns both halves of each failed group, with the index of that group. Groups of one node are
 * not halved: the node is found. */
static json_t *halve(const struct across *a, const json_t *failed)
{
	json_t *groups = json_array();
	const json_t *group;
	size_t i;

	json_array_foreach (failed, i, group) {
		const json_t *members = json_object_get(group, "members");
		size_t count = json_array_size(members);

		for (int half = 0; half < 2 && count > 1; half++) {
			json_t *part = group_new(a, half ? slice(members, count / 2, count)
							 : slice(members, 0, count / 2));

			js_put(part, "half_of", json_integer((json_int_t)i));
			json_array_append_new(groups, part);
		}
	}
	return groups;
}

/* Adds each node that fails alone. */
static void add_failed_singles(json_t *sick, const struct across *a, const json_t *failed)
{
	const json_t *group;
	size_t i;

	json_array_foreach (failed, i, group) {
		const json_t *members = json_object_get(group, "members");
		int node = (int)json_integer_value(json_array_get(members, 0));
		AUTO(auto_free)
		char *words = mem_format("fails the test of collectives alone, too: %s",
					 js_str(group, "words"));

		if (json_array_size(members) == 1)
			json_array_append_new(sick, health_sick_row(a->nodes, node, words));
	}
}

static bool is_in(const json_t *list, const json_t *value)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		if (json_equal(one, value))
			return true;
	return false;
}

/* Suspects the members of failed groups with two good halves: the fault lies between them. */
static void suspect_members(struct across *a, const json_t *failed, const json_t *halves)
{
	const json_t *group, *half;
	size_t i, n;

	json_array_foreach (failed, i, group) {
		const json_t *members = json_object_get(group, "members");
		bool is_found = json_array_size(members) < 2;

		json_array_foreach (halves, n, half)
			is_found |= js_int(half, "half_of", -1) == (json_int_t)i;
		if (!is_found)
			json_array_extend(a->suspects, (json_t *)members);
	}
}

/* Halves the failed groups until single nodes are left. */
static void search(struct across *a, json_t *failed, json_t *sick)
{
	while (json_array_size(failed) > 0 && !a->gone) {
		json_auto_t *groups = halve(a, failed);
		int64_t limit_ms = share_ms(a, rounds_to_go(groups));
		json_t *next;

		add_failed_singles(sick, a, failed);
		if (json_array_size(groups) == 0)
			break;
		if (a->round >= ROUNDS_MAX || !is_enough(a, limit_ms)) {
			a->cut_short = true;
			break;
		}
		next = go_round(a, groups, limit_ms);
		suspect_members(a, failed, next);
		json_decref(failed);
		failed = next;
	}
	json_decref(failed);
}

/* Pairs each suspect, fine alone but not together, with a node that is good with others: as many at
 * a time as there are such nodes. */
static json_t *pair_up(const struct across *a, size_t *from)
{
	json_t *groups = json_array();
	const json_t *good;
	size_t i;

	json_array_foreach (a->good, i, good) {
		json_t *suspect = json_array_get(a->suspects, *from);

		if (is_in(a->suspects, good))
			continue;
		if (!suspect)
			break;
		(*from)++;
		json_array_append_new(groups, group_new(a, json_pack("[O, O]", good, suspect)));
	}
	return groups;
}

static void add_failed_pairs(struct across *a, json_t *sick)
{
	size_t from = 0, count = json_array_size(a->suspects), at_once, i;

	while (from < count && !a->gone) {
		json_auto_t *groups = pair_up(a, &from);
		json_auto_t *failed = NULL;
		const json_t *group;
		int64_t limit_ms;

		at_once = json_array_size(groups);
		if (at_once == 0)
			return;
		limit_ms = share_ms(a, 1 + (int)((count - from + at_once - 1) / at_once));
		a->cut_short |= !is_enough(a, limit_ms);
		if (a->cut_short)
			return;
		failed = go_round(a, groups, limit_ms);
		json_array_foreach (failed, i, group) {
			const json_t *members = json_object_get(group, "members");
			long long good = json_integer_value(json_array_get(members, 0));
			long long node = json_integer_value(json_array_get(members, 1));
			AUTO(auto_free)
			char *words = mem_format(
				"fails the test of collectives with the good node %lld: %s", good,
				js_str(group, "words"));

			json_array_append_new(sick, health_sick_row(a->nodes, (int)node, words));
		}
	}
}

static json_t *all_members(const json_t *nodes)
{
	json_t *members = json_array();

	for (size_t i = 0; i < json_array_size(nodes); i++)
		json_array_append_new(members, json_integer((json_int_t)i));
	return members;
}

static void conclude(struct across *a, json_t *report, const json_t *sick)
{
	const json_t *figure = json_object_get(a->c->figures, "across");

	js_put(report, "rounds", json_incref(a->rounds));
	if (figure && !a->words)
		js_put(report, "figures", json_pack("{s:O}", ALL_REDUCE, figure));
	if (a->words && json_array_size(sick) == 0) {
		AUTO(auto_free)
		char *words = mem_format("an all-reduce between the %d nodes fails, and %s%s: %s",
					 a->c->config->nodes,
					 a->common ? "on each of them alone, too"
						   : "no single node is the cause",
					 a->cut_short ? " within health.timeout" : "", a->words);

		js_put_str(report, "failing", words);
	}
}

json_t *health_test_across(struct checkup *c, const json_t *nodes, struct mono end, json_t *sick)
{
	struct across a = { .c = c, .nodes = nodes, .end = end };
	json_t *report = json_object();
	json_auto_t *groups = json_array();

	a.how = find_way(c, nodes);
	if (!a.how) {
		js_put_str(report, "unchecked",
			   "between the nodes: neither mpirun with ssh nor a torch that can be "
			   "imported is present on all of them");
		return report;
	}
	js_put_str(report, "how", a.how);
	a.rounds = json_array();
	a.good = json_array();
	a.suspects = json_array();
	json_array_append_new(groups, group_new(&a, all_members(nodes)));
	/* Over all nodes, and cold; a hang must leave time to find out which node it is. */
	search(&a, go_round(&a, groups, left_ms(&a) / 2), sick);
	add_failed_pairs(&a, sick);
	/* If every node fails alone, the image is to blame, or something else they have in
	 * common. */
	a.common = json_array_size(sick) == json_array_size(nodes);
	if (a.common)
		json_array_clear(sick);
	conclude(&a, report, sick);
	json_decref(a.rounds);
	json_decref(a.good);
	json_decref(a.suspects);
	free(a.words);
	return report;
}
