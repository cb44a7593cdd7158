/* Child's side of checkpointer.h: marks, copies and removes checkpoints, and uploads
 * graphs to the cache. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/cache_push.h"
#include "jobs/node/checkpoints/checkpoint_coordinator.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/checkpoints/checkpointer_internal.h"
#include "jobs/node/checkpoints/passed.h"
#include "jobs/node/orders.h"
#include "jobs/store/store.h"

/* Beats without a change after which a checkpoint has settled. */
#define QUIET_BEATS 3
/* Settle time while a drain waits for the mark and the format vouches for it, and the interval of
 * looks then. Only in a folder of this node's own: elsewhere a look is a request. */
#define DRAIN_QUIET_MS 300
#define DRAIN_BEAT_MS  100
/* Beats without a change after which an incomplete checkpoint is no longer being written. */
#define UNCHANGED_BEATS 15
#define TELL_MS         1000
/* While a service is away at the end, the last pass is repeated for LAST_MS. */
#define LAST_MS       ((int64_t)10 * 60 * 1000)
#define LAST_PAUSE_MS 5000

bool checkpointer_has_checkpoints(const struct agent_config *config)
{
	const char *root = config->order->checkpoint.root;

	return (config->node == 0 || checkpoint_coordinator_needed(config)) && !config->scratch &&
	       root && *root;
}

static void say_news(const struct work *work, json_t *news)
{
	news_say(work->news_fd, news);
}

/* Reports an error, but not the same one with every beat. */
static void say_trouble(struct work *work, const struct err *why)
{
	char *text = err_format(why);
	json_t *news;

	work->away |= why->code == EXIT_UNREACHABLE;
	work->code = why->code;
	work->os_errno = why->os_errno;
	if (work->trouble && strcmp(work->trouble, text) == 0) {
		free(text);
		return;
	}
	free(work->trouble);
	work->trouble = text;
	news = news_of("trouble");
	js_put_str(news, "why", text);
	say_news(work, news);
}

/* ---- one checkpoint ---- */

static bool still_copying(void *arg, uint64_t done, uint64_t total)
{
	struct work *work = arg;
	uint64_t moved = done + store_traffic();

	(void)total;
	/* Only bytes are progress: waiting for a silent service is not. */
	if (moved != work->moved && clock_mono_now().ms - work->told.ms >= TELL_MS) {
		work->told = clock_mono_now();
		work->moved = moved;
		say_news(work, news_of("copying"));
		if (work->coordinator)
			checkpoint_coordinator_moved(work->coordinator);
	}
	return true;
}

/* True if the command saves directly in the root. */
static bool in_place(const struct work *work)
{
	return !work->root.store && strcmp(work->root.path, work->source) == 0;
}

/* Copies a checkpoint to the root. Returns 1 if it is there, 0 if not yet. */
static int copy_to_root(struct work *work, const struct ckpt *ckpt)
{
	AUTO(err_freep) struct err *why = NULL;
	int there = 1;

	if (in_place(work))
		return 1;
	if (work->awaits)
		there = checkpoint_copy_is_there(ckpt, &work->root, &why);
	else if (checkpoint_copy(ckpt, &work->root, still_copying, work, &why) < 0)
		there = -1;
	if (there < 0)
		say_trouble(work, why);
	return there > 0;
}

/* Removes the oldest checkpoints that `keep` leaves no room for, and their sources. */
static void clear_surplus(struct work *work)
{
	const struct agent_config *config = work->config;
	AUTO(checkpoint_marks_release) struct ckpt_marks surplus = { 0 };
	AUTO(err_freep) struct err *why = NULL;

	if (work->keep <= 0)
		return;
	if (checkpoint_surplus(&work->root, 1, config->run, work->keep, config->order->resume_from,
			       &surplus, &why) < 0) {
		say_trouble(work, why);
		return;
	}
	for (size_t i = 0; i < surplus.count; i++) {
		AUTO(auto_free) char *source = fs_join(work->source, surplus.items[i].name);

		err_freep(&why);
		if (work->coordinator)
			checkpoint_coordinator_removed(work->coordinator, surplus.items[i].name);
		if (checkpoint_remove(&surplus.items[i], &why) < 0 ||
		    (!in_place(work) && fs_remove_tree(source, &why) < 0))
			say_trouble(work, why);
	}
}

