/*
 * stoker-launch: starts a program of a bundle (the archive or the wheel of stoker) through the
 * bundle's own loader, so that nothing but the kernel is asked of the machine. Each program that a
 * bundle shows is a copy of it; NAME starts lib/stoker/programs/NAME. It is linked statically, and
 * leaves the environment as it is but for what would load the machine's libraries.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define EXIT_NOT_STARTED 4 /* EXIT_REFUSED of jobs/base/exitcode.h */
#define OWN_WORDS        6 /* words of the loader's before the program */
#define ROOM             (PATH_MAX + 32)

static int complain(const char *name, const char *what, const char *why, const char *hint)
{
	fprintf(stderr, "%s: error: %s: %s\n  hint: %s\n", name, what, why, hint);
	return EXIT_NOT_STARTED;
}

/* Path of this file, whatever link led to it; without /proc, the path that was started. */
static char *find_self(char self[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);

	if (len <= 0)
		return (char *)getauxval(AT_EXECFN);
	self[len] = '\0';
	return self;
}

/* Sets the bundle's folder, which holds the program `name`. Returns 0; -1 if there is none. */
static int find_folder(const char *own, const char *name, char ret_folder[PATH_MAX])
{
	/* Folders of the programs: the first is for bin/stoker, the second for
	 * lib/stoker/stoker-post and stoker-derive. */
	static const char *const places[] = { "../lib/stoker", "." };

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		char program[PATH_MAX];

		if (snprintf(ret_folder, PATH_MAX, "%s/%s", own, places[i]) < PATH_MAX &&
		    snprintf(program, sizeof program, "%s/programs/%s", ret_folder, name) <
			    PATH_MAX &&
		    access(program, R_OK) == 0)
			return 0;
	}
	return -1;
}

static int start(char *self, const char *name, const char *folder, int argc, char **argv)
{
	char **words = calloc((size_t)argc + OWN_WORDS + 2, sizeof *words);
	char loader[ROOM], libraries[2 * ROOM], program[2 * ROOM];
	const char *why;

	if (!words)
		return complain(name, "cannot start", strerror(errno), "free some memory");
	snprintf(loader, sizeof loader, "%s/agent/lib/loader", folder);
	snprintf(libraries, sizeof libraries, "%s/lib:%s/agent/lib", folder, folder);
	snprintf(program, sizeof program, "%s/programs/%s", folder, name);
	words[0] = loader;
	words[1] = (char[]){ "--inhibit-cache" }; /* the cache of the machine's libraries */
	words[2] = (char[]){ "--library-path" };
	words[3] = libraries;
	words[4] = (char[]){ "--argv0" };
	words[5] = self;
	words[OWN_WORDS] = program;
	for (int i = 1; i < argc; i++)
		words[OWN_WORDS + i] = argv[i];
	/* Made for the machine's own C library, not for the bundle's. */
	unsetenv("LD_PRELOAD");
	unsetenv("LD_AUDIT");
	execv(loader, words);
	why = strerror(errno);
	free(words);
	return complain(name, loader, why,
			"unpack the whole archive, on a file system that may run programs");
}

int main(int argc, char **argv)
{
	char own[PATH_MAX], folder[PATH_MAX], file[PATH_MAX];
	char *self = find_self(file);
	const char *slash = strrchr(self, '/');
	const char *name = slash ? slash + 1 : self;

	snprintf(own, sizeof own, "%.*s", slash ? (int)(slash - self) : 1, slash ? self : ".");
	if (find_folder(own, name, folder) < 0)
		return complain(name, "cannot find its other files", own,
				"keep bin/ and lib/ of the archive together; a link to the program "
				"may stand anywhere");
	if (strpbrk(folder, ":;$"))
		return complain(name, "cannot be run from this folder", folder,
				"move it to a folder without ':', ';' and '$' in its name");
	return start(self, name, folder, argc, argv);
}
