/* Finding the agent directory and publishing it: see agent.h. */
#include "jobs/run/plan/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/program.h"
#include "jobs/base/text/js.h"
#include "jobs/engine/delivery/agent_files.h"
#include "jobs/source/archive.h"

static char *find_agent(struct err **err)
{
	const char *given = getenv("STOKER_AGENT");
	AUTO(auto_free) char *program = given ? NULL : program_file("agent/stoker-node");
	AUTO(auto_free) char *self = NULL;

	if (given)
		return mem_copy(given);
	if (program)
		return fs_dirname(program);
	self = program_path();
	err_set(err, EXIT_REFUSED, "cannot find the node agent near '%s'", self ? self : "stoker");
	err_hint(err, "build or install all of stoker, or name the agent's folder in STOKER_AGENT");
	return NULL;
}

int agent_find(char **ret_folder, size_t *ret_files, struct err **err)
{
	AUTO(auto_free) char *folder = find_agent(err);
	AUTO(auto_free) char *prefix = NULL;
	json_auto_t *files = NULL;

	if (!folder || agent_files(folder, &files, &prefix, err) < 0)
		return -1;
	if (!json_object_get(files, AGENT_PROGRAM)) {
		err_set(err, EXIT_REFUSED, "the agent's folder '%s' has no '%s'", folder,
			AGENT_PROGRAM);
		return err_hint(err, "build or install all of stoker, or correct STOKER_AGENT");
	}
	*ret_files = json_object_size(files);
	*ret_folder = TAKE(folder);
	return 0;
}

int agent_digest(char ret[SHA256_HEX], struct err **err)
{
	AUTO(auto_free) char *folder = find_agent(err);
	AUTO(auto_free) char *program = folder ? fs_join(folder, "stoker-node") : NULL;
	uint64_t size;

	return program ? hash_sha256_file(program, ret, &size, err) : -1;
}

struct published {
	const char *prefix;
	json_t *files; /* name → digest; files that are already there are taken out */
};

static int drop_present(void *arg, const struct store_object *object, struct err **err)
{
	struct published *published = arg;

	(void)err;
	json_object_del(published->files, object->key + strlen(published->prefix));
	return 0;
}

/* Objects of a directory are 0600; these are programs and libraries to be run from it. */
static int make_executable(const struct store *workspace, const char *key, struct err **err)
{
	const char *directory = store_directory(workspace);
	AUTO(auto_free) char *path = directory ? fs_join(directory, key) : NULL;

	if (path && chmod(path, 0700) < 0)
		return fs_error(err, errno, "cannot make '%s' executable", path);
	return 0;
}

int agent_publish(struct store *workspace, char **ret_prefix, struct err **err)
{
	AUTO(auto_free) char *folder = find_agent(err);
	AUTO(auto_free) char *prefix = NULL;
	json_auto_t *files = NULL, *missing = NULL;
	struct published there;
	const char *name;
	json_t *digest;

	if (!folder || agent_files(folder, &files, &prefix, err) < 0)
		return -1;
	missing = json_copy(files);
	there = (struct published){ prefix, missing };
	/* A single listing, since a look at each file would be one request each. */
	if (store_list(workspace, prefix, drop_present, &there, err) < 0)
		return err_wrap(err, "cannot publish the node agent");
	json_object_foreach (files, name, digest) {
		AUTO(auto_free) char *from = fs_join(folder, name);
		AUTO(auto_free) char *key = mem_format("%s%s", prefix, name);

		if (json_object_get(missing, name) && store_upload(workspace, from, key, err) < 0)
			return err_wrap(err, "cannot publish the node agent");
		if (make_executable(workspace, key, err) < 0)
			return -1;
	}
	*ret_prefix = TAKE(prefix);
	return 0;
}

/* ---- the agent as one archive ---- */

#define ARCHIVE_END ".tar.gz"

/* Returns "agents/<digest>/" without its slash, and a dot: the beginning of its archives' keys. */
static char *archive_start(const char *prefix)
{
	return mem_format("%.*s.", (int)strlen(prefix) - 1, prefix);
}

static int take_archive(void *arg, const struct store_object *object, struct err **err)
{
	char **found = arg;
	size_t len = strlen(object->key), end = strlen(ARCHIVE_END);

	(void)err;
	if (len <= SHA256_HEX || strcmp(object->key + len - end, ARCHIVE_END) != 0)
		return 0;
	*found = mem_copy(object->key);
	return 1;
}

static int add_file(void *arg, const struct archive_member *member, struct archive_sink *sink,
		    struct err **err)
{
	AUTO(auto_free) char *path = fs_join(arg, member->path);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? fs_error(err, errno, "cannot open '%s'", path)
		      : archive_sink_add_file(sink, fd, path, err);
}

static bool is_program(const char *name)
{
	return strcmp(name, AGENT_PROGRAM) == 0 || strcmp(name, AGENT_START) == 0 ||
	       strcmp(name, AGENT_LOADER) == 0;
}

static int compare_members(const void *a, const void *b)
{
	const struct archive_member *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int pack_files(const char *folder, json_t *files, int fd, struct err **err)
{
	size_t count = 0, room = json_object_size(files);
	AUTO(auto_free) struct archive_member *members = mem_zero(room + 1, sizeof *members);
	const char *name;
	json_t *digest;

	json_object_foreach (files, name, digest) {
		AUTO(auto_free) char *path = fs_join(folder, name);
		struct stat st;

		if (stat(path, &st) < 0)
			return fs_error(err, errno, "cannot look at '%s'", path);
		members[count++] = (struct archive_member){
			.path = name,
			.mode = is_program(name) ? 0100755 : 0100644,
			.size = (uint64_t)st.st_size,
			.sha256 = json_string_value(digest),
		};
	}
	qsort(members, count, sizeof *members, compare_members);
	return archive_pack(fd, members, count, add_file, (void *)(uintptr_t)folder, err);
}

static int upload_archive(struct store *workspace, const char *start, const char *folder,
			  json_t *files, char **ret_key, struct err **err)
{
	AUTO(auto_close) int fd = fs_scratch(err);
	AUTO(auto_free) char *path = mem_format("/proc/self/fd/%d", fd);
	char hex[SHA256_HEX];
	uint64_t size;

	if (fd < 0 || pack_files(folder, files, fd, err) < 0 ||
	    hash_sha256_file(path, hex, &size, err) < 0)
		return -1;
	*ret_key = mem_format("%s%s" ARCHIVE_END, start, hex);
	return store_upload(workspace, path, *ret_key, err) < 0 ? -1 : 0;
}

int agent_publish_archive(struct store *workspace, const char *prefix, char **ret_key,
			  struct err **err)
{
	AUTO(auto_free) char *folder = find_agent(err);
	AUTO(auto_free) char *start = archive_start(prefix);
	AUTO(auto_free) char *now = NULL;
	AUTO(auto_free) char *key = NULL;
	json_auto_t *files = NULL;

	if (!folder || store_list(workspace, start, take_archive, &key, err) < 0)
		return -1;
	if (!key && (agent_files(folder, &files, &now, err) < 0 ||
		     upload_archive(workspace, start, folder, files, &key, err) < 0))
		return err_wrap(err, "cannot publish the node agent");
	*ret_key = TAKE(key);
	return 0;
}
