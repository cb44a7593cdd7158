/* Finding the agent directory and publishing it: see agent.h. */
#include "jobs/run/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/base/json.h"
#include "jobs/engine/agent_files.h"

static char *own_folder(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

	if (len <= 0)
		return mem_copy(".");
	path[len] = '\0';
	return fs_dirname(path);
}

char *program_beside(const char *name)
{
	/* Where it was built, and where it was installed. */
	static const char *const places[] = { ".", "../lib/stoker" };
	AUTO(auto_free) char *folder = own_folder();

	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		AUTO(auto_free) char *place = fs_join(folder, places[i]);
		AUTO(auto_free) char *program = fs_join(place, name);

		if (fs_exists(program))
			return TAKE(program);
	}
	return NULL;
}

static char *find_agent(struct err **err)
{
	const char *given = getenv("STOKER_AGENT");
	AUTO(auto_free) char *program = given ? NULL : program_beside("agent/stoker-node");
	AUTO(auto_free) char *folder = own_folder();

	if (given)
		return mem_copy(given);
	if (program)
		return fs_dirname(program);
	err_set(err, EXIT_REFUSED, "cannot find the node agent near '%s'", folder);
	err_hint(err,
		 "build or install stoker as a whole, or name the agent's folder in STOKER_AGENT");
	return NULL;
}

struct published {
	const char *prefix;
	json_t *files; /* name → digest: those that are there are taken out */
};

static int note_there(void *arg, const struct store_object *object, struct err **err)
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
	/* One listing, where a question a file would be one request each. */
	if (store_list(workspace, prefix, note_there, &there, err) < 0)
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
