/* Finds a .git and its owner: see git_place.h. */
#include "jobs/source/git_place.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"

char *git_nearest(const char *root)
{
	AUTO(auto_free) char *folder = mem_copy(root);

	for (;;) {
		AUTO(auto_free) char *git = fs_join(folder, ".git");
		char *slash = strrchr(folder, '/');

		if (fs_exists(git))
			return TAKE(git);
		if (!slash || !folder[1])
			return NULL;
		slash[slash == folder] = '\0';
	}
}

bool git_may_be_at(const char *root)
{
	AUTO(auto_free) char *git = git_nearest(root);

	return git != NULL;
}

bool git_is_of_another(const char *root)
{
	AUTO(auto_free) char *git = git_nearest(root);
	struct stat st;

	return git && stat(git, &st) == 0 && st.st_uid != geteuid();
}
