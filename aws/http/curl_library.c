/* Loading libcurl when it is needed: see curl_library.h. */
#include "aws/http/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "jobs/base/fs/fs.h"

/* The interface has been the same since 2006, in every version. */
#define LIBRARY "libcurl.so.4"

struct curl_library curl_library;

static int not_there(const char *why, struct err **err)
{
	err_set(err, EXIT_REFUSED, "cannot speak HTTP: %s", why ? why : "libcurl cannot be loaded");
	return err_hint(err, "install " LIBRARY " (on Debian: the package libcurl4)");
}

static int load(struct err **err)
{
	struct curl_library loaded;
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *found;

	if (!handle)
		return not_there(dlerror(), err);
		/* ISO C has no other conversion from a data pointer to a function pointer. */
#define FUNCTION(name)                                                                             \
	found = dlsym(handle, "curl_" #name);                                                      \
	if (!found)                                                                                \
		return not_there(dlerror(), err);                                                  \
	memcpy(&loaded.name, &found, sizeof found);
	LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
	if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return not_there("libcurl could not set itself up", err);
	curl_library = loaded; /* stays loaded: its handles live in other objects */
	return 0;
}

int curl_library_load(struct err **err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool is_loaded;
	int result = 0;

	pthread_mutex_lock(&lock);
	if (!is_loaded) {
		result = load(err);
		is_loaded = result == 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

char *curl_library_folder(void)
{
	Dl_info info;
	void *function;

	memcpy(&function, &curl_library.easy_init, sizeof function);
	return function && dladdr(function, &info) && info.dli_fname ? fs_dirname(info.dli_fname)
								     : NULL;
}
