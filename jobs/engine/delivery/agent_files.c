/* Digest and download of an agent's files: see agent_files.h. */
#include "jobs/engine/delivery/agent_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"

#define AGENT_FILES_MAX 200
#define DIGEST_TEXT     16 /* hex digits of the digest that a prefix holds */

static int digest_folder(const char *root, const char *below, json_t *files, struct err **err)
{
	AUTO(auto_free) char *path = below[0] ? fs_join(root, below) : mem_copy(root);
	DIR *dir = opendir(path);
	struct dirent *entry;
	int result = 0;

	if (!dir)
		return fs_error(err, errno, "cannot read the agent's folder '%s'", path);
	while (result == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
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
					 "'%s' is not an agent folder: too many files", root);
		else
			result = hash_sha256_file(file, hex, &size, err);
		if (result == 0)
			js_put_str(files, name, hex);
	}
	/* Half of the files would be another agent. */
	if (result == 0 && errno)
		result = fs_error(err, errno, "cannot read the agent's folder '%s'", path);
	closedir(dir);
	return result;
}

int agent_files(const char *folder, json_t **ret_files, char **ret_prefix, struct err **err)
{
	json_auto_t *files = json_object();
	char hex[SHA256_HEX];

	if (digest_folder(folder, "", files, err) < 0)
		return -1;
	js_digest(files, hex);
	*ret_prefix = mem_format("agents/%.*s/", DIGEST_TEXT, hex);
	*ret_files = json_incref(files);
	return 0;
}

/* ---- fetching ---- */

struct agent_files_fetch {
	struct store *store;
	const char *prefix, *folder;
	char **names; /* relative to the prefix */
	size_t count;
};

static void fetch_release(struct agent_files_fetch *fetch)
{
	auto_strv(&fetch->names);
}

static int add_name(void *arg, const struct store_object *object, struct err **err)
{
	struct agent_files_fetch *fetch = arg;

	if (fetch->count >= AGENT_FILES_MAX)
		return err_set(err, EXIT_REFUSED, "'%s' is not an agent folder: too many files",
			       fetch->prefix);
	fetch->names = mem_grow(fetch->names, fetch->count + 2, sizeof *fetch->names);
	fetch->names[fetch->count++] = mem_copy(object->key + strlen(fetch->prefix));
	fetch->names[fetch->count] = NULL;
	return 0;
}

/* Fetches one file: keys of a store hold no "..", so the file stays beneath the folder. */
static int fetch_one(const struct agent_files_fetch *fetch, const char *name, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%s%s", fetch->prefix, name);
	AUTO(auto_free) char *path = fs_join(fetch->folder, name);
	AUTO(auto_free) char *above = fs_dirname(path);
	int there;

	if (fs_mkdirs(above, err) < 0)
		return -1;
	there = store_download(fetch->store, key, path, err);
	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "'%s' is gone from '%s'", key,
			       store_url(fetch->store));
	if (chmod(path, 0700) < 0)
		return fs_error(err, errno, "cannot make '%s' executable", path);
	return 0;
}

static int fetch_all(struct store *store, const char *agent_key, const char *folder,
		     struct err **err)
{
	AUTO(fetch_release)
	struct agent_files_fetch fetch = { .store = store, .prefix = agent_key, .folder = folder };
	AUTO(auto_free) char *prefix = NULL;
	json_auto_t *files = NULL;

	if (store_list(store, agent_key, add_name, &fetch, err) < 0 || fs_mkdirs(folder, err) < 0)
		return -1;
	for (size_t i = 0; i < fetch.count; i++)
		if (fetch_one(&fetch, fetch.names[i], err) < 0)
			return -1;
	if (agent_files(folder, &files, &prefix, err) < 0)
		return -1;
	if (strcmp(prefix, agent_key) == 0)
		return 0;
	err_set(err, EXIT_REFUSED,
		"the agent at '%s' in '%s' does not match the digest in its name", agent_key,
		store_url(store));
	return err_hint(
		err, "remove all objects that begin with '%s' there; the agent is uploaded again",
		agent_key);
}

/* Another process may have finished first: both copies are equal. */
static int put_in_place(const char *fresh, const char *whole, struct err **err)
{
	int failures = 0;

	while (rename(fresh, whole) < 0) {
		int failed = errno;

		if (fs_is_dir(whole))
			return 0;
		errno = failed;
		if (!err_try_again(&failures))
			return fs_error(err, failed, "cannot make '%s'", whole);
	}
	return 0;
}

int agent_fetch(struct store *store, const char *agent_key, const char *folder, struct err **err)
{
	AUTO(auto_free) char *whole = mem_copy(folder);
	AUTO(auto_free) char *fresh = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	size_t len = strlen(whole);
	char chance[17];
	int result;

	while (len > 1 && whole[len - 1] == '/')
		whole[--len] = '\0';
	if (fs_is_dir(whole))
		return 0;
	hash_random_hex(8, chance);
	fresh = mem_format("%s.%s", whole, chance);
	result = fetch_all(store, agent_key, fresh, err);
	if (result == 0)
		result = put_in_place(fresh, whole, err);
	if (fs_is_dir(fresh))
		(void)!fs_remove_tree(fresh, &ignored);
	return result < 0 ? err_wrap(err, "cannot fetch the node agent") : 0;
}
