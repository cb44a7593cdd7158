/*
 * The files of env_file when the spec is loaded: their names alone are kept. A plan names the file
 * that each value comes from (jobs/run/plan/secret.h reads it), so that no value gets into a plan,
 * a journal or a graph key.
 */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/dotenv.h"
#include "jobs/spec/layers/layers.h"

#define ENV_FILE_MAX ((size_t)64 << 10)

struct env_file {
	struct binder *binder;
	struct reporter reporter;
	const char *path; /* as the spec has it */
	json_t *lines;    /* name → line, of this file */
};

/* A mark in the file. Columns are not told: they would tell the length of a value. */
static struct mark mark_of(int line)
{
	return (struct mark){ .line = line, .column = 1 };
}

static void hide(struct problem *problem)
{
	if (problem)
		problem->secret = true;
}

static void add_name(void *arg, const char *name, const char *value, int line)
{
	struct env_file *file = arg;
	json_t *before = json_object_get(file->lines, name);
	json_t *row = json_object();
	AUTO(auto_free) char *source = mem_format(ENV_FILE_SCHEME "%s", file->path);
	struct problem *problem;

	(void)value;
	if (before) {
		problem = problem_error(&file->reporter, mark_of(line),
					field_table[SPEC_ENV_FILE].path,
					"'%s' is set twice, first in line %lld", name,
					(long long)json_integer_value(before));
		problem_hint(problem, "remove one of the two lines");
		hide(problem);
	}
	js_put(file->lines, name, json_integer(line));
	js_put_str(row, "source", source);
	js_put_str(row, "file", file->reporter.file);
	js_put(row, "line", json_integer(line));
	js_put(file->binder->spec->env_files, name, row);
}

static void load_one(struct binder *binder, const char *path, size_t index)
{
	AUTO(auto_free) char *full = extends_beside(binder->spec->file, path);
	AUTO(auto_free) char *member = mem_format("[%zu]", index);
	AUTO(sb_release) struct sb text = SB_INIT_SECRET;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *lines = json_object();
	struct env_file file = { binder, { full, binder->reporter.problems }, path, lines };
	struct dotenv_fault fault = { 1, "a NUL byte", "check that the file is the right one" };
	struct problem *problem;

	if (fs_read(full, ENV_FILE_MAX, &text, &err) < 0) {
		problem_hint(spec_error(binder, SPEC_ENV_FILE, member, "%s", err->message),
			     "correct env_file, or write the file: one NAME=VALUE a line");
		return;
	}
	if (strlen(text.text) == text.len && dotenv_read(text.text, add_name, &file, &fault) == 0)
		return;
	problem = problem_error(&file.reporter, mark_of(fault.line),
				field_table[SPEC_ENV_FILE].path, "%s", fault.why);
	problem_hint(problem, "%s", fault.hint);
	hide(problem);
}

void env_file_load(struct binder *binder)
{
	const json_t *paths = spec_get(binder->spec, SPEC_ENV_FILE), *path;
	size_t i;

	binder->spec->env_files = json_object();
	if (access_on_aws(binder->spec))
		return; /* refused as a whole */
	json_array_foreach (paths, i, path)
		load_one(binder, json_string_value(path), i);
}

struct problem *env_file_error(struct binder *binder, const char *name, const char *fmt, ...)
{
	const json_t *row = json_object_get(binder->spec->env_files, name);
	struct reporter reporter = { js_str(row, "file"), binder->reporter.problems };
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = problem_add(&reporter, mark_of((int)js_int(row, "line", 0)),
			      field_table[SPEC_ENV_FILE].path, false, fmt, args);
	va_end(args);
	hide(problem);
	return problem;
}
