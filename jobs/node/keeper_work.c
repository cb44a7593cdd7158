/* Marks, copies and clears away checkpoints, brings graphs to the cache: the child's side
 * of keeper.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/cache_push.h"
#include "jobs/node/fetch.h"
#include "jobs/node/keeper.h"
#include "jobs/node/shards.h"
#include "jobs/store/store.h"

/* A checkpoint has settled when it did not change for so many beats. */
#define SETTLE_BEATS 3
#define COPY_AT_ONCE ((uint64_t)16 << 20) /* bytes */
#define TELL_MS      1000
#define PARTIAL_MAX  16 /* of which the reason is told */
/* What is left at the end is tried again while a service is away. */
#define LAST_MS       ((int64_t)10 * 60 * 1000)
#define LAST_PAUSE_MS 5000

struct work {
	const struct task *task;
	const struct claim *claim;
	struct store *store;
	const struct ckpt_kind *kind;
	struct ckpt_root root;    /* where complete ones lie */
	struct store *remote;     /* that of the root, if it is in one */
	bool awaits;              /* somebody else brings them to that store */
	const char *source;       /* where the command or the engine puts them */
	int64_t keep;             /* 0: all */
	struct ckpt_watch *watch; /* NULL: no checkpoints to look after */
	struct shards *shards;    /* NULL: this node alone has all of each checkpoint */
	struct cache_push *push;  /* NULL: no graphs to bring away */
	uint64_t changes;
	bool saving; /* said, and not yet taken back */
	bool hurry;  /* a drain waits for a mark */
	bool last;   /* the last pass: the time for it may be short */
	bool cut;    /* before it the command did not come to its end */
	int quiet;   /* beats without a change */
	int news_fd, orders_fd;
	struct mono told;    /* that we are still copying */
	uint64_t moved;      /* bytes until then */
	bool ended;          /* the agent wants no more of us */
	bool away;           /* a service did not answer: later it may */
	char *trouble;       /* said last */
	enum exit_code code; /* of that */
	int os_errno;
};

static void say(const struct work *work, json_t *news)
{
	AUTO(auto_free) char *text = js_line(news);
	AUTO(auto_free) char *line = mem_format("%s\n", text);
	size_t left = strlen(line);
	const char *at = line;

	json_decref(news);
	while (left > 0) {
		ssize_t done = write(work->news_fd, at, left);

		if (done < 0 && errno != EINTR)
			_exit(1); /* nobody hears us */
		if (done > 0) {
			at += done;
			left -= (size_t)done;
		}
	}
}

static json_t *news_of(const char *kind)
{
	json_t *news = json_object();

	js_put_str(news, "news", kind);
	return news;
}

/* Each trouble once, not with every beat. */
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
	say(work, news);
}

/* ---- one checkpoint ---- */

static bool still_copying(void *arg, uint64_t done, uint64_t total)
{
	struct work *work = arg;
	uint64_t moved = done + store_traffic();

	(void)total;
	/* Only bytes are progress: who waits for a service that says nothing makes none. */
	if (moved != work->moved && mono_now().ms - work->told.ms >= TELL_MS) {
		work->told = mono_now();
		work->moved = moved;
		say(work, news_of("copying"));
		if (work->shards)
			shards_moved(work->shards);
	}
	return true;
}

/* They are saved where they are to be found. */
static bool in_place(const struct work *work)
{
	return !work->root.store && strcmp(work->root.path, work->source) == 0;
}

/* Bring it to the root: 1 it is there, 0 not now. */
static int bring(struct work *work, const struct ckpt *ckpt)
{
	AUTO(ckpt_copy_freep) struct ckpt_copy *copy = NULL;
	AUTO(err_freep) struct err *why = NULL;
	int done;

	if (in_place(work))
		return 1;
	if (work->awaits) {
		done = ckpt_copy_is_there(ckpt, &work->root, &why);
		if (done < 0)
			say_trouble(work, why);
		return done > 0;
	}
	done = ckpt_copy_start(ckpt, &work->root, &copy, &why);
	if (done == 0)
		ckpt_copy_tell(copy, still_copying, work);
	while (done >= 0 && (done = ckpt_copy_step(copy, COPY_AT_ONCE, &why)) == 0)
		say(work, news_of("copying"));
	if (done < 0)
		say_trouble(work, why);
	return done > 0;
}

