/* Keeps the files of env_file out of the source, which would carry their values into the workspace:
 * see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/plan/plan.h"

/* True if the source in the folder `root` has the file. */
static bool has_file(const struct source_pin *pin, const char *root, const char *file)
{
	size_t len = strlen(root);

	if (strncmp(file, root, len) != 0 || file[len] != '/')
		return false;
	for (size_t i = 0; i < pin->count; i++)
		if (strcmp(pin->files[i].path, file + len + 1) == 0)
			return true;
	return false;
}

/* True if the source has the file, or the one that it links to. A path is relative to the spec. */
static bool is_packed(const struct plan *plan, const struct spec *spec, const char *path)
{
	AUTO(auto_free) char *folder = fs_dirname(spec_file(spec));
	AUTO(auto_free) char *joined = fs_join(folder, path);
	AUTO(auto_free) char *absolute = fs_absolute(joined);
	AUTO(auto_free) char *linked = realpath(absolute, NULL);
	AUTO(auto_free) char *linked_root = realpath(plan->root, NULL);

	return has_file(plan->pin, plan->root, absolute) ||
	       (linked && linked_root && has_file(plan->pin, linked_root, linked));
}

static int refuse(const struct spec *spec, const char *path, size_t index, struct err **err)
{
	AUTO(auto_free) char *item = mem_format("env_file[%zu]", index);
	const char *field = spec_text(spec, item) ? item : "env_file"; /* one path, or several */
	const char *file;
	int line, column;

	err_set(err, EXIT_SPEC, "'%s' is part of the source, which is packed for the job", path);
	err_field(err, field);
	if (spec_position(spec, field, &file, &line, &column))
		err_at(err, file, line, column);
	return err_hint(err,
			"name the file in .gitignore ('git rm --cached' takes it out of git), or "
			"keep it elsewhere");
}

int env_file_keep_out(const struct plan *plan, const struct spec *spec, struct err **err)
{
	const json_t *paths = spec_get(spec, SPEC_ENV_FILE), *path;
	size_t i;

	json_array_foreach (paths, i, path)
		if (is_packed(plan, spec, json_string_value(path)))
			return refuse(spec, json_string_value(path), i, err);
	return 0;
}
