/* Node 0's judgement on the parts of all nodes. See checkpoint_coordinator.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/checkpoint/candidate.h"
#include "jobs/node/checkpoints/checkpoint_coordinator_internal.h"

/* Time for which a service that is away is tried at the end. */
#define AWAY_MS ((int64_t)10 * 60 * 1000)
/* A leaving node may have little time: for LEAVING_MS the others are looked at every
 * LEAVING_PAUSE_MS. */
#define LEAVING_MS       ((int64_t)60 * 1000)
#define LEAVING_PAUSE_MS 1000
/* The wait for a node that has said nothing at all: its command has probably never begun, or all of
 * its words are lost. */
#define UNHEARD_MS 20000

static const json_t *parts_of(const struct checkpoint_coordinator *coordinator, int node)
{
	return node == 0 ? coordinator->parts
			 : json_object_get(coordinator->peers[node].state, "parts");
}

/* Returns the generation of the node's part of the checkpoint, 0 if it has none. */
static int64_t generation_of(const struct checkpoint_coordinator *coordinator, int node,
			     const char *name)
{
	return js_int(json_object_get(parts_of(coordinator, node), name), "generation", 0);
}

static bool said_none(const struct checkpoint_coordinator *coordinator, int node, const char *name)
{
	return json_object_get(node == 0 ? coordinator->none
					 : json_object_get(coordinator->peers[node].state, "none"),
			       name);
}

/* True if the node has said whether it has a part of the checkpoint. */
static bool has_answered(const struct checkpoint_coordinator *coordinator, int node,
			 const char *name)
{
	const json_t *state = coordinator->peers[node].state;

	if (generation_of(coordinator, node, name) > 0)
		return true;
	return (node == 0 ? coordinator->last : js_bool(state, "last", false)) ||
	       said_none(coordinator, node, name);
}

/* True if the parts are those that were judged. A part that its node no longer lists is
 * unchanged. */
static bool is_same(const struct checkpoint_coordinator *coordinator, const struct joint *joint)
{
	for (int i = 0; i < coordinator->config->nodes; i++) {
		int64_t generation = generation_of(coordinator, i, joint->name);

		if (generation > 0 && generation != joint->seen[i])
			return false;
	}
	return joint->decided;
}

static struct joint *joint_find(struct checkpoint_coordinator *coordinator, const char *name)
{
	for (size_t i = 0; i < coordinator->joint_count; i++)
		if (strcmp(coordinator->joints[i].name, name) == 0)
			return &coordinator->joints[i];
	coordinator->joints = mem_grow(coordinator->joints, coordinator->joint_count + 1,
				       sizeof *coordinator->joints);
	coordinator->joints[coordinator->joint_count] = (struct joint){
		.name = mem_copy(name),
		.seen = mem_zero((size_t)coordinator->config->nodes, sizeof(int64_t)),
	};
	return &coordinator->joints[coordinator->joint_count++];
}

static void set_why(struct joint *joint, char *why)
{
	free(joint->why);
	joint->why = why;
}

/* Reads the notes of all nodes with a part. Returns 1 with the notes, 0 if not all can be read yet,
 * -1 with an error. */
static int read_notes(struct checkpoint_coordinator *coordinator, const char *name, json_t **ret,
		      struct err **err)
{
	json_auto_t *notes = json_array();

	for (int i = 0; i < coordinator->config->nodes; i++) {
		int64_t generation = generation_of(coordinator, i, name);
		json_t *note = NULL;
		int there;

		if (generation == 0)
			continue;
		there = checkpoint_part_read(coordinator->root, name, &coordinator->life, i, &note,
					     err);
		if (there <= 0)
			return there;
		json_array_append_new(notes, note);
		/* The node has a newer generation already, and will report it. */
		if (js_int(note, "generation", 0) != generation || js_int(note, "node", -1) != i)
			return 0;
	}
	*ret = TAKE(notes);
	return 1;
}

static int withdraw(struct checkpoint_coordinator *coordinator, struct joint *joint,
		    struct err **err)
{
	if (checkpoint_mark_withdraw(coordinator->root, joint->name, err) < 0)
		return -1;
	joint->marked = false;
	return 0;
}

/* Marks a complete checkpoint. Returns 1 if it is marked now, 0 if it already was or must wait,
 * -1 with an error. */
static int mark(struct checkpoint_coordinator *coordinator, struct joint *joint,
		const struct ckpt_join *join, struct err **err)
{
	int held = coordinator->hooks.holds(coordinator->hooks.arg), done;

	if (held <= 0) {
		if (held < 0)
			return err_set(err, EXIT_UNREACHABLE,
				       "cannot mark '%s': the claim in the workspace cannot be "
				       "read",
				       joint->name);
		return 0;
	}
	done = checkpoint_join_mark(coordinator->root, join, &coordinator->life.owner,
				    clock_utc_now(), err);
	if (done < 0)
		return -1;
	joint->marked = true;
	set_why(joint, NULL);
	if (done > 0) {
		AUTO(auto_free) char *url = checkpoint_root_url(coordinator->root, joint->name);

		coordinator->hooks.marked(coordinator->hooks.arg, join->ckpt.step, url);
	}
	return done;
}

