/* Forgetting finished runs: see forget.h. */
#include "jobs/run/journal/forget.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/journal/keepsakes.h"
#include "jobs/run/journal/lease_internal.h"
#include "jobs/store/local_store_dir.h"

/* The file in the folder of a forgotten run, in the state directory. */
#define KEPT_FILE "kept.json"
#define KEPT_MAX  ((size_t)1 << 20)

struct run_places {
	json_t *plan;
	bool begun, ended, damaged;
};

static void places_release(struct run_places *places)
{
	json_decref(places->plan);
}

static int take_plan(void *arg, const struct event *ev, json_t *row, struct err **err)
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

static int check_ended(struct journal *journal, const char *run, struct run_places *ret,
		       struct err **err)
{
	if (journal_read(journal, run, 1, take_plan, ret, err) < 0) {
		if (!(*err)->damage)
			return -1;
		/* No driver can go on with a damaged run, so its end need not be journalled. */
		err_freep(err);
		ret->damaged = true;
		if (journal_salvage(journal, run, take_plan, ret, err) < 0)
			return -1;
	}
	if (!ret->begun || ret->ended || ret->damaged)
		return 0;
	err_set(err, EXIT_REFUSED, "run %s has not ended", run);
	return err_hint(err, "'stoker stop %s' ends it", run);
}

/* Opens the folder of a run without following a link beneath `root`. Returns 1, 0 if absent, -1. */
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
			"'%s/runs/%s' is a link or not a folder; nothing is removed", root, run);
		return err_hint(err, "check the target of the link and remove it by hand");
	}
	if (fd < 0)
		return fs_error(err, errno, "cannot open '%s/runs/%s'", root, run);
	*ret_fd = fd;
	return 1;
}

/* State of one call of run_forget(). */
struct forget_removal {
	struct journal *journal;
	const char *run;
	const json_t *plan; /* NULL if not known any more */
	const struct forget_options *options;
	json_t *kept; /* owned; of all places */
	uint64_t files, bytes;
};

static void removal_release(struct forget_removal *removal)
{
	json_decref(removal->kept);
}

/* The lease outlives the rest, and so does the file that lists what is kept. */
static bool outlives(const struct forget_removal *removal, const char *name)
{
	return strcmp(name, LEASE_LOCK) == 0 || strcmp(name, LEASE_OBJECT) == 0 ||
	       (strcmp(name, KEPT_FILE) == 0 && json_array_size(removal->kept) > 0);
}

static int remove_path(struct forget_removal *removal, const char *path, struct err **err)
{
	uint64_t files, bytes;

	if (fs_measure(path, &files, &bytes, err) < 0)
		return -1;
	removal->files += files;
	removal->bytes += bytes;
	return removal->options->dry_run ? 0 : fs_remove_tree(path, err);
}

static int clear_below(struct forget_removal *removal, const char *folder, const char *key,
		       const json_t *kept, struct err **err);

