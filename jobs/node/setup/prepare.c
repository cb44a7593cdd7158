/* Gets source, folders and program ready: see prepare.h. */
#include "jobs/node/setup/prepare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/source/archive.h"

/* Largest distance between a name and what was meant. */
#define DISTANCE_MAX 2

static int unpack(const struct agent_config *config, struct store *store, struct err **err)
{
	AUTO(auto_free) char *bundle = fs_join(config->dir, "bundle");
	int there;

	if (!config->source)
		return fs_mkdirs(config->src, err);
	there = store_download(store, config->source, bundle, err);
	if (there < 0)
		return err_wrap(err, "cannot fetch the source");
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "the source bundle '%s' is not in '%s'",
			       config->source, store_url(store));
	if (archive_unpack(bundle, config->src, err) < 0)
		return err_wrap(err, "cannot unpack the source");
	unlink(bundle);
	return 0;
}

/* Enters a folder of the source tree, made if absent, never through a link: a link of the
 * repository must not lead our own links elsewhere. */
static int enter(int *dir, const char *part, struct err **err)
{
	int next;

	if (mkdirat(*dir, part, 0700) < 0 && errno != EEXIST)
		return fs_error(err, errno, "cannot make the folder '%s'", part);
	next = openat(*dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return fs_error(err, errno, "cannot enter the folder '%s'", part);
	auto_close(dir);
	*dir = next;
	return 0;
}

static int make_link(const char *src, const char *name, const char *target, struct err **err)
{
	AUTO(auto_free) char *path = mem_copy(name);
	AUTO(auto_close) int dir = open(src, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *save = NULL, *part = strtok_r(path, "/", &save);

	if (dir < 0)
		return fs_error(err, errno, "cannot open '%s'", src);
	if (!part || name[0] == '/')
		return err_set(err, EXIT_DEFECT, "the name is not relative");
	for (;;) {
		char *next = strtok_r(NULL, "/", &save);

		if (strcmp(part, "..") == 0 || strcmp(part, ".") == 0)
			return err_set(err, EXIT_DEFECT, "the name is not plain");
		if (!next)
			break;
		if (enter(&dir, part, err) < 0)
			return -1;
		part = next;
	}
	if (symlinkat(target, dir, part) < 0)
		return fs_error(err, errno, "cannot make the link");
	return 0;
}

static int make_links(const struct agent_config *config, struct err **err)
{
	const json_t *pair;
	size_t i;

	json_array_foreach (config->order->links, i, pair) {
		const char *name = json_string_value(json_array_get(pair, 0));
		const char *target = json_string_value(json_array_get(pair, 1));

		if (make_link(config->src, name, target, err) < 0)
			return err_wrap(err, "cannot add the link '%s'", name);
	}
	return 0;
}

/* Scripts of some kinds look for a file that names the newest checkpoint. */
static int point_to_checkpoint(const struct agent_config *config, const char *path,
			       struct err **err)
{
	const char *name = config->order->checkpoint.kind;
	const struct ckpt_kind *kind = checkpoint_kind_find(name ? name : "auto");
	struct ckpt ckpt = { 0 };
	int done;

	if (!kind)
		return 0;
	if (checkpoint_prove(path, kind, &ckpt, err) < 0)
		return err_wrap(err, "cannot look at the checkpoint to resume from");
	done = ckpt.complete ? checkpoint_point(config->checkpoint, &ckpt, err) : 0;
	checkpoint_release(&ckpt);
	return done;
}

int prepare_checkpoint(const struct agent_config *config, struct err **err)
{
	AUTO(auto_free) char *target = agent_config_resumed(config);
	AUTO(auto_free) char *link = NULL;
	size_t len;

	if (!target)
		return 0;
	for (len = strlen(target); len > 1 && target[len - 1] == '/'; len--)
		target[len - 1] = '\0';
	link = fs_join(config->checkpoint, fs_basename(target));
	if (symlink(target, link) < 0 && errno != EEXIST)
		return fs_error(err, errno, "cannot link the checkpoint '%s' into '%s'", target,
				config->checkpoint);
	return point_to_checkpoint(config, target, err);
}

int prepare_folders(const struct agent_config *config, struct store *store, struct err **err)
{
	if (fs_remove_tree(config->src, err) < 0)
		return err_wrap(err, "cannot remove the files of an earlier start");
	prepare_discard(config);
	if (unpack(config, store, err) < 0 || make_links(config, err) < 0)
		return -1;
	if (fs_mkdirs(config->checkpoint, err) < 0)
		return -1;
	return fs_mkdirs(config->output, err);
}

void prepare_discard(const struct agent_config *config)
{
	AUTO(auto_free) char *scratch = fs_join(config->dir, "scratch");
	AUTO(err_freep) struct err *ignored = NULL;

	/* A failed removal costs space, nothing else: nobody looks there. */
	if (config->scratch)
		(void)!fs_remove_tree(scratch, &ignored);
}

/* Returns the nearest name in the folders of PATH, NULL if none is near. The caller frees it. */
static char *nearest(const char *program, const char *path)
{
	size_t best = strlen(program) / 2 < DISTANCE_MAX ? strlen(program) / 2 : DISTANCE_MAX;
	AUTO(auto_free) char *folders = mem_copy(path);
	char *save = NULL, *name = NULL;

	for (char *folder = strtok_r(folders, ":", &save); folder;
	     folder = strtok_r(NULL, ":", &save)) {
		DIR *dir = opendir(folder);
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			size_t distance = text_distance(program, entry->d_name, DISTANCE_MAX);

			if (distance == 0 || distance > best ||
			    (name && (distance == best && strcmp(entry->d_name, name) >= 0)))
				continue;
			best = distance;
			free(name);
			name = mem_copy(entry->d_name);
		}
		if (dir)
			closedir(dir);
	}
	return name;
}

/* Returns a file of that name that merely cannot be executed, NULL if there is none. The
 * caller frees it. */
static char *find_file(const char *program, const char *cwd, const char *path)
{
	AUTO(auto_free) char *folders = mem_copy(path);
	char *save = NULL;

	if (strchr(program, '/')) {
		AUTO(auto_free) char *file = fs_join(cwd, program);

		return fs_exists(file) ? TAKE(file) : NULL;
	}
	for (char *folder = strtok_r(folders, ":", &save); folder;
	     folder = strtok_r(NULL, ":", &save)) {
		AUTO(auto_free) char *there = fs_join(folder, program);
		AUTO(auto_free) char *file = fs_join(cwd, there);

		if (fs_exists(file) && !fs_is_dir(file))
			return TAKE(file);
	}
	return NULL;
}

static int missing(const struct agent_config *config, const char *program, const char *path,
		   struct err **err)
{
	AUTO(auto_free) char *meant = NULL;

	if (strchr(program, '/')) {
		err_set(err, EXIT_RUN_FAILED, "cannot find '%s'%s", program,
			program[0] == '/' ? "" : " in the source");
		if (program[0] != '/' && config->source)
			return err_hint(err, "check 'command', and that git tracks the file and "
					     "'source.include' covers it");
		return err_hint(err, "correct the path in 'command'");
	}
	meant = nearest(program, path);
	err_set(err, EXIT_RUN_FAILED, "cannot find '%s' in PATH (%s)", program, path);
	if (meant)
		return err_hint(err, "did you mean '%s'?", meant);
	return err_hint(err,
			"install the program, or put its folder into PATH before you start stoker");
}

int prepare_program(const struct agent_config *config, const char *program, const char *path,
		    char **ret, int *ret_exit, struct err **err)
{
	AUTO(auto_free) char *found = proc_find_program(program, config->src, path);
	AUTO(auto_free) char *file = NULL;

	if (found) {
		*ret = TAKE(found);
		return 0;
	}
	*ret_exit = 0;
	if (errno != ENOENT)
		return fs_error(err, errno, "cannot look for '%s'", program);
	path = path ? path : "";
	file = *program ? find_file(program, config->src, path) : NULL;
	if (!file) {
		*ret_exit = AGENT_EXIT_NO_FILE;
		return missing(config, program, path, err);
	}
	*ret_exit = AGENT_EXIT_NO_EXEC;
	if (fs_is_dir(file)) {
		err_set(err, EXIT_RUN_FAILED, "cannot execute '%s': is a folder", program);
		return err_hint(err, "name a program in 'command'");
	}
	err_set(err, EXIT_RUN_FAILED, "cannot execute '%s': not an executable file", program);
	return err_hint(err, "make the file executable (chmod +x), or put its interpreter before "
			     "it in 'command'");
}
