/* Finds and makes the folder that goes with a store: see local_store_dir.h. */
#include "jobs/store/local_store_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"

#define DIGEST_TEXT 32 /* hex digits of the digest that name a folder */

char *local_store_root(void)
{
	const char *given = getenv(WORK_VARIABLE), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME"), *temp = getenv("TMPDIR");

	if (given && *given)
		return fs_absolute(given);
	if (state && state[0] == '/')
		return fs_join(state, "stoker/work");
	if (home && home[0] == '/' && fs_is_dir(home))
		return fs_join(home, ".local/state/stoker/work");
	return mem_format("%s/stoker-%ld", temp && temp[0] == '/' ? temp : "/tmp", (long)geteuid());
}

char *local_store_dir(const struct store *store)
{
	const char *directory = store_directory(store), *url = store_url(store);
	AUTO(auto_free) char *root = NULL;
	char hex[SHA256_HEX];

	if (directory)
		return mem_copy(directory);
	root = local_store_root();
	hash_sha256_hex(url, strlen(url), hex);
	hex[DIGEST_TEXT] = '\0';
	return fs_join(root, hex);
}

/* In /tmp another user could have made the folder first. */
static int check_owner(const char *path, struct err **err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return fs_error(err, errno, "cannot look at '%s'", path);
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return 0;
	err_set(err, EXIT_REFUSED, "the work folder '%s' is not this user's alone", path);
	return err_hint(err, "remove the folder, or name another one in " WORK_VARIABLE);
}

int local_store_dir_make(const struct store *store, char **ret, struct err **err)
{
	AUTO(auto_free) char *folder = local_store_dir(store);

	if (!store_directory(store)) {
		AUTO(auto_free) char *root = local_store_root();

		if (fs_mkdirs(folder, err) < 0) {
			if (!(*err)->hint)
				err_hint(err, "name a folder that can be made in " WORK_VARIABLE);
			return err_wrap(err, "cannot make the work folder");
		}
		if (check_owner(root, err) < 0 || check_owner(folder, err) < 0)
			return -1;
	}
	*ret = TAKE(folder);
	return 0;
}
