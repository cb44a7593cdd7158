/* Finds a .git and its owner: see git_place.h. */
#include "jobs/source/git_place.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"

int git_nearest(const char *root, char **ret, struct err **err)
{
	AUTO(auto_free) char *folder = mem_copy(root);

	for (;;) {
		AUTO(auto_free) char *git = fs_join(folder, ".git");
		char *slash = strrchr(folder, '/');
		int there = fs_look(git, err);

		if (there > 0 && ret)
			*ret = TAKE(git);
		if (there != 0 || !slash || !folder[1])
			return there;
		slash[slash == folder] = '\0';
	}
}

bool git_is_of_another(const char *root)
{
	AUTO(err_freep) struct err *unknown = NULL;
	AUTO(auto_free) char *git = NULL;
	struct stat st;

	return git_nearest(root, &git, &unknown) > 0 && stat(git, &st) == 0 &&
	       st.st_uid != geteuid();
}