/* The oldest ones that `keep` leaves no room for, and what they were copied from. */
static void clear_surplus(struct work *work)
{
	const struct task *task = work->task;
	AUTO(ckpt_marks_release) struct ckpt_marks surplus = { 0 };
	AUTO(err_freep) struct err *why = NULL;

	if (work->keep <= 0)
		return;
	if (ckpt_surplus(&work->root, 1, task->run, work->keep, js_str(task->order, "resume_from"),
			 &surplus, &why) < 0) {
		say_trouble(work, why);
		return;
	}
	for (size_t i = 0; i < surplus.count; i++) {
		AUTO(auto_free) char *source = fs_join(work->source, surplus.items[i].name);

		err_freep(&why);
		if (work->shards)
			shards_removed(work->shards, surplus.items[i].name);
		if (ckpt_remove(&surplus.items[i], &why) < 0 ||
		    (!in_place(work) && fs_remove_tree(source, &why) < 0))
			say_trouble(work, why);
	}
}

static void say_marked(void *arg, int64_t step, const char *url)
{
	json_t *news = news_of("marked");

	js_put(news, "step", json_integer(step));
	js_put_str(news, "url", url);
	say(arg, news);
}

static int holds(void *arg)
{
	struct work *work = arg;
	int held = claim_look(work->claim, work->task, work->store);

	/* Superseded: another attempt decides now what counts. */
	work->ended |= held == 0;
	return held;
}

static void hear_trouble(void *arg, const struct err *why)
{
	say_trouble(arg, why);
}

/* This node's part of it, where there are others. */
static bool deal_with_part(struct work *work, const struct ckpt *ckpt)
{
	AUTO(err_freep) struct err *why = NULL;

	if (shards_send(work->shards, ckpt, still_copying, work, &why) >= 0)
		return true;
	say_trouble(work, why);
	return false;
}

/* True if it is dealt with, false if it must wait for another beat. */
static bool deal_with(struct work *work, const struct ckpt *ckpt)
{
	const struct task *task = work->task;
	struct ckpt_owner owner = { task->run, task->nonce, task->attempt };
	AUTO(err_freep) struct err *why = NULL;
	int held, done;

	if (work->shards)
		return deal_with_part(work, ckpt);
	if (!bring(work, ckpt))
		return false;
	held = holds(work);
	if (held <= 0) {
		if (held < 0) {
			AUTO(auto_free) char *url = ckpt_root_url(&work->root, ckpt->name);

			err_set(&why, EXIT_UNREACHABLE,
				"cannot mark '%s': the claim in the workspace cannot be read", url);
			say_trouble(work, why);
		}
		return false;
	}
	done = ckpt_mark(&work->root, ckpt, &owner, utc_now(), &why);
	if (done < 0) {
		say_trouble(work, why);
		return false;
	}
	if (done > 0) {
		AUTO(auto_free) char *url = ckpt_root_url(&work->root, ckpt->name);

		say_marked(work, ckpt->step, url);
	}
	return true;
}

/* ---- one pass ---- */

static void note_changes(struct work *work)
{
	uint64_t changes = ckpt_watch_changes(work->watch);

	work->quiet++;
	if (changes != work->changes) {
		work->changes = changes;
		work->quiet = 0;
		work->saving = true;
		say(work, news_of("saving"));
	}
}

/* Everything there has settled and is dealt with. What was no checkpoint at all,
 * a log for instance, settles like one. */
static void note_saved(struct work *work)
{
	if (!work->saving || work->quiet <= SETTLE_BEATS || ckpt_watch_busy(work->watch) ||
	    ckpt_watch_next(work->watch) || ckpt_watch_partial(work->watch, 0))
		return;
	work->saving = false;
	say(work, news_of("saved"));
}

/* What has settled and is not whole, so that no other node takes it for nothing. */
static json_t *bad_ones(const struct work *work)
{
	json_t *bad = json_object();
	const struct ckpt *ckpt;

	for (size_t i = 0; i < PARTIAL_MAX && (ckpt = ckpt_watch_partial(work->watch, i)); i++)
		js_put_str(bad, ckpt->name, ckpt->why);
	return bad;
}

/* Hear the other nodes, and have them hear this one. */
static void look_around(struct work *work)
{
	json_auto_t *bad = work->shards ? bad_ones(work) : NULL;
	const struct shards_own own = {
		.bad = bad,
		.changes = work->changes,
		.quiet = work->quiet >= SETTLE_BEATS,
		.hurry = work->hurry,
	};

	if (work->shards && !work->ended && shards_look(work->shards, &own) > 0)
		clear_surplus(work);
}