static void say_marked(void *arg, int64_t step, const char *url)
{
	struct work *work = arg;
	json_t *news = news_of("marked");

	js_put(news, "step", json_integer(step));
	js_put_str(news, "url", url);
	say_news(work, news);
	passed_marked(&work->passed, step, url);
}

static int holds(void *arg)
{
	struct work *work = arg;
	int held = claim_check(work->claim, work->config, work->store);

	/* Superseded: another attempt now decides what counts. */
	work->ended |= held == 0;
	return held;
}

static void hear_trouble(void *arg, const struct err *why)
{
	say_trouble(arg, why);
}

/* Sends this node's part of a checkpoint that several nodes share. */
static bool deal_with_part(struct work *work, const struct ckpt *ckpt)
{
	AUTO(err_freep) struct err *why = NULL;

	if (checkpoint_coordinator_send(work->coordinator, ckpt, still_copying, work, &why) >= 0)
		return true;
	say_trouble(work, why);
	return false;
}

/* Returns true if the checkpoint is handled, false if it must wait for another beat. */
static bool deal_with(struct work *work, const struct ckpt *ckpt)
{
	const struct agent_config *config = work->config;
	struct ckpt_owner owner = { config->run, config->nonce, config->attempt,
				    config->order->instance, config->order->world_size };
	AUTO(err_freep) struct err *why = NULL;
	int held, done;

	if (work->coordinator)
		return deal_with_part(work, ckpt);
	if (!copy_to_root(work, ckpt))
		return false;
	held = holds(work);
	if (held <= 0) {
		if (held < 0) {
			AUTO(auto_free) char *url = checkpoint_root_url(&work->root, ckpt->name);

			err_set(&why, EXIT_UNREACHABLE,
				"cannot mark '%s': the claim in the workspace cannot be read", url);
			say_trouble(work, why);
		}
		return false;
	}
	done = checkpoint_mark(&work->root, ckpt, &owner, clock_utc_now(), &why);
	if (done < 0) {
		say_trouble(work, why);
		return false;
	}
	if (done > 0) {
		AUTO(auto_free) char *url = checkpoint_root_url(&work->root, ckpt->name);

		say_marked(work, ckpt->step, url);
	}
	return true;
}

/* ---- one pass ---- */

static void say_saving(const struct work *work, struct utc since)
{
	json_t *news = news_of("saving");

	if (since.ms > 0)
		js_put(news, "since", json_integer(since.ms));
	js_put(news, "at", json_integer(clock_utc_now().ms));
	say_news(work, news);
}

/* `since`: the look before this one. */
static void note_changes(struct work *work, struct utc since)
{
	uint64_t changes = checkpoint_watch_changes(work->watch);

	work->quiet++;
	if (changes != work->changes) {
		work->changes = changes;
		work->quiet = 0;
		work->saving = true;
		say_saving(work, since);
	}
}

/* True while nothing is to work beside the steps of a benchmark. */
static bool is_postponed(const struct work *work)
{
	return work->postponed && !work->last && !work->draining;
}

/* Reports once everything in the folder has settled and is handled. A file that is not a
 * checkpoint, a log for instance, settles like one. */
static void note_saved(struct work *work)
{
	if (!work->saving || work->quiet <= QUIET_BEATS || checkpoint_watch_busy(work->watch) ||
	    (!is_postponed(work) && checkpoint_watch_next(work->watch)) ||
	    checkpoint_watch_partial(work->watch, 0))
		return;
	work->saving = false;
	say_news(work, news_of("saved"));
}

/* Exchanges states with the other nodes. */
static void exchange_states(struct work *work)
{
	json_auto_t *bad = work->coordinator ? passed_bad(work->watch) : NULL;
	const struct coordinator_own own = {
		.bad = bad,
		.changes = work->changes,
		.quiet = work->quiet >= QUIET_BEATS,
		.draining = work->draining,
	};

	if (work->coordinator && !work->ended &&
	    checkpoint_coordinator_round(work->coordinator, &own) > 0)
		clear_surplus(work);
	if (work->coordinator && !work->ended && !work->last && work->config->node == 0)
		passed_report_coordinated(&work->passed, work->coordinator);
}

/* Puts a checkpoint aside that failed for the second time while no service was away, so that those
 * behind it need not wait. Returns true if it did. */
static bool step_aside(struct work *work, const struct ckpt *ckpt)
{
	bool again = work->stuck && strcmp(work->stuck, ckpt->name) == 0;

	if (work->last || work->ended || work->away || work->awaits || !work->trouble)
		return false;
	free(work->stuck);
	work->stuck = mem_copy(ckpt->name);
	if (!again)
		return false;
	passed_stuck(&work->passed, ckpt, work->trouble);
	checkpoint_watch_later(work->watch, work->stuck,
			       UNCHANGED_BEATS * work->config->heartbeat_ms);
	return true;
}

