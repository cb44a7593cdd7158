/* Main loop and end of a sync: see sync.h and sync_internal.h. */
#include "jobs/store/sync.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/store/sync_internal.h"

#define TURN_MS     100
#define PROGRESS_MS 100

/* Rows handled before transfers get a turn: most are unchanged, and cost nothing. */
#define STEPS 256

static struct store_dir *as_directory(struct store *store)
{
	return store_directory(store) ? (struct store_dir *)store : NULL;
}

/* Returns the real path of a directory, with a slash at its end, or NULL if it is absent. */
static char *real_place(const char *path)
{
	AUTO(auto_free) char *real = realpath(path, NULL);

	return real ? mem_format("%s/", strcmp(real, "/") == 0 ? "" : real) : NULL;
}

/* If one folder lay in the other, it would be listed while it is written to. */
static int must_be_apart(const struct store *from, const struct store *to, struct err **err)
{
	AUTO(auto_free) char *a = real_place(store_directory(from));
	AUTO(auto_free) char *b = real_place(store_directory(to));
	AUTO(auto_free) char *above = mem_copy(store_directory(to));
	bool around = a && b && text_starts(a, b);

	while (!b) { /* not made yet: take the nearest folder above that exists */
		char *next = fs_dirname(above);

		b = real_place(next);
		free(above);
		above = next;
	}
	if (!around && (!a || !text_starts(b, a)))
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' and '%s' are one directory, or one lies in the other",
		store_url(from), store_url(to));
	return err_hint(err, "name two separate directories");
}

/* Selects the local side: the target if it is a directory, else the source. */
static int open_sides(struct sync *sync, struct store *from, struct store *to, struct err **err)
{
	struct store *remote = NULL;

	sync->down = store_directory(to) != NULL;
	remote = sync->down ? from : to;
	sync->local = as_directory(sync->down ? to : from);
	if (!sync->local) {
		err_set(err, EXIT_REFUSED, "neither '%s' nor '%s' is a directory", store_url(from),
			store_url(to));
		return err_hint(err, "use a directory on this machine in between");
	}
	if (sync->down && store_directory(from) && must_be_apart(from, to, err) < 0)
		return -1;
	return remote->backend->backend(remote, &sync->backend, err);
}

static int open_local(struct sync *sync, const char *remote_url, struct err **err)
{
	AUTO(auto_close) int root = -1;

	if (sync->down && !sync->options->dry_run) {
		if (staged_write_open(sync->local, &sync->staged, err) < 0)
			return -1;
		sync->root = staged_write_root(sync->staged);
	} else {
		int found = store_dir_root_open(sync->local, false, &root, err);

		if (found < 0)
			return -1;
		sync->own_root = sync->root = found > 0 ? TAKE_FD(root) : -1;
	}
	sync->manifest = manifest_open(sync->root, remote_url,
				       !sync->options->dry_run && !sync->options->once);
	return 0;
}

/* Handles the next keys, as many as there is room for. Returns false if a listing must arrive
 * first or on an error. */
static bool join_keys(struct sync *sync, struct err **err)
{
	for (int i = 0; i < STEPS && !sync->joined && sync_move_has_room(sync); i++) {
		int done = sync_join_step(sync, err);

		if (done <= 0)
			return false;
		if (sync_move_go_on(sync, false, err) < 0)
			return false;
	}
	return true;
}

static bool is_over(const struct sync *sync)
{
	return sync->joined && sync_move_is_idle(sync);
}

static void report_progress(struct sync *sync, struct mono *reported_at)
{
	if (!sync->options->progress || clock_mono_now().ms - reported_at->ms < PROGRESS_MS)
		return;
	*reported_at = clock_mono_now();
	sync->sum->stopped = !sync->options->progress(sync->options->arg, sync->sum);
}

static int run_turns(struct sync *sync, struct err **err)
{
	struct mono reported_at = { 0 };

	while (!is_over(sync) && !sync->sum->stopped) {
		bool more = join_keys(sync, err) && !sync->joined && sync_move_has_room(sync);

		if (*err || sync_move_go_on(sync, false, err) < 0)
			return -1;
		if (!is_over(sync))
			sync->backend->kind->turn(sync->backend, more ? 0 : TURN_MS);
		if (sync->err) {
			*err = TAKE(sync->err);
			return -1;
		}
		report_progress(sync, &reported_at);
	}
	return 0;
}

static int finish_sync(struct sync *sync, int result, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;

	/* Files that arrived whole are kept; a further error is ignored, since one is reported. */
	if (!is_over(sync) && sync->staged)
		(void)sync_move_go_on(sync, true, &ignored);
	err_freep(&ignored);
	if (sync->staged && staged_write_finish(sync->staged, result < 0 ? &ignored : err) < 0)
		result = -1;
	if (result == 0 && is_over(sync) && sync->manifest)
		manifest_close(sync->manifest, sync->options->only);
	if (sync->backend)
		sync->backend->kind->free(sync->backend);
	sync_slot_close(sync);
	sync_stage_close(sync);
	sync_join_close(sync);
	err_freep(&sync->err);
	manifest_freep(&sync->manifest);
	staged_write_freep(&sync->staged);
	auto_close(&sync->own_root);
	return result;
}

int sync_run(struct store *from, struct store *to, const struct sync_options *options,
	     struct sync_sum *ret, struct err **err)
{
	struct sync sync = {
		.options = options, .sum = ret, .begun = clock_utc_now(), .root = -1, .own_root = -1
	};
	int result;

	*ret = (struct sync_sum){ 0 };
	if (options->only && !store_key_fits(options->only, true))
		return err_set(err, EXIT_DEFECT, "invalid prefix '%s'", options->only);
	result = open_sides(&sync, from, to, err);
	if (result == 0)
		result = open_local(&sync, store_url(sync.down ? from : to), err);
	if (result == 0)
		result = sync_join_open(&sync, err);
	if (result == 0)
		result = run_turns(&sync, err);
	return finish_sync(&sync, result, err);
}
