/* Finding the agent directory and publishing it: see agent.h. */
#include "jobs/run/agent.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/json.h"

#define AGENT_FILES_MAX 200

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

/* Digests of all files of a folder and its folder lib: name → SHA-256. */
static int digest_folder(const char *root, const char *below, json_t *files, struct err **err)
{
	AUTO(auto_free) char *path = below[0] ? fs_join(root, below) : mem_copy(root);
	DIR *dir = opendir(path);
	struct dirent *entry;
	int result = 0;

	if (!dir)
		return fs_error(err, errno, "cannot read the agent's folder '%s'", path);
	while (result == 0 && (entry = readdir(dir)) != NULL) {
		AUTO(auto_free)
		char *name = below[0] ? fs_join(below, entry->d_name) : mem_copy(entry->d_name);
		AUTO(auto_free) char *file = fs_join(root, name);
		char hex[SHA256_HEX];
		uint64_t size;

		if (entry->d_name[0] == '.')
			continue;
		if (fs_is_dir(file)) {
			if (!below[0])
				result = digest_folder(root, name, files, err);
			continue;
		}
		if (json_object_size(files) >= AGENT_FILES_MAX)
			result = err_set(err, EXIT_REFUSED,
					 "'%s' is no agent folder: too many files", root);
		else
			result = sha256_file(file, hex, &size, err);
		if (result == 0)
			js_put_str(files, name, hex);
	}
	closedir(dir);
	return result;
}

int agent_publish(struct store *workspace, char **ret_prefix, struct err **err)
{
	AUTO(auto_free) char *folder = find_agent(err);
	AUTO(auto_free) char *prefix = NULL;
	json_auto_t *files = json_object();
	const char *name;
	json_t *digest;
	char hex[SHA256_HEX];

	if (!folder || digest_folder(folder, "", files, err) < 0)
		return -1;
	js_digest(files, hex);
	prefix = mem_format("agents/%.16s/", hex);
	json_object_foreach (files, name, digest) {
		AUTO(auto_free) char *from = fs_join(folder, name);
		AUTO(auto_free) char *key = mem_format("%s%s", prefix, name);
		AUTO(auto_free) char *to = fs_join(store_url(workspace), key);

		if (store_upload(workspace, from, key, err) < 0)
			return err_wrap(err, "cannot publish the node agent");
		/* Objects are 0600; these are programs and libraries to be run. */
		if (chmod(to, 0700) < 0)
			return fs_error(err, errno, "cannot make '%s' executable", to);
	}
	*ret_prefix = TAKE(prefix);
	return 0;
}
