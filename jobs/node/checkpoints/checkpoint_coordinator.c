/* Per-node side of a checkpoint that several nodes have parts of. See checkpoint_coordinator.h. */
#include "jobs/node/checkpoints/checkpoint_coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/node/checkpoints/checkpoint_coordinator_internal.h"
#include "jobs/store/store_json.h"

#define FIRST_PAUSE_MS 250

bool checkpoint_coordinator_needed(const struct agent_config *config)
{
	const struct order *order = config->order;
	const char *root = order->checkpoint.root;

	return config->nodes > 1 && !config->scratch && root && *root && root[0] != '/' &&
	       !order->checkpoint_dir && !order->shared_checkpoints &&
	       !(order->checkpoint.sync && strcmp(order->checkpoint.sync, "none") == 0);
}

struct checkpoint_coordinator *checkpoint_coordinator_new(const struct agent_config *config,
							  const struct ckpt_root *root,
							  const struct ckpt_kind *kind,
							  const char *source,
							  const struct coordinator_hooks *hooks)
{
	struct checkpoint_coordinator *coordinator = mem_zero(1, sizeof *coordinator);

	*coordinator = (struct checkpoint_coordinator){
		.config = config,
		.root = root,
		.kind = kind,
		.source = source,
		.hooks = *hooks,
		.life = { { config->run, config->nonce, config->attempt, config->order->instance,
			    config->order->world_size },
			  config->token,
			  config->restart },
		.parts = json_object(),
		.none = json_object(),
		.asked = json_object(),
		.removed = json_object(),
		.asked_at = json_object(),
		.tags = json_object(),
		.peers = mem_zero((size_t)config->nodes, sizeof *coordinator->peers),
	};
	return coordinator;
}

static void joint_release(struct joint *joint)
{
	free(joint->name);
	free(joint->seen);
	free(joint->why);
}

void checkpoint_coordinator_freep(struct checkpoint_coordinator **coordinator)
{
	struct checkpoint_coordinator *s = *coordinator;

	if (!s)
		return;
	for (int i = 0; i < s->config->nodes; i++)
		json_decref(s->peers[i].state);
	for (size_t i = 0; i < s->joint_count; i++)
		joint_release(&s->joints[i]);
	json_decref(s->parts);
	json_decref(s->none);
	json_decref(s->asked);
	json_decref(s->removed);
	json_decref(s->bad);
	json_decref(s->asked_at);
	json_decref(s->tags);
	free(s->peers);
	free(s->joints);
	free(s->told);
	free(s);
	*coordinator = NULL;
}

/* ---- telling ---- */

static char *state_text(const struct checkpoint_coordinator *coordinator)
{
	json_auto_t *state = json_object();

	js_put(state, "v", json_integer(1));
	checkpoint_life_put(&coordinator->life, state);
	js_put(state, "node", json_integer(coordinator->config->node));
	js_put(state, "parts", json_incref(coordinator->parts));
	js_put(state, "none", json_incref(coordinator->none));
	if (json_object_size(coordinator->bad))
		js_put(state, "bad", json_incref(coordinator->bad));
	js_put(state, "last", json_boolean(coordinator->last));
	js_put(state, "cut", json_boolean(coordinator->cut));
	js_put(state, "moved", json_integer((json_int_t)coordinator->moved));
	if (coordinator->unanswered)
		js_put(state, "changes", json_integer((json_int_t)coordinator->changes));
	if (coordinator->beats)
		js_put(state, "beats", json_integer((json_int_t)coordinator->beats));
	if (coordinator->config->node == 0) {
		js_put(state, "asked", json_incref(coordinator->asked));
		js_put(state, "removed", json_incref(coordinator->removed));
	}
	return js_line(state);
}

/* Publishes this node's state if it changed; a failed write is tried again later. */
static void publish_state(struct checkpoint_coordinator *coordinator)
{
	AUTO(auto_free)
	char *key = mem_format("%s" SHARDS_PREFIX "node-%d.json", coordinator->root->path,
			       coordinator->config->node);
	AUTO(auto_free) char *text = state_text(coordinator);
	AUTO(err_freep) struct err *why = NULL;

	if (coordinator->told && strcmp(coordinator->told, text) == 0)
		return;
	if (store_put(coordinator->root->store, key, text, strlen(text), &why) < 0) {
		checkpoint_coordinator_trouble(coordinator, &why);
		return;
	}
	free(coordinator->told);
	coordinator->told = TAKE(text);
}

void checkpoint_coordinator_moved(struct checkpoint_coordinator *coordinator)
{
	struct mono now = clock_mono_now();

	if (now.ms - coordinator->moved_at.ms < coordinator->config->look_ms)
		return;
	coordinator->moved_at = now;
	coordinator->moved = store_traffic();
	publish_state(coordinator);
}