/* Handles all waiting checkpoints and counts them in `count`. Returns false if some must wait
 * for another beat. */
static bool deal_with_all(struct work *work, size_t *count)
{
	const struct ckpt *ckpt;
	bool newest = work->last;

	checkpoint_watch_newest(work->watch, newest);
	while (!work->ended && (ckpt = checkpoint_watch_next(work->watch))) {
		AUTO(auto_free) char *name = mem_copy(ckpt->name);

		work->away = work->away && work->last;
		if (deal_with(work, ckpt)) {
			checkpoint_watch_take(work->watch, name);
			++*count;
			/* Other nodes wait for it, and there may be no time for the next one. */
			if (work->last)
				exchange_states(work);
		} else if (newest && !work->away) {
			/* Older checkpoints may do better. */
			checkpoint_watch_newest(work->watch, newest = false);
		} else if (!step_aside(work, ckpt)) {
			return false;
		}
	}
	return true;
}

static void pass(struct work *work)
{
	size_t dealt = 0;
	bool busy;

	do {
		AUTO(err_freep) struct err *why = NULL;
		struct utc since = work->looked_at, now = clock_utc_now();
		bool seen = checkpoint_watch_scan(work->watch, clock_mono_now(), &why) == 0;

		if (!seen)
			say_trouble(work, why);
		work->looked_at = now;
		note_changes(work, since);
		if (is_postponed(work))
			break;
		busy = seen && checkpoint_watch_busy(work->watch);
		/* A checkpoint that is not proved yet may be newer. */
		if (!(work->last && busy) && !deal_with_all(work, &dealt))
			return;
	} while (!work->ended && busy);
	if (dealt > 0 && !work->coordinator)
		clear_surplus(work);
	if (!work->last && !work->coordinator && !is_postponed(work))
		passed_report(&work->passed, work->watch);
	note_saved(work);
}

static void say_copying(void *arg)
{
	say_news(arg, news_of("copying"));
}

static void push(struct work *work, bool at_end)
{
	json_t *news = cache_push_news(work->push, at_end, say_copying, work);

	if (news)
		say_news(work, news);
}

/* ---- life ---- */

/* Repeats the pass while a service is away: a checkpoint that is not copied or marked is lost
 * with this machine. */
static void try_again(struct work *work)
{
	const struct mono end = { clock_mono_now().ms + LAST_MS };

	while (!work->ended && work->away && checkpoint_watch_next(work->watch) &&
	       clock_mono_now().ms < end.ms) {
		say_news(work, news_of("copying"));
		(void)cancel_pause(LAST_PAUSE_MS);
		work->away = false;
		pass(work);
	}
}

/* Publishes this node's last state; node 0 then waits for those of the other nodes. */
static void last_words(struct work *work)
{
	const struct mono end = { clock_mono_now().ms + LAST_MS };
	json_auto_t *bad = passed_bad(work->watch);

	while (!checkpoint_coordinator_finish(work->coordinator, bad, work->cut) &&
	       clock_mono_now().ms < end.ms) {
		say_news(work, news_of("copying"));
		(void)cancel_pause(LAST_PAUSE_MS);
	}
	while (work->config->node == 0 && !work->ended) {
		exchange_states(work);
		if (work->ended || !checkpoint_coordinator_waiting(work->coordinator))
			return;
		say_news(work, news_of("copying"));
		(void)cancel_pause(checkpoint_coordinator_pause(work->coordinator));
	}
}

/* No process writes any more, so nothing needs time to settle. But a save that was cut off may lack
 * its last files, or the rest of one: then only what something vouches for counts at once. */
static void last_pass(struct work *work)
{
	if (work->push)
		push(work, true);
	if (!work->watch)
		return;
	work->away = false;
	work->last = true;
	/* There is no later time for what was put aside. */
	checkpoint_watch_again(work->watch);
	checkpoint_watch_quiet_verified(work->watch, 0);
	if (!work->cut)
		checkpoint_watch_quiet(work->watch, 0);
	pass(work);
	if (!work->ended)
		pass(work); /* a settle time of zero takes two looks */
	try_again(work);
	if (work->coordinator)
		last_words(work);
	if (!work->ended)
		passed_at_end(&work->passed, work->watch, work->coordinator, work->cut);
}