/* Called once all nodes have answered. Returns 1 if the checkpoint is marked now, 0 if not,
 * -1 with an error. */
static int decide(struct checkpoint_coordinator *coordinator, struct joint *joint, struct err **err)
{
	AUTO(checkpoint_join_release) struct ckpt_join join = { 0 };
	json_auto_t *notes = NULL;
	int done;

	done = read_notes(coordinator, joint->name, &notes, err);
	if (done <= 0)
		return done;
	if (checkpoint_join(coordinator->root, coordinator->source, coordinator->kind, joint->name,
			    notes, &join, err) < 0)
		return -1;
	done = 0;
	joint->conflict = join.conflict;
	if (join.ckpt.complete) {
		done = mark(coordinator, joint, &join, err);
	} else {
		set_why(joint, mem_copy(join.ckpt.why ? join.ckpt.why : "not complete"));
		/* A mark from an earlier life of the job would describe other files. */
		done = withdraw(coordinator, joint, err);
	}
	if (done < 0)
		return -1;
	for (int i = 0; i < coordinator->config->nodes; i++)
		joint->seen[i] = generation_of(coordinator, i, joint->name);
	joint->changes = coordinator->changes;
	/* Without the claim nothing is marked and nothing decided. */
	joint->decided = joint->marked || !join.ckpt.complete;
	return done;
}

/* Returns a text that names the nodes that have not answered yet, NULL if all have. The
 * caller frees it. */
static char *unheard(const struct checkpoint_coordinator *coordinator, const char *name)
{
	int first = -1, count = 0;

	for (int i = 0; i < coordinator->config->nodes; i++)
		if (!has_answered(coordinator, i, name)) {
			first = first < 0 ? i : first;
			count++;
		}
	if (count == 0)
		return NULL;
	if (count == 1)
		return mem_format("node %d has not reported its part", first);
	return mem_format("node %d and %d more have not reported their parts", first, count - 1);
}

static bool is_marked(const struct checkpoint_coordinator *coordinator, const char *name)
{
	for (size_t i = 0; i < coordinator->joint_count; i++)
		if (strcmp(coordinator->joints[i].name, name) == 0)
			return coordinator->joints[i].marked;
	return false;
}

/* True if the node has a part of a later checkpoint of the same series, or none of one that is
 * known to be whole without it: then it has none of this one either. A checkpoint that is not whole
 * yet proves nothing: the node may have been about to save that, too. */
static bool let_one_pass(const struct checkpoint_coordinator *coordinator, int node,
			 const char *name, const json_t *names)
{
	int64_t step = js_int(json_object_get(names, name), "step", 0);
	const char *other;
	json_t *part;

	json_object_foreach ((json_t *)names, other, part) {
		int64_t its = js_int(part, "step", 0);

		if (!sibling_check_related(name, other) || its == step)
			continue;
		if (generation_of(coordinator, node, other) > 0) {
			if (its > step)
				return true;
		} else if (is_marked(coordinator, other) || said_none(coordinator, node, other)) {
			return true;
		}
	}
	return false;
}

/* Returns a text that names a node with a command that was cut off, and may have been about to save
 * its part; NULL if there is none. The caller frees it. */
static char *cut_off(const struct checkpoint_coordinator *coordinator, const char *name,
		     const json_t *names)
{
	for (int i = 0; i < coordinator->config->nodes; i++) {
		const json_t *state = coordinator->peers[i].state;
		bool cut = i == 0 ? coordinator->cut : js_bool(state, "cut", false);

		if (cut && generation_of(coordinator, i, name) == 0 &&
		    !said_none(coordinator, i, name) && !let_one_pass(coordinator, i, name, names))
			return mem_format("node %d was disconnected before it saved any part", i);
	}
	return NULL;
}

/* Returns a text if a node reports that its part is not whole, else NULL. The caller frees it. */
static char *damage_of(const struct checkpoint_coordinator *coordinator, const char *name)
{
	for (int i = 0; i < coordinator->config->nodes; i++) {
		const json_t *bad = i == 0 ? coordinator->bad
					   : json_object_get(coordinator->peers[i].state, "bad");
		const char *why = js_str(bad, name);

		if (why)
			return mem_format("on node %d %s", i, why);
	}
	return NULL;
}

