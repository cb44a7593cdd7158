/* The turns of a sync, and its end: see sync.h and sync_inside.h. */
#include "jobs/store/sync.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/store/sync_inside.h"

#define TURN_MS     100
#define PROGRESS_MS 100

/* Rows looked at before others get their turn: most are unchanged, and cost nothing. */
#define STEPS 256

static struct store_dir *as_directory(struct store *store)
{
	return store_directory(store) ? (struct store_dir *)store : NULL;
}

/* Where a directory really is, with a slash at its end; NULL: it is not there. */
static char *real_place(const char *path)
{
	AUTO(auto_free) char *real = realpath(path, NULL);

	return real ? mem_format("%s/", strcmp(real, "/") == 0 ? "" : real) : NULL;
}

/* A folder that lies in the other would be listed while it is written to. */
static int must_be_apart(const struct store *from, const struct store *to, struct err **err)
{
	AUTO(auto_free) char *a = real_place(store_directory(from));
	AUTO(auto_free) char *b = real_place(store_directory(to));
	AUTO(auto_free) char *above = mem_copy(store_directory(to));
	bool around = a && b && text_starts(a, b);

	while (!b) { /* yet to be made, in the first folder above that is there */
		char *next = fs_dirname(above);

		b = real_place(next);
		free(above);
		above = next;
	}
	if (!around && (!a || !text_starts(b, a)))
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' and '%s' are one directory, or one lies in the other",
		store_url(from), store_url(to));
	return err_hint(err, "name two that have nothing to do with each other");
}

/* Which side is near: where files come to, or the only one that is a directory. */
static int open_sides(struct sync *sync, struct store *from, struct store *to, struct err **err)
{
	struct store *far = as_directory(to) ? from : to;

	sync->near = as_directory(to);
	sync->down = sync->near != NULL;
	if (!sync->down)
		sync->near = as_directory(from);
	if (!sync->near) {
		err_set(err, EXIT_REFUSED, "neither '%s' nor '%s' is a directory", store_url(from),
			store_url(to));
		return err_hint(err, "go by way of a directory on this machine");
	}
	if (sync->down && store_directory(from) && must_be_apart(from, to, err) < 0)
		return -1;
	return mover_open(far, &sync->mover, err);
}

static int open_near(struct sync *sync, const char *far_url, struct err **err)
{
	AUTO(auto_close) int root = -1;

	if (sync->down && !sync->options->dry_run) {
		if (landing_open(sync->near, &sync->landing, err) < 0)
			return -1;
		sync->root = landing_root(sync->landing);
	} else {
		int found = dir_root_open(sync->near, false, &root, err);

		if (found < 0)
			return -1;
		sync->own_root = sync->root = found > 0 ? TAKE_FD(root) : -1;
	}
	sync->manifest = manifest_open(sync->root, far_url, !sync->options->dry_run);
	return 0;
}

/* The next keys, as many as there is room for. False: a listing must come first. */
static bool look_on(struct sync *sync, struct err **err)
{
	for (int i = 0; i < STEPS && !sync->joined && move_has_room(sync); i++) {
		int done = join_step(sync, err);

		if (done <= 0)
			return false;
		if (move_go_on(sync, false, err) < 0)
			return false;
	}
	return true;
}

static bool is_over(const struct sync *sync)
{
	return sync->joined && move_is_idle(sync);
}

static void report(struct sync *sync, struct mono *told)
{
	if (!sync->options->progress || mono_now().ms - told->ms < PROGRESS_MS)
		return;
	*told = mono_now();
	sync->sum->stopped = !sync->options->progress(sync->options->arg, sync->sum);
}

static int turns(struct sync *sync, struct err **err)
{
	struct mono told = { 0 };

	while (!is_over(sync) && !sync->sum->stopped) {
		bool more = look_on(sync, err) && !sync->joined && move_has_room(sync);

		if (*err || move_go_on(sync, false, err) < 0)
			return -1;
		if (!is_over(sync))
			sync->mover->kind->turn(sync->mover, more ? 0 : TURN_MS);
		if (sync->err) {
			*err = TAKE(sync->err);
			return -1;
		}
		report(sync, &told);
	}
	return 0;
}

static int finish(struct sync *sync, int result, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;

	/* What has come whole shall stay; an error that is reported already is enough. */
	if (!is_over(sync) && sync->landing)
		(void)move_go_on(sync, true, &ignored);
	err_freep(&ignored);
	if (sync->landing && landing_finish(sync->landing, result < 0 ? &ignored : err) < 0)
		result = -1;
	if (result == 0 && is_over(sync) && sync->manifest)
		manifest_close(sync->manifest, sync->options->only);
	mover_freep(&sync->mover);
	move_close(sync);
	stage_close(sync);
	join_close(sync);
	err_freep(&sync->err);
	manifest_freep(&sync->manifest);
	landing_freep(&sync->landing);
	auto_close(&sync->own_root);
	return result;
}

int sync_run(struct store *from, struct store *to, const struct sync_options *options,
	     struct sync_sum *ret, struct err **err)
{
	struct sync sync = {
		.options = options, .sum = ret, .begun = utc_now(), .root = -1, .own_root = -1
	};
	int result;

	*ret = (struct sync_sum){ 0 };
	if (options->only && !store_key_fits(options->only, true))
		return err_set(err, EXIT_DEFECT, "'%s' is no prefix of objects", options->only);
	result = open_sides(&sync, from, to, err);
	if (result == 0)
		result = open_near(&sync, store_url(sync.down ? from : to), err);
	if (result == 0)
		result = join_open(&sync, err);
	if (result == 0)
		result = turns(&sync, err);
	return finish(&sync, result, err);
}
