/* Filters files by `source.include`, `source.link` and the paths that stoker itself writes. See
 * tree.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/pattern.h"
#include "jobs/source/tree.h"

#define PATTERN_BYTES_MAX 4096

/* Returns the path without "./" in front and slashes at the end; NULL if it is not a relative path
 * of named parts. */
static char *normal_path(const char *text)
{
	AUTO(auto_free) char *path = NULL;
	size_t len;

	while (strncmp(text, "./", 2) == 0)
		text += 2;
	path = mem_copy(text);
	len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	for (const char *part = path;;) {
		size_t part_len = strcspn(part, "/");

		if (part_len == 0 || strncmp(part, ".", part_len) == 0 ||
		    (part_len == 2 && strncmp(part, "..", 2) == 0))
			return NULL;
		if (part[part_len] == '\0')
			return len > PATTERN_BYTES_MAX ? NULL : TAKE(path);
		part += part_len + 1;
	}
}

static size_t count_of(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

/* Makes normalised copies of all; NULL for an empty list. */
static int normal_paths(char *const *list, const char *field, char ***ret, struct err **err)
{
	size_t count = count_of(list);
	AUTO(auto_strv) char **copies = mem_zero(count + 1, sizeof *copies);

	for (size_t i = 0; i < count; i++) {
		copies[i] = normal_path(list[i]);
		if (copies[i])
			continue;
		err_set(err, EXIT_SPEC, "'%s' is not a path below the source folder", list[i]);
		err_hint(err, "write the path relative to source.path, without '..'");
		return err_field(err, field);
	}
	if (count > 0)
		*ret = TAKE(copies);
	return 0;
}

/* Returns the path with all links resolved; only made absolute while nothing is there. */
static char *resolved(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : fs_absolute(path);
}

static int refuse_root(const char *root, struct err **err)
{
	err_set(err, EXIT_REFUSED,
		"'%s' is both the source folder and a folder of stoker's own files", root);
	return err_hint(err, "give stoker a folder of its own, such as '%s/.stoker'", root);
}

/* Stoker's own paths within the source: files written there change while the source is packed, and
 * would make each run's source a new one. */
static int own_paths(const struct source_request *request, char ***ret, struct err **err)
{
	size_t now = count_of(request->own), former = count_of(request->former), kept = 0;
	AUTO(auto_strv) char **own = mem_zero(now + former + 1, sizeof *own);
	AUTO(auto_free) char *root = resolved(request->root);
	size_t root_len = strcmp(root, "/") == 0 ? 0 : strlen(root);

	for (size_t i = 0; i < now + former; i++) {
		AUTO(auto_free)
		char *path = resolved(i < now ? request->own[i] : request->former[i - now]);

		if (strcmp(path, root) == 0 && i < now)
			return refuse_root(path, err);
		if (strncmp(path, root, root_len) == 0 && path[root_len] == '/')
			own[kept++] = mem_copy(path + root_len + 1);
	}
	*ret = TAKE(own);
	return 0;
}

int filter_init(struct filter *ret, const struct source_request *request, struct err **err)
{
	*ret = (struct filter){ 0 };
	if (normal_paths(request->include, "source.include", &ret->include, err) < 0 ||
	    normal_paths(request->link, "source.link", &ret->link, err) < 0 ||
	    own_paths(request, &ret->own, err) < 0)
		return -1;
	ret->used = mem_zero(count_of(ret->include) + 1, sizeof *ret->used);
	for (size_t i = 0; ret->link && ret->link[i]; i++) {
		AUTO(auto_free) char *path = fs_join(request->root, ret->link[i]);

		if (fs_exists(path))
			continue;
		err_set(err, EXIT_SPEC, "cannot link '%s': not found", path);
		err_hint(err, "create the file or folder, or remove it from source.link");
		return err_field(err, "source.link");
	}
	return 0;
}

void filter_release(struct filter *filter)
{
	auto_strv(&filter->include);
	auto_strv(&filter->link);
	auto_strv(&filter->own);
	free(filter->used);
	*filter = (struct filter){ 0 };
}

/* True if `path` is one of `paths`, or below one. */
static bool is_within(char *const *paths, const char *path)
{
	for (size_t i = 0; paths && paths[i]; i++) {
		size_t len = strlen(paths[i]);

		if (strncmp(path, paths[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return false;
}

static bool is_left_out(const struct filter *filter, const char *path)
{
	return is_within(filter->link, path) || is_within(filter->own, path);
}

bool filter_takes(const struct filter *filter, const char *path)
{
	if (is_left_out(filter, path))
		return false;
	for (size_t i = 0; filter->include && filter->include[i]; i++)
		if (pattern_match(filter->include[i], path, true))
			return true;
	return !filter->include;
}

bool filter_reaches(const struct filter *filter, const char *path)
{
	if (is_left_out(filter, path))
		return false;
	for (size_t i = 0; filter->include && filter->include[i]; i++)
		if (pattern_reaches(filter->include[i], path))
			return true;
	return !filter->include;
}

void filter_mark(struct filter *filter, const char *path)
{
	for (size_t i = 0; filter->include && filter->include[i]; i++)
		if (!filter->used[i] && pattern_match(filter->include[i], path, true))
			filter->used[i] = true;
}

int filter_check_used(const struct filter *filter, struct err **err)
{
	for (size_t i = 0; filter->include && filter->include[i]; i++) {
		if (filter->used[i])
			continue;
		err_set(err, EXIT_SPEC, "'%s' matches no file of the source", filter->include[i]);
		err_hint(err, "check the pattern; files that .gitignore excludes are not packed, "
			      "but source.link can add them");
		return err_field(err, "source.include");
	}
	return 0;
}