/* Keeps at most PARTS_TOLD names; those of the lowest steps are removed. */
static void trim(json_t *parts)
{
	while (json_object_size(parts) > PARTS_TOLD) {
		const char *name, *lowest = NULL;
		int64_t step = INT64_MAX;
		json_t *part;

		json_object_foreach (parts, name, part) {
			if (js_int(part, "step", 0) < step) {
				step = js_int(part, "step", 0);
				lowest = name;
			}
		}
		json_object_del(parts, lowest ? lowest : "");
		if (!lowest)
			return;
	}
}

int checkpoint_coordinator_send(struct checkpoint_coordinator *coordinator, const struct ckpt *ckpt,
				ckpt_copy_fn fn, void *arg, struct err **err)
{
	const char *sent = js_str(coordinator->tags, ckpt->name);
	json_auto_t *note = NULL;
	json_t *part;
	int done;

	/* Unchanged since it was sent: the last pass offers every checkpoint once more. */
	if (sent && strcmp(sent, ckpt->tag) == 0)
		return 1;
	done = checkpoint_part_send(coordinator->root, ckpt, &coordinator->life,
				    coordinator->config->node, fn, arg, &note, err);
	if (done < 0)
		return -1;
	if (done == 0) {
		AUTO(err_freep) struct err *why = NULL;

		err_set(&why, EXIT_REFUSED, "cannot copy '%s': %s", ckpt->path,
			js_str(note, "trouble"));
		checkpoint_coordinator_trouble(coordinator, &why);
	}
	part = json_object();
	js_put(part, "generation", json_incref(json_object_get(note, "generation")));
	js_put(part, "step", json_integer(ckpt->step));
	json_object_del(coordinator->parts, ckpt->name);
	json_object_set_new(coordinator->parts, ckpt->name, part);
	json_object_del(coordinator->none, ckpt->name);
	js_put_str(coordinator->tags, ckpt->name, ckpt->tag);
	trim(coordinator->parts);
	/* The next look publishes it; another node may already wait for it. */
	coordinator->next.ms = 0;
	return 1;
}

/* ---- hearing ---- */

static void read_state(struct checkpoint_coordinator *coordinator, int node, const char *tag,
		       struct err **why)
{
	AUTO(auto_free)
	char *key = mem_format("%s" SHARDS_PREFIX "node-%d.json", coordinator->root->path, node);
	struct coordinator_peer *peer = &coordinator->peers[node];
	json_auto_t *state = NULL;
	char now[STORE_TAG];

	if (tag && strcmp(tag, peer->tag) == 0)
		return;
	if (store_json_get(coordinator->root->store, key, STATE_MAX, &state, now, why) <= 0 ||
	    strcmp(now, peer->tag) == 0)
		return;
	memcpy(peer->tag, now, sizeof now);
	if (!checkpoint_life_is(&coordinator->life, state))
		return;
	json_decref(peer->state);
	peer->state = TAKE(state);
	peer->at = clock_mono_now();
}

struct checkpoint_coordinator_listed {
	struct checkpoint_coordinator *coordinator;
	size_t prefix;
	json_t *tags;
};

static int note_listed(void *arg, const struct store_object *object, struct err **err)
{
	struct checkpoint_coordinator_listed *listed = arg;

	(void)err;
	js_put_str(listed->tags, object->key + listed->prefix, object->tag);
	return 0;
}

/* A single listing shows which of the other nodes have a new state. */
static void read_states(struct checkpoint_coordinator *coordinator)
{
	AUTO(auto_free)
	char *prefix = mem_format("%s" SHARDS_PREFIX "node-", coordinator->root->path);
	json_auto_t *tags = json_object();
	struct checkpoint_coordinator_listed listed = { coordinator, strlen(prefix), tags };
	AUTO(err_freep) struct err *why = NULL;

	if (store_list(coordinator->root->store, prefix, note_listed, &listed, &why) < 0) {
		checkpoint_coordinator_trouble(coordinator, &why);
		return;
	}
	for (int i = 1; i < coordinator->config->nodes; i++) {
		AUTO(auto_free) char *name = mem_format("%d.json", i);
		const char *tag = js_str(tags, name);

		if (tag)
			read_state(coordinator, i, tag, &why);
		checkpoint_coordinator_trouble(coordinator, &why);
	}
}

/* ---- answering ---- */