static bool drain_begun(struct work *work)
{
	work->draining = true;
	if (work->watch && !work->coordinator)
		checkpoint_watch_quiet_verified(work->watch, DRAIN_QUIET_MS);
	return true;
}

/* Waits for a beat or an order. Returns false when it is time for the last pass. */
static bool wait_for_beat(struct work *work)
{
	bool close = work->draining && !work->coordinator;
	int64_t beat_ms = close ? DRAIN_BEAT_MS : work->config->heartbeat_ms;
	json_auto_t *order = orders_wait(&work->orders, beat_ms);

	if (!order && !work->orders.over)
		return true;
	if (js_is(order, "order", CHECKPOINTER_ORDER_DRAIN))
		return drain_begun(work);
	work->ended |= !order; /* without its agent the checkpointer marks nothing */
	work->cut = js_bool(order, "cut", false);
	return false;
}

/* Sets up the root, a folder or a store. A store is opened here, after the fork. */
static int open_root(struct work *work, const struct order_checkpoint *checkpoint, struct err **err)
{
	const char *root = checkpoint->root;
	bool none = checkpoint->sync && strcmp(checkpoint->sync, "none") == 0;

	work->root = (struct ckpt_root){ .path = root,
					 .attempt = work->config->attempt,
					 .nonce = work->config->nonce };
	if (root[0] == '/') {
		work->source = none ? root : work->source;
		return 0;
	}
	work->awaits = none;
	if (store_open(root, &work->remote, err) < 0)
		return -1;
	work->root.path = "";
	work->root.store = work->remote;
	return 0;
}

static int open_all(struct work *work, struct err **err)
{
	const struct agent_config *config = work->config;
	const struct order_checkpoint *checkpoint = &config->order->checkpoint;
	const char *kind = checkpoint->kind;
	AUTO(auto_free) char *cache = agent_config_cache(config);

	if (cache && cache_push_open(config, &work->push, err) < 0)
		return -1;
	if (!checkpointer_has_checkpoints(config))
		return 0;
	work->kind = checkpoint_kind_find(kind ? kind : "auto");
	work->keep = json_integer_value(checkpoint->keep); /* "all" is not a number: 0 */
	work->postponed = checkpoint->postponed;
	if (!work->kind)
		return err_set(err, EXIT_SPEC, "an order for checkpoints of unknown kind %s",
			       kind ? kind : "auto");
	if (store_open(config->workspace, &work->store, err) < 0 ||
	    open_root(work, checkpoint, err) < 0)
		return -1;
	work->watch =
		checkpoint_watch_new(work->source, work->kind, QUIET_BEATS * config->heartbeat_ms);
	work->passed = (struct passed){
		.config = config,
		.source = work->source,
		.kind = work->kind,
		.unchanged_ms = UNCHANGED_BEATS * config->heartbeat_ms,
		.news_fd = work->news_fd,
	};
	if (checkpoint_coordinator_needed(config)) {
		const struct coordinator_hooks hooks = { work, holds, say_marked, hear_trouble };

		work->coordinator = checkpoint_coordinator_new(config, &work->root, work->kind,
							       work->source, &hooks);
		checkpoint_watch_parts(work->watch);
	}
	return 0;
}

int checkpointer_work(const struct agent_config *config, const struct claim *claim, int news_fd,
		      int orders_fd)
{
	AUTO(err_freep) struct err *why = NULL;
	struct work work = {
		.config = config,
		.claim = claim,
		.source = config->checkpoint,
		.news_fd = news_fd,
		.orders = { .fd = orders_fd, .text = SB_INIT },
	};
	bool begun = open_all(&work, &why) == 0;

	if (!begun)
		say_trouble(&work, why);
	while (begun && !work.ended && wait_for_beat(&work)) {
		if (work.push)
			push(&work, false);
		if (work.watch)
			pass(&work);
		if (!is_postponed(&work))
			exchange_states(&work);
	}
	if (begun && !work.ended) {
		last_pass(&work);
		checkpointer_lost_say(&work);
	}
	checkpoint_watch_freep(&work.watch);
	checkpoint_coordinator_freep(&work.coordinator);
	cache_push_freep(&work.push);
	store_freep(&work.store);
	store_freep(&work.remote);
	passed_release(&work.passed);
	sb_release(&work.orders.text);
	free(work.stuck);
	free(work.trouble);
	return begun ? 0 : 1;
}
