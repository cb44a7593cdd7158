/* Operations that only look at files and folders: see player.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/world/conform/player.h"

static void tell_stat(char *result, const struct stat *st)
{
	tell(result, " %o links %lu", (unsigned)st->st_mode, (unsigned long)st->st_nlink);
	if (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode))
		tell(result, " size %lld", (long long)st->st_size);
}

static void play_stat(struct player *player, char *result)
{
	int dir = draw_dirfd(player, result), flags = draw(player, 2) ? 0 : AT_SYMLINK_NOFOLLOW;
	const char *path = draw_path(player);
	struct stat st;
	int failed;

	if (draw(player, 4) == 0)
		flags |= AT_EMPTY_PATH;
	failed = fstatat(dir, path, &st, flags);
	tell(result, " %.20s %d", path, flags);
	tell_result(result, failed);
	if (failed == 0)
		tell_stat(result, &st);
}

static void play_fstat(struct player *player, char *result)
{
	int fd = draw_fd(player, result);
	struct stat st;
	int failed = fstat(fd, &st);

	tell_result(result, failed);
	if (failed == 0)
		tell_stat(result, &st);
}

/* Whether two paths are one inode. */
static void play_same(struct player *player, char *result)
{
	const char *a = draw_path(player), *b = draw_path(player);
	struct stat x, y;

	tell(result, " %.20s %.20s", a, b);
	if (stat(a, &x) < 0 || stat(b, &y) < 0)
		tell_result(result, -1);
	else
		tell_result(result, x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static void play_access(struct player *player, char *result)
{
	static const int modes[] = { F_OK, R_OK, W_OK, X_OK, R_OK | X_OK };
	const char *path = draw_path(player);
	int mode = modes[draw(player, 5)];

	tell(result, " %.20s %d", path, mode);
	tell_result(result,
		    faccessat(AT_FDCWD, path, mode, draw(player, 2) ? AT_SYMLINK_NOFOLLOW : 0));
}

static void play_readlink(struct player *player, char *result)
{
	const char *path = draw_path(player);
	char text[300];
	ssize_t len = readlink(path, text, draw(player, 4) ? sizeof text : 3);

	tell(result, " %.20s", path);
	tell_result(result, len);
	if (len >= 0)
		tell(result, " %.*s", (int)(len < 20 ? len : 20), text);
}

/* Relative to the folder of the script, which is elsewhere on each side. */
static void tell_below(char *result, const char *path)
{
	char *here = getcwd(NULL, 0);
	size_t len = here ? strlen(here) : 0;

	if (here && strncmp(path, here, len) == 0)
		tell(result, " .%.40s", path + len);
	else
		tell(result, " outside");
	free(here);
}

static void play_realpath(struct player *player, char *result)
{
	const char *path = draw_path(player);
	char *real = realpath(path, NULL);

	tell(result, " %.20s", path);
	tell_result(result, real ? 0 : -1);
	if (real)
		tell_below(result, real);
	free(real);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tell_names(char *result, char **names, size_t count)
{
	qsort(names, count, sizeof *names, compare);
	for (size_t i = 0; i < count; i++) {
		tell(result, " %.12s", names[i]);
		free(names[i]);
	}
}

static void play_list(struct player *player, char *result)
{
	const char *path = draw_path(player);
	DIR *folder = opendir(path);
	char *names[64], one[300];
	const struct dirent *entry;
	size_t count = 0;

	tell(result, " %.20s", path);
	tell_result(result, folder ? 0 : -1);
	while (folder && count < 64 && (entry = readdir(folder))) {
		snprintf(one, sizeof one, "%s:%d", entry->d_name, entry->d_type);
		names[count++] = strdup(one);
	}
	tell_names(result, names, count);
	if (folder)
		closedir(folder);
}

/* A folder by its descriptor; a second time after rewinddir(). */
static void play_list_fd(struct player *player, char *result)
{
	int own = fcntl(draw_fd(player, result), F_DUPFD_CLOEXEC, 3);
	DIR *folder = own < 0 ? NULL : fdopendir(own);
	int first = 0, second = 0;

	tell_result(result, folder ? 0 : -1);
	if (!folder && own >= 0)
		close(own);
	if (!folder)
		return;
	while (readdir(folder))
		first++;
	rewinddir(folder);
	while (readdir(folder))
		second++;
	/* The first pass begins where an earlier one of the same description ended. */
	tell(result, " %d", second);
	(void)first;
	closedir(folder);
}

static void play_scan(struct player *player, char *result)
{
	const char *path = draw_path(player);
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	tell(result, " %.20s", path);
	tell_result(result, count);
	for (int i = 0; i < count; i++) {
		tell(result, " %.12s", entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void play_walk(struct player *player, char *result)
{
	char *path = strdup(draw_path(player)), *names[200], one[300];
	char *const roots[] = { path, NULL };
	FTS *tree = *path ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
	const FTSENT *entry;
	size_t count = 0;

	tell(result, " %.20s", path);
	while (tree && count < 200 && (entry = fts_read(tree))) {
		snprintf(one, sizeof one, "%s:%d:%d:%d", entry->fts_path, entry->fts_info,
			 entry->fts_info == FTS_NS ? entry->fts_errno : 0, entry->fts_level);
		names[count++] = strdup(one);
	}
	for (size_t i = 0; i < count; i++)
		names[i][strnlen(names[i], 60)] = '\0';
	tell_names(result, names, count);
	if (tree)
		fts_close(tree);
	free(path);
}

static void play_stream(struct player *player, char *result)
{
	const char *path = draw_path(player);
	FILE *file = fopen(path, "re");
	char bytes[300];
	size_t len;

	tell(result, " %.20s", path);
	tell_result(result, file ? 0 : -1);
	if (!file)
		return;
	if (fseek(file, -40, SEEK_END) != 0)
		rewind(file);
	len = fread(bytes, 1, sizeof bytes, file);
	tell_bytes(result, bytes, len);
	fclose(file);
}

const struct operation look_operations[] = {
	{ "stat", 16, play_stat },        { "fstat", 6, play_fstat },
	{ "same", 3, play_same },         { "access", 5, play_access },
	{ "readlink", 5, play_readlink }, { "realpath", 6, play_realpath },
	{ "list", 5, play_list },         { "list fd", 4, play_list_fd },
	{ "scan", 2, play_scan },         { "walk", 3, play_walk },
	{ "stream", 3, play_stream },     { NULL, 0, NULL },
};