static void answer_one(struct checkpoint_coordinator *coordinator, const char *name,
		       const struct coordinator_own *own)
{
	AUTO(auto_free) char *path = fs_join(coordinator->source, name);
	int64_t now = clock_mono_now().ms, since = js_int(coordinator->asked_at, name, 0);

	if (json_object_get(coordinator->parts, name) || json_object_get(coordinator->none, name))
		return;
	if (!since)
		js_put(coordinator->asked_at, name, json_integer(now));
	if (own->quiet && since && !fs_exists(path) &&
	    now - since >= SETTLED * coordinator->config->heartbeat_ms) {
		json_object_set_new(coordinator->none, name, json_true());
		while (json_object_size(coordinator->none) > PARTS_TOLD)
			json_object_del(coordinator->none,
					json_object_iter_key(json_object_iter(coordinator->none)));
		return;
	}
	coordinator->unanswered = true;
}

/* Answers for each name that is asked for whether this node has a part of it. */
static void answer(struct checkpoint_coordinator *coordinator, const struct coordinator_own *own)
{
	const json_t *asked = coordinator->config->node == 0
				      ? coordinator->asked
				      : json_object_get(coordinator->peers[0].state, "asked");
	const char *name;
	json_t *value;

	coordinator->unanswered = false;
	coordinator->changes = own->changes;
	json_object_foreach ((json_t *)asked, name, value)
		answer_one(coordinator, name, own);
}

/* Removes this node's parts of checkpoints that node 0 no longer keeps. */
static void clear_removed(struct checkpoint_coordinator *coordinator)
{
	const json_t *removed = json_object_get(coordinator->peers[0].state, "removed");
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)removed, name, value) {
		AUTO(auto_free) char *path = fs_join(coordinator->source, name);
		AUTO(err_freep) struct err *why = NULL;

		if (!json_object_get(coordinator->parts, name) || strchr(name, '/'))
			continue;
		json_object_del(coordinator->parts, name);
		if (fs_remove_tree(path, &why) < 0)
			checkpoint_coordinator_trouble(coordinator, &why);
	}
}

/* ---- rounds ---- */

static void note_bad(struct checkpoint_coordinator *coordinator, const json_t *bad)
{
	json_decref(coordinator->bad);
	coordinator->bad = json_deep_copy(bad);
}

int checkpoint_coordinator_round(struct checkpoint_coordinator *coordinator,
				 const struct coordinator_own *own)
{
	const struct agent_config *config = coordinator->config;
	struct mono now = clock_mono_now();
	AUTO(err_freep) struct err *why = NULL;
	int marked = 0;

	if (now.ms < coordinator->next.ms && !own->draining && !coordinator->last)
		return 0;
	coordinator->next.ms = now.ms + config->look_ms;
	coordinator->away = false;
	note_bad(coordinator, own->bad);
	if (config->node > 0) {
		read_state(coordinator, 0, NULL, &why);
		checkpoint_coordinator_trouble(coordinator, &why);
		coordinator->beats += js_bool(coordinator->peers[0].state, "last", false);
		clear_removed(coordinator);
		answer(coordinator, own);
	} else {
		read_states(coordinator);
		answer(coordinator, own);
		marked = checkpoint_coordinator_join(coordinator);
	}
	/* Another node waits for our answer. */
	if (coordinator->unanswered && SETTLED * config->heartbeat_ms < config->look_ms)
		coordinator->next.ms = now.ms + SETTLED * config->heartbeat_ms;
	publish_state(coordinator);
	return marked;
}

bool checkpoint_coordinator_finish(struct checkpoint_coordinator *coordinator, const json_t *bad,
				   bool cut)
{
	note_bad(coordinator, bad);
	coordinator->away = false;
	if (!coordinator->last) {
		coordinator->last = true;
		coordinator->cut = cut;
		coordinator->last_at = clock_mono_now();
		coordinator->pause_ms = FIRST_PAUSE_MS;
	}
	publish_state(coordinator);
	return !coordinator->away;
}

int64_t checkpoint_coordinator_pause(const struct checkpoint_coordinator *coordinator)
{
	return coordinator->pause_ms;
}

void checkpoint_coordinator_removed(struct checkpoint_coordinator *coordinator, const char *name)
{
	AUTO(err_freep) struct err *why = NULL;

	json_object_del(coordinator->parts, name);
	json_object_set_new(coordinator->removed, name, json_true());
	while (json_object_size(coordinator->removed) > PARTS_TOLD)
		json_object_del(coordinator->removed,
				json_object_iter_key(json_object_iter(coordinator->removed)));
	for (size_t i = 0; i < coordinator->joint_count; i++)
		if (strcmp(coordinator->joints[i].name, name) == 0) {
			joint_release(&coordinator->joints[i]);
			coordinator->joints[i] = coordinator->joints[--coordinator->joint_count];
			break;
		}
	if (checkpoint_parts_remove(coordinator->root, name, &why) < 0)
		checkpoint_coordinator_trouble(coordinator, &why);
}