static int clear_entry(struct forget_removal *removal, const char *folder, const char *key,
		       const char *name, const json_t *kept, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(auto_free) char *own = *key ? fs_join(key, name) : mem_copy(name);
	enum keepsake_is what = keepsakes_have(kept, own);
	struct stat st;

	if (what == KEEPSAKE_IS || (!*key && outlives(removal, name)))
		return 0;
	if (what == KEEPSAKE_ABOVE && lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot look at '%s'", path);
	if (what == KEEPSAKE_ABOVE && S_ISDIR(st.st_mode))
		return clear_below(removal, path, own, kept, err);
	return remove_path(removal, path, err);
}

/* Removes the entries of an open folder, except what is kept. Takes `fd`. */
static int clear_open(struct forget_removal *removal, int fd, const char *folder, const char *key,
		      const json_t *kept, struct err **err)
{
	const struct dirent *entry;
	int result = 0;
	DIR *names = fdopendir(fd);

	if (!names) {
		auto_close(&fd);
		return fs_error(err, errno, "cannot list '%s'", folder);
	}
	/* Removing a name does not hide others from this listing. */
	while (result == 0 && (errno = 0, entry = readdir(names)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = clear_entry(removal, folder, key, entry->d_name, kept, err);
	if (result == 0 && errno)
		result = fs_error(err, errno, "cannot list '%s'", folder);
	closedir(names);
	return result;
}

static int clear_below(struct forget_removal *removal, const char *folder, const char *key,
		       const json_t *kept, struct err **err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return fs_error(err, errno, "cannot open '%s'", folder);
	return clear_open(removal, fd, folder, key, kept, err);
}

/* Clears the folder of the run beneath `root`. `twin`: the store that it goes with, or NULL. */
static int clear_folder(struct forget_removal *removal, const char *root, struct store *twin,
			struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", root, removal->run);
	json_auto_t *kept = json_array();
	int fd = -1, found = open_folder(root, removal->run, &fd, err);

	if (found <= 0)
		return found;
	if (!removal->options->with_checkpoints &&
	    keepsakes_in_folder(removal->plan, root, removal->run, twin, kept, err) < 0) {
		auto_close(&fd);
		return -1;
	}
	json_array_extend(removal->kept, kept);
	return clear_open(removal, fd, folder, "", kept, err);
}

/* ---- removal in object stores ---- */

struct doomed {
	struct forget_removal *removal;
	const json_t *kept;
	char **keys;
	size_t count;
};

static void doomed_release(struct doomed *doomed)
{
	auto_strv(&doomed->keys);
}

static int add_doomed(void *arg, const struct store_object *object, struct err **err)
{
	struct doomed *doomed = arg;
	const char *key = object->key + strlen("runs/") + strlen(doomed->removal->run) + 1;

	(void)err;
	if (outlives(doomed->removal, key) || keepsakes_have(doomed->kept, key) == KEEPSAKE_IS)
		return 0;
	doomed->removal->files++;
	doomed->removal->bytes += object->size;
	auto_strv_add(&doomed->keys, &doomed->count, object->key);
	return 0;
}

/* Removes the objects beneath the prefix of the run, except what is kept. */
static int clear_prefix(struct forget_removal *removal, struct store *store, struct err **err)
{
	json_auto_t *kept = json_array();
	AUTO(doomed_release) struct doomed doomed = { .removal = removal, .kept = kept };
	AUTO(auto_free) char *prefix = mem_format("runs/%s/", removal->run);

	if (!removal->options->with_checkpoints &&
	    keepsakes_in_store(removal->plan, store, removal->run, kept, err) < 0)
		return -1;
	json_array_extend(removal->kept, kept);
	if (store_list(store, prefix, add_doomed, &doomed, err) < 0)
		return -1;
	for (size_t i = 0; i < doomed.count && !removal->options->dry_run; i++)
		if (store_delete(store, doomed.keys[i], err) < 0)
			return -1;
	return 0;
}

/* Clears the run at a workspace: its objects and its files. */
static int clear_at(struct forget_removal *removal, const char *place, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *work = NULL;

	if (place[0] == '/')
		return clear_folder(removal, place, NULL, err);
	if (store_open(place, &store, err) < 0)
		return -1;
	work = local_store_dir(store);
	/* Files first: the objects tell which of them are copies. */
	if (clear_folder(removal, work, store, err) < 0)
		return -1;
	return clear_prefix(removal, store, err);
}

/* Refuses if checkpoint.url points into the folder of the run: a checkpoint there is not the run's
 * own. */
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

/* Clears the folder in the workspace; the plan may be lost, or have no workspace that can be
 * reached. */
static int clear_workspace(struct forget_removal *removal, struct err **err)
{
	const struct journal *journal = removal->journal;
	const json_t *plan = removal->plan;
	const char *run = removal->run, *workspace = plan ? js_str(plan, "workspace") : NULL;
	AUTO(auto_free) char *usual = NULL;
	AUTO(auto_free) char *folder = NULL;

	/* The plan of a damaged run may be lost. */
	if (!workspace && !journal_is_remote(journal))
		workspace = usual = fs_join(journal_dir(journal), "workspace");
	if (check_checkpoints(plan, journal_url(journal), run, err) < 0)
		return -1;
	if (!workspace || strcmp(workspace, journal_url(journal)) == 0 ||
	    same_folder(workspace, journal_dir(journal)))
		return 0;
	if (check_checkpoints(plan, workspace, run, err) < 0 ||
	    clear_at(removal, workspace, err) < 0)
		return -1;
	if (workspace[0] != '/' || removal->options->dry_run)
		return 0;
	folder = mem_format("%s/runs/%s", workspace, run);
	if (rmdir(folder) < 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
		return fs_error(err, errno, "cannot remove '%s'", folder);
	return 0;
}

/* ---- the list of what is kept ---- */

static char *kept_path(const struct journal *journal, const char *run)
{
	return mem_format("%s/runs/%s/" KEPT_FILE, journal_dir(journal), run);
}

/* Returns 1 and the parts of the plan that were kept, 0 if nothing was kept, -1. */
static int read_kept(const struct journal *journal, const char *run, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *path = kept_path(journal, run);
	AUTO(auto_free) char *key = mem_format("runs/%s/" KEPT_FILE, run);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(KEPT_MAX);
	AUTO(err_freep) struct err *why = NULL;
	int there = 1;

	if (journal_is_remote(journal))
		there = store_get(journal_store(journal), key, KEPT_MAX, &text, NULL, err);
	else if (fs_read(path, KEPT_MAX, &text, &why) < 0)
		there = why->os_errno == ENOENT ? 0 : -1;
	if (there < 0 && why)
		*err = TAKE(why);
	return there <= 0 ? there : js_parse(text.text, text.len, path, ret, err) < 0 ? -1 : 1;
}

/* Without the journal this file alone tells where the kept data is. */
static int write_kept(const struct forget_removal *removal, struct err **err)
{
	AUTO(auto_free) char *path = kept_path(removal->journal, removal->run);
	AUTO(auto_free) char *key = mem_format("runs/%s/" KEPT_FILE, removal->run);
	json_auto_t *kept = json_object();
	AUTO(auto_free) char *text = NULL;

	if (json_array_size(removal->kept) == 0 || removal->options->dry_run)
		return 0;
	js_put(kept, "v", json_integer(1));
	js_put_str(kept, "workspace", js_str(removal->plan, "workspace"));
	js_put(kept, "checkpoint", json_incref(json_object_get(removal->plan, "checkpoint")));
	js_put(kept, "kept", json_incref(removal->kept));
	text = js_line(kept);
	if (journal_is_remote(removal->journal))
		return store_put(journal_store(removal->journal), key, text, strlen(text), err);
	return fs_write_atomic(path, text, strlen(text), 0600, err);
}

int run_find_kept(const struct journal *journal, const char *run, struct err **err)
{
	json_auto_t *kept = NULL;

	return text_run_id_valid(run) ? read_kept(journal, run, &kept, err) : 0;
}

/* ---- the whole run ---- */

static json_t *summary_json(const struct forget_removal *removal)
{
	json_t *ret = json_object(), *one;
	size_t i;

	js_put(ret, "files", json_integer((json_int_t)removal->files));
	js_put(ret, "size_bytes", json_integer((json_int_t)removal->bytes));
	json_array_foreach (removal->kept, i, one)
		json_object_del(one, "keys");
	js_put(ret, "kept", json_incref(removal->kept));
	return ret;
}

/* Clears the run's part of the state. */
static int clear_state(struct forget_removal *removal, struct err **err)
{
	struct journal *journal = removal->journal;

	if (journal_is_remote(journal) && clear_prefix(removal, journal_store(journal), err) < 0)
		return -1;
	return clear_folder(removal, journal_dir(journal), NULL, err);
}

/* Clears both folders of the run, and its objects. The removal from the state is counted, and the
 * list of what is kept is written, before the journal is removed. */
static int clear_all(struct forget_removal *removal, struct lease *lease, struct err **err)
{
	struct forget_options counting = *removal->options;
	const struct forget_options *options = removal->options;
	AUTO(removal_release) struct forget_removal real = *removal;
	int counted;

	real.kept = NULL;
	if (clear_workspace(removal, err) < 0)
		return -1;
	counting.dry_run = true;
	removal->options = &counting;
	counted = clear_state(removal, err);
	removal->options = options;
	if (counted < 0 || options->dry_run)
		return counted;
	real.kept = json_deep_copy(removal->kept);
	if (write_kept(removal, err) < 0 || lease_keep(lease, err) < 0 ||
	    journal_forget(removal->journal, removal->run, err) < 0 || clear_state(&real, err) < 0)
		return -1;
	return lease_remove(lease, err);
}

int run_forget(struct journal *journal, const char *run, const struct forget_options *options,
	       const struct lease_rules *given, lease_wait_fn on_wait, void *arg, json_t **ret,
	       struct err **err)
{
	struct lease_rules rules = given ? *given : LEASE_RULES;
	AUTO(places_release) struct run_places before = { 0 }, places = { 0 };
	AUTO(removal_release)
	struct forget_removal removal = { journal, run, NULL, options, json_array(), 0, 0 };
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", journal_dir(journal), run);
	json_auto_t *kept = NULL;
	int unused = -1;

	if (!text_run_id_valid(run))
		return err_set(err, EXIT_DEFECT, "invalid run id '%s'", run);
	/* Checked before the lease, because taking it leaves a trace, or follows a link; and after
	 * it, because only then the answer holds. */
	if (check_ended(journal, run, &before, err) < 0 ||
	    open_folder(journal_dir(journal), run, &unused, err) < 0)
		return -1;
	auto_close(&unused);
	rules.over_damage = true;
	if (!options->dry_run && lease_take(journal, run, &rules, on_wait, arg, &lease, err) < 0)
		return -1;
	if (check_ended(journal, run, &places, err) < 0 || read_kept(journal, run, &kept, err) < 0)
		return -1;
	removal.plan = places.plan ? places.plan : kept;
	if (clear_all(&removal, lease, err) < 0)
		return -1;
	*ret = summary_json(&removal);
	/* A run of that id may have begun again by now. */
	if (!options->dry_run && rmdir(folder) < 0 && errno != ENOTEMPTY && errno != EEXIST &&
	    errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", folder);
	return 0;
}

bool run_has_rests(const struct journal *journal, const char *run)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", journal_dir(journal), run);
	AUTO(err_freep) struct err *unknown = NULL;

	return text_run_id_valid(run) &&
	       (fs_is_dir(folder) || run_find_kept(journal, run, &unknown) != 0);
}
