/* Finding the program that this process runs: see program.h. */
#include "jobs/base/process/program.h"

#include <errno.h>
#include <limits.h>
#include <nss.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "jobs/base/err.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/mem.h"

#define LOADER "/loader" /* end of the path of each bundle's loader: see cmake/bundle_agent.sh */

/* The file that the kernel runs as this process; NULL if it cannot be told (/proc is not there).
 * The caller frees it. */
static char *executed_file(void)
{
	char path[PATH_MAX];
	ssize_t len;
	int failures = 0;

	do
		len = readlink("/proc/self/exe", path, sizeof path - 1);
	while (len < 0 && err_try_again(&failures));
	if (len <= 0)
		return NULL;
	path[len] = '\0';
	return mem_copy(path);
}

static bool is_loader(const char *file)
{
	size_t len = strlen(file), end = strlen(LOADER);

	return len > end && strcmp(file + len - end, LOADER) == 0;
}

void program_begin(void)
{
	AUTO(auto_free) char *file = executed_file();

	if (!file || !is_loader(file))
		return;
	/* The sources `files` and `dns` are part of the C library; all others are modules of the
	 * machine. */
	(void)__nss_configure_lookup("hosts", "files dns");
	(void)__nss_configure_lookup("passwd", "files");
	(void)__nss_configure_lookup("services", "files");
	hash_ignore_settings();
	(void)prctl(PR_SET_NAME, program_invocation_short_name);
}

char *program_path(void)
{
	AUTO(auto_free) char *file = executed_file();

	if (file && !is_loader(file))
		return TAKE(file);
	return strchr(program_invocation_name, '/') ? mem_copy(program_invocation_name) : NULL;
}

char *program_file(const char *name)
{
	static const char *const places[] = { ".", "../lib/stoker", "../share/stoker" };
	AUTO(auto_free) char *program = program_path();
	AUTO(auto_free) char *folder = program ? fs_dirname(program) : NULL;

	for (size_t i = 0; folder && i < STK_LENGTH(places); i++) {
		AUTO(auto_free) char *place = fs_join(folder, places[i]);
		AUTO(auto_free) char *file = fs_join(place, name);

		if (fs_exists(file))
			return TAKE(file);
	}
	return NULL;
}