/* All that wait to be dealt with: how many were; false, some must wait for another beat. */
static bool deal_with_all(struct work *work, size_t *count)
{
	const struct ckpt *ckpt;
	bool newest = work->last;

	ckpt_watch_newest(work->watch, newest);
	while (!work->ended && (ckpt = ckpt_watch_next(work->watch))) {
		AUTO(auto_free) char *name = mem_copy(ckpt->name);

		if (deal_with(work, ckpt)) {
			ckpt_watch_take(work->watch, name);
			++*count;
			/* Others wait for it, and there may be no time for the next one. */
			if (work->last)
				look_around(work);
		} else if (newest && !work->away) {
			/* Those before it may do better. */
			ckpt_watch_newest(work->watch, newest = false);
		} else {
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
		bool seen = ckpt_watch_look(work->watch, mono_now(), &why) == 0;

		if (!seen)
			say_trouble(work, why);
		note_changes(work);
		busy = seen && ckpt_watch_busy(work->watch);
		/* Of those that are not proved yet one may be newer. */
		if (!(work->last && busy) && !deal_with_all(work, &dealt))
			return;
	} while (!work->ended && busy);
	if (dealt > 0 && !work->shards)
		clear_surplus(work);
	note_saved(work);
}

/* ---- graphs ---- */

static void say_copying(void *arg)
{
	say(arg, news_of("copying"));
}

static void push(struct work *work, bool at_end)
{
	json_t *news = cache_push_news(work->push, at_end, say_copying, work);

	if (news)
		say(work, news);
}

/* ---- life ---- */

/* What could not be brought or marked is lost with this machine. */
static void try_again(struct work *work)
{
	const struct mono end = { mono_now().ms + LAST_MS };

	while (!work->ended && work->away && ckpt_watch_next(work->watch) &&
	       mono_now().ms < end.ms) {
		say(work, news_of("copying"));
		poll(NULL, 0, LAST_PAUSE_MS);
		work->away = false;
		pass(work);
	}
}

/* Who can cure what went wrong last; NULL: its number tells. */
static const char *class_of_trouble(const struct work *work)
{
	if (work->code == EXIT_UNREACHABLE)
		return "transient-infra";
	/* A service said no, and will again. */
	return work->remote && !work->os_errno ? "quota-permission" : NULL;
}

static void say_one_lost(const struct work *work, const char *name, const char *why,
			 const char *class)
{
	json_t *news = news_of("lost");

	js_put_str(news, "name", name);
	js_put_str(news, "why", why);
	js_put_str(news, "class", class);
	js_put(news, "errno", json_integer(class ? 0 : work->os_errno));
	say(work, news);
}

/* Of those that several nodes have parts of: is one lost for a reason that is not its own? */
static bool say_unmarked(const struct work *work)
{
	struct shards_unmarked one;
	bool lost = false;

	for (size_t i = 0; work->shards && shards_unmarked(work->shards, i, &one); i++) {
		if (one.lost && !lost)
			say_one_lost(work, one.name, one.why,
				     one.class ? one.class : class_of_trouble(work));
		lost |= one.lost;
	}
	return lost;
}

/* Are all complete ones where the next attempt would look for them? */
static void say_lost(struct work *work)
{
	const struct ckpt *ckpt = work->watch ? ckpt_watch_next(work->watch) : NULL;

	/* Superseded: another attempt decides. Awaited: somebody else may yet bring them. */
	if (work->ended || work->awaits || !ckpt || !work->trouble) {
		if (work->ended || !say_unmarked(work))
			say(work, news_of("kept"));
		return;
	}
	say_one_lost(work, ckpt->name, work->trouble, class_of_trouble(work));
}

/* What other nodes have to say; node 0 waits for that. */
static void last_words(struct work *work)
{
	const struct mono end = { mono_now().ms + LAST_MS };
	json_auto_t *bad = bad_ones(work);

	while (!shards_finish(work->shards, bad, work->cut) && mono_now().ms < end.ms) {
		say(work, news_of("copying"));
		poll(NULL, 0, LAST_PAUSE_MS);
	}
	while (work->task->node == 0 && !work->ended) {
		look_around(work);
		if (work->ended || !shards_waiting(work->shards))
			return;
		say(work, news_of("copying"));
		poll(NULL, 0, (int)shards_pause(work->shards));
	}
}

static void say_partial(const struct work *work, const char *name, const char *why)
{
	json_t *news = news_of("partial");

	js_put_str(news, "name", name);
	js_put_str(news, "why", why);
	say(work, news);
}

static void say_partials(const struct work *work)
{
	struct shards_unmarked one;
	const struct ckpt *ckpt;

	for (size_t i = 0; i < PARTIAL_MAX && (ckpt = ckpt_watch_partial(work->watch, i)); i++)
		say_partial(work, ckpt->name, ckpt->why);
	for (size_t i = 0;
	     i < PARTIAL_MAX && work->shards && shards_unmarked(work->shards, i, &one); i++)
		say_partial(work, one.name, one.why);
}

/* Nobody writes any more: what is whole now is whole. */
static void last_pass(struct work *work)
{
	if (work->push)
		push(work, true);
	if (!work->watch)
		return;
	work->away = false;
	work->last = true;
	ckpt_watch_freep(&work->watch);
	work->watch = ckpt_watch_new(work->source, work->kind, 0);
	if (work->shards)
		ckpt_watch_parts(work->watch);
	work->changes = ckpt_watch_changes(work->watch);
	pass(work);
	if (!work->ended)
		pass(work); /* settled for no time at all takes two looks */
	try_again(work);
	if (work->shards)
		last_words(work);
	say_partials(work);
}

/* Wait for a beat, or an order: false when it is time for the last pass. */
static bool wait_for_beat(struct work *work)
{
	struct pollfd order = { .fd = work->orders_fd, .events = POLLIN };
	char byte;

	if (poll(&order, 1, (int)work->task->heartbeat_ms) <= 0)
		return true;
	if (read(work->orders_fd, &byte, 1) != 1)
		work->ended = true; /* without its agent nothing is marked */
	else if (byte == KEEPER_ORDER_HURRY)
		return work->hurry = true;
	work->cut = byte == KEEPER_ORDER_CUT;
	return false;
}

/* A folder, or in a store: then opened here, on this side of the fork. */
static int open_root(struct work *work, const json_t *checkpoint, struct err **err)
{
	const char *root = js_str(checkpoint, "root");
	bool none = js_is(checkpoint, "sync", "none");

	work->root = (struct ckpt_root){ .path = root,
					 .attempt = work->task->attempt,
					 .nonce = work->task->nonce };
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
	const struct task *task = work->task;
	const json_t *checkpoint = json_object_get(task->order, "checkpoint");
	const char *kind = js_str(checkpoint, "kind");
	AUTO(auto_free) char *cache = fetch_cache(task);

	if (cache && cache_push_open(task, &work->push, err) < 0)
		return -1;
	if (!keeper_has_checkpoints(task))
		return 0;
	work->kind = ckpt_kind_find(kind ? kind : "auto");
	work->keep = js_int(checkpoint, "keep", 0); /* "all" is no number */
	if (!work->kind)
		return err_set(err, EXIT_SPEC, "an order for checkpoints of unknown kind %s",
			       kind ? kind : "auto");
	if (store_open(task->workspace, &work->store, err) < 0 ||
	    open_root(work, checkpoint, err) < 0)
		return -1;
	work->watch = ckpt_watch_new(work->source, work->kind, SETTLE_BEATS * task->heartbeat_ms);
	if (shards_needed(task)) {
		const struct shards_hooks hooks = { work, holds, say_marked, hear_trouble };

		work->shards = shards_new(task, &work->root, work->kind, work->source, &hooks);
		ckpt_watch_parts(work->watch);
	}
	return 0;
}

int keeper_work(const struct task *task, const struct claim *claim, int news_fd, int orders_fd)
{
	AUTO(err_freep) struct err *why = NULL;
	struct work work = {
		.task = task,
		.claim = claim,
		.source = task->checkpoint,
		.news_fd = news_fd,
		.orders_fd = orders_fd,
	};

	if (open_all(&work, &why) < 0) {
		say_trouble(&work, why);
		free(work.trouble);
		return 1;
	}
	while (!work.ended && wait_for_beat(&work)) {
		if (work.push)
			push(&work, false);
		if (work.watch)
			pass(&work);
		look_around(&work);
	}
	if (!work.ended) {
		last_pass(&work);
		say_lost(&work);
	}
	ckpt_watch_freep(&work.watch);
	shards_freep(&work.shards);
	cache_push_freep(&work.push);
	store_freep(&work.store);
	store_freep(&work.remote);
	free(work.trouble);
	return 0;
}