/* Returns 1 if the checkpoint is marked now, 0 if not, -1 with an error. */
static int update_one(struct checkpoint_coordinator *coordinator, const char *name,
		      const json_t *names, struct err **err)
{
	struct joint *joint = joint_find(coordinator, name);
	char *missing = unheard(coordinator, name), *damage;
	bool same = is_same(coordinator, joint);

	/* The files are no longer those that were marked. */
	if (joint->marked && !same && withdraw(coordinator, joint, err) < 0) {
		free(missing);
		return -1;
	}
	if (!missing && !joint->marked)
		missing = cut_off(coordinator, name, names);
	joint->unheard = missing && !joint->marked;
	if (missing) {
		if (joint->unheard) {
			set_why(joint, missing);
			json_object_set_new(coordinator->asked, name, json_true());
		} else {
			free(missing);
		}
		return 0;
	}
	json_object_del(coordinator->asked, name);
	damage = damage_of(coordinator, name);
	if (damage) {
		set_why(joint, damage);
		joint->decided = false;
		return joint->marked ? withdraw(coordinator, joint, err) : 0;
	}
	/* A missing pointer may yet appear in our own folder, so a change there is judged again. */
	if (same && (joint->marked || joint->conflict || joint->changes == coordinator->changes))
		return 0;
	return decide(coordinator, joint, err);
}

/* Returns a new object with every name that a node has a part of. */
static json_t *names_of(const struct checkpoint_coordinator *coordinator)
{
	json_t *names = json_object();

	for (int i = 0; i < coordinator->config->nodes; i++) {
		const char *name;
		json_t *part;

		json_object_foreach ((json_t *)parts_of(coordinator, i), name, part)
			if (!json_object_get(coordinator->removed, name) && !strchr(name, '/') &&
			    generation_of(coordinator, i, name) > 0)
				json_object_set(names, name, part);
	}
	return names;
}

int checkpoint_coordinator_join(struct checkpoint_coordinator *coordinator)
{
	json_auto_t *names = names_of(coordinator);
	const char *name;
	json_t *part;
	int marked = 0;

	json_object_foreach (names, name, part) {
		AUTO(err_freep) struct err *why = NULL;
		struct joint *joint;
		int done = update_one(coordinator, name, names, &why);

		marked += done > 0;
		joint = joint_find(coordinator, name);
		joint->failed = done < 0;
		if (done < 0)
			set_why(joint, err_format(why));
		checkpoint_coordinator_trouble(coordinator, &why);
	}
	return marked;
}

int64_t checkpoint_coordinator_newest(const struct checkpoint_coordinator *coordinator)
{
	json_auto_t *names = names_of(coordinator);
	int64_t newest = -1;
	const char *name;
	json_t *part;

	json_object_foreach (names, name, part)
		if (js_int(part, "step", -1) > newest)
			newest = js_int(part, "step", -1);
	return newest;
}

/* ---- the end ---- */

static bool is_silent(const struct checkpoint_coordinator *coordinator, int node, struct mono now)
{
	const struct coordinator_peer *peer = &coordinator->peers[node];
	int64_t most = SILENT_BEATS * coordinator->config->heartbeat_ms;
	int64_t since =
		peer->at.ms > coordinator->last_at.ms ? peer->at.ms : coordinator->last_at.ms;

	if (since < coordinator->awake.ms)
		since = coordinator->awake.ms;
	if (!peer->state && most > UNHEARD_MS)
		most = UNHEARD_MS;
	return now.ms - since > most;
}

/* If machines sleep together, or processes are stopped together, the first to go on would take all
 * others for dead. A long gap between rounds therefore restarts the count of silence. */
static void see_whether_we_slept(struct checkpoint_coordinator *coordinator, struct mono now)
{
	if (now.ms - coordinator->looked.ms > SILENT_BEATS / 2 * coordinator->config->heartbeat_ms)
		coordinator->awake = now;
	coordinator->looked = now;
}

bool checkpoint_coordinator_waiting(struct checkpoint_coordinator *coordinator)
{
	struct mono now = clock_mono_now();
	int64_t most = coordinator->config->look_ms;

	see_whether_we_slept(coordinator, now);
	if (now.ms - coordinator->last_at.ms < LEAVING_MS && LEAVING_PAUSE_MS < most)
		most = LEAVING_PAUSE_MS;
	coordinator->pause_ms = 2 * coordinator->pause_ms < most ? 2 * coordinator->pause_ms : most;
	/* A service that is away usually comes back. */
	if (coordinator->away)
		return now.ms - coordinator->last_at.ms < AWAY_MS;
	/* A node without a part may be about to save one, whatever it said; only its
	 * "last" ends the wait. */
	for (int i = 1; i < coordinator->config->nodes && coordinator->joint_count > 0; i++)
		if (!js_bool(coordinator->peers[i].state, "last", false) &&
		    !is_silent(coordinator, i, now))
			return true;
	return false;
}

bool checkpoint_coordinator_unmarked(const struct checkpoint_coordinator *coordinator, size_t n,
				     struct coordinator_unmarked *ret)
{
	for (size_t i = 0; i < coordinator->joint_count; i++) {
		const struct joint *joint = &coordinator->joints[i];

		if (joint->marked || !joint->why || n-- > 0)
			continue;
		*ret = (struct coordinator_unmarked){ .name = joint->name,
						      .why = joint->why,
						      .lost = joint->conflict || joint->unheard ||
							      joint->failed };
		if (joint->unheard)
			ret->class = "transient-infra";
		else if (joint->conflict && !joint->failed)
			ret->class = "user-config";
		return true;
	}
	return false;
}
