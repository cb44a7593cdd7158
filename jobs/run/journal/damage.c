/* Damaged state: see damage.h. */
#include "jobs/run/journal/damage.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"

#define NAMED_MAX   3
#define NAME_DIGITS 12 /* of the SHA-256 of what was set aside */

int damage_hint(struct err **err, const char *what, const char *run)
{
	return err_hint(err,
			"restore %s from a copy, or continue from what is left with 'stoker resume "
			"%s --salvage', or forget the run with 'stoker rm %s'",
			what, run, run);
}

int damage_of_event(struct err **err, const char *file, const char *run, int64_t seq)
{
	if (!*err)
		err_set(err, EXIT_REFUSED, "unreadable");
	err_wrap(err, "event %lld of run %s in '%s' is damaged", (long long)seq, run, file);
	err_damage(err);
	return damage_hint(err, "the file", run);
}

int damage_of_file(struct err **err, const char *file, const char *what)
{
	err_set(err, EXIT_REFUSED, "the journal '%s' is damaged: %s", file, what);
	err_damage(err);
	return err_hint(
		err,
		"restore the file from a copy, or continue a run from what is left with 'stoker "
		"resume RUN --salvage', or keep it and choose another place with --state");
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	case S_IFDIR:
		return "a folder";
	case S_IFLNK:
		return "a link";
	default:
		return NULL;
	}
}

bool damage_obstacle(const char *root, const char *key, struct sb *ret, struct sb *ret_path)
{
	AUTO(auto_free) char *path = fs_join(root, key);
	size_t from = strlen(path) - strlen(key);

	for (;;) {
		size_t len = from + strcspn(path + from, "/");
		bool is_last = path[len] == '\0';
		const char *kind;
		struct stat st;

		path[len] = '\0';
		if (lstat(path, &st) < 0)
			return false;
		kind = S_ISREG(st.st_mode) ? "no folder" : kind_of(st.st_mode);
		if (kind && (is_last ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))) {
			sb_addf(ret, "'%s' is %s", path, kind);
			if (ret_path)
				sb_adds(ret_path, path);
			return true;
		}
		if (is_last)
			return false;
		path[len] = '/';
		from = len + 1;
	}
}

int damage_refuse_obstacle(const char *root, const char *key, const char *of, struct err **err)
{
	AUTO(sb_release) struct sb what = SB_INIT, path = SB_INIT;

	if (!damage_obstacle(root, key, &what, &path))
		return 0;
	err_set(err, EXIT_REFUSED, "cannot read %s: %s", of, what.text);
	err_damage(err);
	return err_hint(err, "move '%s' away", path.text);
}

char *damage_aside_name(int64_t seq, const void *bytes, size_t len)
{
	char sum[SHA256_HEX];

	hash_sha256_hex(bytes, len, sum);
	return mem_format(DAMAGE_ASIDE "%012lld-%.*s.json", (long long)seq, NAME_DIGITS, sum);
}

void damage_each_run(const char *dir, const char *trace, damage_run_fn fn, void *arg)
{
	AUTO(auto_free) char *folder = fs_join(dir, "runs");
	const struct dirent *entry;
	DIR *names = opendir(folder);

	while (names && (entry = readdir(names))) {
		AUTO(auto_free) char *path = NULL;

		if (!text_run_id_valid(entry->d_name))
			continue;
		if (trace)
			path = mem_format("%s/%s/%s", folder, entry->d_name, trace);
		if (!path || fs_exists(path))
			fn(arg, entry->d_name);
	}
	if (names)
		closedir(names);
}

struct damage_lost {
	struct sb *names;
	size_t count;
};

static void add_lost(void *arg, const char *run)
{
	struct damage_lost *lost = arg;

	if (lost->count++ < NAMED_MAX)
		sb_addf(lost->names, "%s%s", lost->count > 1 ? ", " : "", run);
}

size_t damage_lost_runs(const char *dir, const char *trace, struct sb *ret)
{
	struct damage_lost lost = { ret, 0 };

	damage_each_run(dir, trace, add_lost, &lost);
	return lost.count;
}
