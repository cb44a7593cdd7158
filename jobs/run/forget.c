/* Forgetting finished runs: see forget.h. */
#include "jobs/run/forget.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/base/text.h"
#include "jobs/run/lease_inside.h"
#include "jobs/store/work.h"

struct run_places {
	json_t *plan;
	bool begun, ended;
};

static void places_release(struct run_places *places)
{
	json_decref(places->plan);
}

static int note_place(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct run_places *places = arg;

	(void)row;
	(void)err;
	places->begun = true;
	if (ev && ev->kind == EV_RUN_CREATED && !places->plan)
		places->plan = json_incref(ev->plan);
	if (ev && ev->kind == EV_RUN_ENDED)
		places->ended = true;
	return 0;
}

static int look(struct journal *journal, const char *run, struct run_places *ret, struct err **err)
{
	if (journal_read(journal, run, 1, note_place, ret, err) < 0)
		return -1;
	if (!ret->begun || ret->ended)
		return 0;
	err_set(err, EXIT_REFUSED, "run %s goes on", run);
	return err_hint(err, "'stoker stop %s' ends it", run);
}

/* The folder of a run, opened without following a link beneath `root`: 1, 0 absent,
 * -1. */
static int open_folder(const char *root, const char *run, int *ret_fd, struct err **err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	AUTO(auto_close) int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int runs = top < 0 ? -1 : openat(top, "runs", flags);
	int fd = runs < 0 ? -1 : openat(runs, run, flags);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		err_set(err, EXIT_REFUSED,
			"'%s/runs/%s' is a link or no folder: nothing is removed", root, run);
		return err_hint(err, "look where it leads and remove it yourself");
	}
	if (fd < 0)
		return fs_error(err, errno, "cannot open '%s/runs/%s'", root, run);
	*ret_fd = fd;
	return 1;
}

/* The lease is in there, and outlives the rest. */
static bool is_lease(const char *name)
{
	return strcmp(name, LEASE_LOCK) == 0 || strcmp(name, LEASE_OBJECT) == 0;
}

/* Remove what is in the folder of a run, but the lease. */
static int empty_folder(const char *root, const char *run, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", root, run);
	const struct dirent *entry;
	int fd = -1, result = 0, found = open_folder(root, run, &fd, err);
	DIR *names;

	if (found <= 0)
		return found;
	names = fdopendir(fd);
	if (!names) {
		auto_close(&fd);
		return fs_error(err, errno, "cannot list '%s'", folder);
	}
	/* Removing a name does not hide others from this listing. */
	while (result == 0 && (errno = 0, entry = readdir(names))) {
		AUTO(auto_free) char *path = fs_join(folder, entry->d_name);

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_lease(entry->d_name))
			continue;
		result = fs_remove_tree(path, err);
	}
	if (result == 0 && errno)
		result = fs_error(err, errno, "cannot list '%s'", folder);
	closedir(names);
	return result;
}

/* ---- where there are no folders ---- */

struct doomed {
	char **keys;
	size_t count;
};

static void doomed_release(struct doomed *doomed)
{
	auto_strv(&doomed->keys);
}

static int note_doomed(void *arg, const struct store_object *object, struct err **err)
{
	struct doomed *doomed = arg;

	(void)err;
	if (is_lease(strrchr(object->key, '/') + 1))
		return 0;
	doomed->keys = mem_grow(doomed->keys, doomed->count + 2, sizeof *doomed->keys);
	doomed->keys[doomed->count++] = mem_copy(object->key);
	doomed->keys[doomed->count] = NULL;
	return 0;
}

/* Remove what begins like the folder of a run, but the lease. */
static int empty_prefix(struct store *store, const char *run, struct err **err)
{
	AUTO(doomed_release) struct doomed doomed = { 0 };
	AUTO(auto_free) char *prefix = mem_format("runs/%s/", run);

	if (store_list(store, prefix, note_doomed, &doomed, err) < 0)
		return -1;
	for (size_t i = 0; i < doomed.count; i++)
		if (store_delete(store, doomed.keys[i], err) < 0)
			return -1;
	return 0;
}

/* What is kept of the run at a place, in objects and in files. */
static int empty_place(const char *place, const char *run, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *work = NULL;

	if (place[0] == '/')
		return empty_folder(place, run, err);
	if (store_open(place, &store, err) < 0 || empty_prefix(store, run, err) < 0)
		return -1;
	work = work_folder(store);
	return empty_folder(work, run, err);
}

/* A checkpoint that somebody put there by checkpoint.url is not the run's own. */
static int check_checkpoints(const json_t *plan, const char *root, const char *run,
			     struct err **err)
{
	const json_t *url = js_path(plan, "checkpoint.url");
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", root, run);
	AUTO(auto_free) char *kept = NULL;
	size_t len = strlen(folder);

	if (!json_is_string(url))
		return 0;
	kept = mem_format("%s/%s", json_string_value(url), run);
	if (strncmp(kept, folder, len) != 0 || (kept[len] != '/' && kept[len] != '\0'))
		return 0;
	err_set(err, EXIT_REFUSED,
		"checkpoints of checkpoint.url lie in the folder of run %s: '%s'", run, kept);
	return err_hint(err, "move them elsewhere first");
}

static bool same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* The folder in the workspace; the plan may know none that can be reached. */
static int clear_workspace(const struct journal *journal, const json_t *plan, const char *run,
			   struct err **err)
{
	const char *workspace = plan ? js_str(plan, "workspace") : NULL;
	AUTO(auto_free) char *folder = NULL;

	if (check_checkpoints(plan, journal_url(journal), run, err) < 0)
		return -1;
	if (!workspace || strcmp(workspace, journal_url(journal)) == 0 ||
	    same_folder(workspace, journal_dir(journal)))
		return 0;
	if (check_checkpoints(plan, workspace, run, err) < 0 ||
	    empty_place(workspace, run, err) < 0)
		return -1;
	if (workspace[0] != '/')
		return 0;
	folder = mem_format("%s/runs/%s", workspace, run);
	if (rmdir(folder) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", folder);
	return 0;
}

int run_forget(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct err **err)
{
	AUTO(places_release) struct run_places before = { 0 }, places = { 0 };
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", journal_dir(journal), run);
	int unused = -1;

	if (!run_id_valid(run))
		return err_set(err, EXIT_DEFECT, "'%s' cannot be a run's id", run);
	/* Before the lease, because taking that leaves a trace, or follows a link;
	 * after it, because only then it holds. */
	if (look(journal, run, &before, err) < 0 ||
	    open_folder(journal_dir(journal), run, &unused, err) < 0)
		return -1;
	auto_close(&unused);
	if (lease_take(journal, run, rules, on_wait, arg, &lease, err) < 0 ||
	    look(journal, run, &places, err) < 0 ||
	    clear_workspace(journal, places.plan, run, err) < 0 || lease_keep(lease, err) < 0 ||
	    journal_forget(journal, run, err) < 0 ||
	    (journal_is_far(journal) && empty_prefix(journal_store(journal), run, err) < 0) ||
	    empty_folder(journal_dir(journal), run, err) < 0 || lease_remove(lease, err) < 0)
		return -1;
	/* Somebody may begin a run of that id again by now. */
	if (rmdir(folder) < 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", folder);
	return 0;
}

bool run_has_rests(const struct journal *journal, const char *run)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", journal_dir(journal), run);

	return run_id_valid(run) && fs_is_dir(folder);
}
