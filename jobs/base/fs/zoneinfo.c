/* Files of tzdata: see zoneinfo.h. */
#include "jobs/base/fs/zoneinfo.h"

#include <dirent.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"

#define ZONE_BYTES_MAX ((size_t)1 << 20) /* a file of tzdata has some kilobytes */

/* The folders of Python's zoneinfo.TZPATH. */
static const char *const places[] = { "/usr/share/zoneinfo", "/usr/lib/zoneinfo",
				      "/usr/share/lib/zoneinfo", "/etc/zoneinfo", NULL };

/* Names lead nowhere but into the folder. */
static bool is_safe(const char *name)
{
	if (*name == '\0' || *name == '/')
		return false;
	for (const char *part = name; part; part = strchr(part, '/')) {
		size_t len;

		part += *part == '/';
		len = strcspn(part, "/");
		if (fs_name_unsafe(part, len))
			return false;
	}
	return true;
}

/* An image without tzdata may have kept the folder; one that cannot be listed is not empty. */
static bool is_empty(const char *dir)
{
	DIR *listing = opendir(dir);
	const struct dirent *entry;
	bool empty = listing != NULL;

	while (empty && (entry = readdir(listing)))
		empty = entry->d_name[0] == '.';
	if (listing)
		closedir(listing);
	return empty;
}

int zoneinfo_read(const char *dir, const char *name, struct sb *ret, struct err **err)
{
	const char *const own[] = { dir, NULL };
	const char *const *place = dir && *dir ? own : places;

	for (; *place; place++) {
		AUTO(auto_free) char *path = NULL;
		int found = fs_look(*place, err);

		if (found < 0)
			return -1;
		if (found == 0 || is_empty(*place))
			continue;
		if (!is_safe(name))
			return 0;
		path = fs_join(*place, name);
		found = fs_look(path, err);
		if (found <= 0)
			return found;
		if (fs_is_dir(path)) /* "Europe" */
			return 0;
		return fs_read(path, ZONE_BYTES_MAX, ret, err) < 0 ? -1 : 1;
	}
	err_set(err, EXIT_REFUSED, "this machine has no time zones: '%s' is not there, or empty",
		dir && *dir ? dir : places[0]);
	return err_hint(err, dir && *dir ? "correct or unset TZDIR" : "install the package tzdata");
}

int zoneinfo_read_own(struct sb *ret, struct err **err)
{
	static const char path[] = "/etc/localtime";
	int found = fs_look(path, err);

	return found <= 0 ? found : fs_read(path, ZONE_BYTES_MAX, ret, err) < 0 ? -1 : 1;
}
