/* The cache of a command line: see cache_args.h. */
#include "cmd/args/cache_args.h"

#include "jobs/base/fs/fs.h"

int cache_args_open(const char *url, struct store **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (store_open(url, &store, err) < 0)
		return -1;
	if (store_directory(store) && !fs_is_dir(store_directory(store))) {
		err_set(err, EXIT_REFUSED, "no cache directory '%s'", store_directory(store));
		return err_hint(err, "name the directory that compile.cache_url names");
	}
	*ret = TAKE(store);
	return 0;
}
