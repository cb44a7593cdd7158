/* The coordinators of all nodes in one process, which take turns when the test says so: for tests
 * of what nodes with folders of their own tell each other about a checkpoint. */
#ifndef STK_TESTS_UNIT_NODE_COORDINATOR_SIDES_H
#define STK_TESTS_UNIT_NODE_COORDINATOR_SIDES_H

#include "tests/unit/node/ticks.h"

#include "jobs/checkpoint/shards.h"
#include "jobs/node/checkpoints/checkpoint_coordinator.h"

#define NODES    3
#define HEART_MS 10
/* A time so long that no look is due by itself. */
#define LATER_MS ((int64_t)3600 * 1000)

struct side {
	struct agent_config config;
	struct store *store;
	struct ckpt_root root;
	struct checkpoint_coordinator *coordinator;
	struct coordinator_own own;
	int held;       /* the claim's answer */
	json_t *marked; /* steps */
	char *trouble;  /* the last one */
};

static UNUSED int say_held(void *arg)
{
	return ((struct side *)arg)->held;
}

static UNUSED void note_marked(void *arg, int64_t step, const char *url)
{
	struct side *side = arg;

	assert_has(url, "/far/");
	json_array_append_new(side->marked, json_integer((json_int_t)step));
}

static UNUSED void note_trouble(void *arg, const struct err *why)
{
	struct side *side = arg;

	free(side->trouble);
	side->trouble = err_format(why);
}

/* Node `node` of three, with its own folder, whose heart beats each ten milliseconds. */
static UNUSED void side_open(struct side *side, const struct place *place, int node,
			     int64_t look_ms)
{
	AUTO(auto_free) char *rank = mem_format("%d", node);
	AUTO(auto_free) char *url = mem_format("dir:%s/far", place->root);
	const struct coordinator_hooks hooks = { side, say_held, note_marked, note_trouble };
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_for(place, "true");

	*side = (struct side){ .held = 1, .marked = json_array(), .own = { .quiet = true } };
	js_put(order, "nodes", json_integer(NODES));
	js_put(order, "heartbeat_ms", json_integer(HEART_MS));
	js_put(order, "look_ms", json_integer(look_ms));
	load(&side->config, place, order, rank);
	must(store_open(url, &side->store, &err), &err);
	side->root = (struct ckpt_root){
		.path = "", .attempt = 1, .nonce = NONCE, .store = side->store
	};
	side->coordinator = checkpoint_coordinator_new(&side->config, &side->root,
						       checkpoint_kind_find("files"),
						       side->config.checkpoint, &hooks);
}

static UNUSED void side_close(struct side *side)
{
	checkpoint_coordinator_freep(&side->coordinator);
	store_freep(&side->store);
	json_decref(side->marked);
	free(side->trouble);
	agent_config_release(&side->config);
}

static UNUSED void open_all(struct side sides[NODES], const struct place *place)
{
	for (int i = 0; i < NODES; i++)
		side_open(&sides[i], place, i, 1);
}

static UNUSED void close_all(struct side sides[NODES])
{
	for (int i = 0; i < NODES; i++)
		side_close(&sides[i]);
}

/* Saves a file of the node beneath this name, with the name of the file its own. */
static UNUSED void save(const struct side *side, const char *name, const char *file,
			const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/%s/%s", side->config.checkpoint, name, file);

	write_file(path, text, 0600);
}

/* Sends what is saved there. */
static UNUSED void send(struct side *side, const char *name)
{
	AUTO(auto_free) char *path = fs_join(side->config.checkpoint, name);
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt ckpt = { 0 };

	must(checkpoint_prove(path, checkpoint_kind_find("files"), &ckpt, &err), &err);
	assert_int_equal(checkpoint_coordinator_send(side->coordinator, &ckpt, NULL, NULL, &err),
			 1);
	checkpoint_release(&ckpt);
}

static UNUSED void save_and_send(struct side *side, const char *name)
{
	AUTO(auto_free) char *file = mem_format("shard-%d.bin", side->config.node);

	save(side, name, file, "part");
	send(side, name);
}

/* A round at once, whether or not it is due. */
static UNUSED int go(struct side *side)
{
	struct coordinator_own now = side->own;

	now.draining = true;
	return checkpoint_coordinator_round(side->coordinator, &now);
}

/* Returns how many checkpoints node 0 has marked after all have spoken. */
static UNUSED int go_all(struct side sides[NODES])
{
	for (int i = 1; i < NODES; i++)
		(void)go(&sides[i]);
	return go(&sides[0]);
}

/* Returns what the node has published: a new reference. */
static UNUSED json_t *told_by(const struct place *place, int node)
{
	AUTO(auto_free) char *path = mem_format("%s/far/shards/node-%d.json", place->root, node);
	AUTO(err_freep) struct err *err = NULL;
	json_t *told = NULL;

	must(js_load(path, 1 << 20, &told, &err), &err);
	return told;
}

static UNUSED bool tells(const struct place *place, int node, const char *list, const char *name)
{
	json_auto_t *told = told_by(place, node);

	return json_object_get(json_object_get(told, list), name);
}

/* Rounds of that node until it has told it: what takes a few beats. */
static UNUSED void go_until_told(const struct place *place, struct side *side, const char *list,
				 const char *name)
{
	for (int i = 0; i < LOOKS; i++) {
		(void)go(side);
		if (tells(place, side->config.node, list, name))
			return;
		ticks_ms++;
	}
	fail_msg("node %d never tells '%s' of '%s'", side->config.node, list, name);
}

static UNUSED bool is_marked(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = mem_format("%s/far/marks/%s" MARK_SUFFIX, place->root, name);

	return fs_exists(path);
}

static UNUSED struct coordinator_unmarked only_unmarked(const struct side *side)
{
	struct coordinator_unmarked one, another;

	assert_true(checkpoint_coordinator_unmarked(side->coordinator, 0, &one));
	assert_false(checkpoint_coordinator_unmarked(side->coordinator, 1, &another));
	return one;
}

#endif
