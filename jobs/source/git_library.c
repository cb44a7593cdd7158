/* Loading libgit2 when it is needed: see git_library.h. */
#include "jobs/source/git_library.h"

#include <dlfcn.h>
#include <string.h>

/* The version that stoker was compiled against: other versions have other structures. */
#define LIBRARY "libgit2.so." LIBGIT2_SOVERSION

struct git_library git_library;

static int fail_missing(struct err **err)
{
	const char *why = dlerror();

	err_set(err, EXIT_REFUSED, "cannot read git repositories: %s",
		why ? why : "a library cannot be loaded");
	return err_hint(err, "install " LIBRARY
			     " (on Debian: the package libgit2-" LIBGIT2_SOVERSION ")");
}

int git_library_load(struct err **err)
{
	struct git_library loaded;
	void *handle, *found;

	if (git_library.libgit2_init)
		return 0;
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return fail_missing(err);
		/* ISO C has no other way from a pointer to data to a pointer to a function. */
#define FUNCTION(name)                                                                             \
	found = dlsym(handle, "git_" #name);                                                       \
	if (!found)                                                                                \
		return fail_missing(err);                                                          \
	memcpy(&loaded.name, &found, sizeof found);
	LIBGIT2_FUNCTIONS(FUNCTION)
#undef FUNCTION
	git_library = loaded; /* stays loaded: code that it has started may still run */
	return 0;
}
