/* The source in the graph key, and a remedy for files in it that no compiler reads: see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/plan/plan.h"

#define PATTERNS_MAX 16

/* True for another spec in the folder of this one: a sibling, which decides about its own
 * graphs. */
static bool is_other_spec(const struct source_file *file, const char *absolute, const char *folder)
{
	AUTO(auto_free) char *beside = fs_dirname(absolute);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	const char *dot = strrchr(file->path, '.');
	char hex[SHA256_HEX];

	if (!dot || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0) ||
	    strcmp(beside, folder) != 0 || !S_ISREG(file->mode) ||
	    fs_read(absolute, SPEC_BYTES_MAX, &text, &ignored) < 0)
		return false;
	/* If the source is of another revision, the file on disk says nothing about it. */
	hash_sha256_hex(text.text, text.len, hex);
	return strcmp(hex, file->sha256) == 0 && spec_is_one(text.text, text.len);
}

static bool is_layer(const struct plan *plan, const char *absolute)
{
	for (char *const *layer = plan->layers; layer && *layer; layer++)
		if (strcmp(*layer, absolute) == 0)
			return true;
	return false;
}

/* The spec file itself and those that it extends may be among the packed files: their content is an
 * ingredient already, less compile.ignore. */
json_t *key_source(const struct plan *plan)
{
	json_t *files = json_object();
	const char *spec_path = js_str(plan->json, "spec_file");
	AUTO(auto_free) char *folder = fs_dirname(spec_path);

	for (size_t i = 0; i < plan->pin->count; i++) {
		const struct source_file *file = &plan->pin->files[i];
		AUTO(auto_free) char *absolute = fs_join(plan->root, file->path);

		if (strcmp(absolute, spec_path) != 0 && !is_layer(plan, absolute) &&
		    !is_other_spec(file, absolute, folder))
			js_put_str(files, file->path,
				   *file->reduced ? file->reduced : file->sha256);
	}
	return files;
}

/* Returns the suffix with its dot: "" if a name has none, or consists of it. */
static const char *suffix_of(const char *path)
{
	const char *name = fs_basename(path), *dot = strrchr(name, '.');

	return dot && dot != name ? dot : "";
}

/* True for programs and their configuration: these may decide which graphs there are. */
static bool may_decide(const char *path)
{
	static const char *const suffixes[] = {
		"",     ".py",   ".pyi",     ".pyx", ".pyc",   ".pth",   ".so",  ".c",
		".h",   ".cc",   ".cpp",     ".hpp", ".cu",    ".rs",    ".go",  ".js",
		".sh",  ".json", ".yaml",    ".yml", ".toml",  ".ini",   ".cfg", ".conf",
		".env", ".xml",  ".jsonnet", ".gin", ".proto", ".jinja", ".j2",  ".model",
	};
	/* Files without a suffix that are for people or for git. */
	static const char *const bystanders[] = { "LICENSE",       "LICENCE",    "COPYING",
						  "NOTICE",        "AUTHORS",    "README",
						  "CHANGELOG",     "CODEOWNERS", ".gitignore",
						  ".gitattributes" };
	const char *suffix = suffix_of(path);

	for (size_t i = 0; i < STK_LENGTH(bystanders); i++)
		if (strcmp(fs_basename(path), bystanders[i]) == 0)
			return false;
	for (size_t i = 0; i < STK_LENGTH(suffixes); i++)
		if (strcasecmp(suffix, suffixes[i]) == 0)
			return true;
	/* Lists of packages to install before the command runs, and vocabularies. */
	return strncmp(fs_basename(path), "requirements", 12) == 0 ||
	       strcmp(fs_basename(path), "vocab.txt") == 0 ||
	       strcmp(fs_basename(path), "merges.txt") == 0;
}

/* Returns the file of this row if it is new and decides nothing; else NULL. */
static const char *bystander_of(const json_t *row)
{
	const json_t *old = json_object_get(row, "old");
	const char *field = js_str(row, "field");

	if (!text_starts(field, "source:") || (old && !json_is_null(old)))
		return NULL;
	field += strlen("source:");
	return may_decide(field) ? NULL : field;
}

/* Adds a literal name as a glob: special characters are escaped by a backslash. */
static void add_literal(json_t *patterns, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	for (; *path; path++) {
		if (strchr("*?[\\", *path))
			sb_addc(&text, '\\');
		sb_addc(&text, *path);
	}
	json_array_append_new(patterns, js_text(text.text, text.len));
}

static void add_once(json_t *patterns, const char *text)
{
	const json_t *pattern;
	size_t i;

	json_array_foreach (patterns, i, pattern)
		if (strcmp(json_string_value(pattern), text) == 0)
			return;
	json_array_append_new(patterns, js_text(text, strlen(text)));
}

static bool has_suffix_of(const json_t *files, const char *path)
{
	const char *suffix = suffix_of(path), *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)files, name, value)
		if (strcmp(suffix_of(name), suffix) == 0)
			return true;
	return false;
}

/* Returns globs that match every file of `source` except those in `out`; NULL if they are too
 * many. */
static json_t *patterns_without(const json_t *source, const json_t *out)
{
	json_t *patterns = json_array(), *value;
	const char *path;

	json_object_foreach ((json_t *)(uintptr_t)source, path, value) {
		const char *suffix = suffix_of(path);
		AUTO(auto_free) char *glob = mem_format("**/*%s", suffix);

		if (json_object_get(out, path))
			continue;
		if (*suffix && !strpbrk(suffix, "*?[\\") && !has_suffix_of(out, path))
			add_once(patterns, glob);
		else
			add_literal(patterns, path);
		if (json_array_size(patterns) > PATTERNS_MAX) {
			json_decref(patterns);
			return NULL;
		}
	}
	return patterns;
}

char *key_hint(const json_t *ingredients, const json_t *changed)
{
	const json_t *source = json_object_get(ingredients, "source"), *row;
	json_auto_t *out = json_object(), *patterns = NULL;
	AUTO(auto_free) char *line = NULL;
	const char *first = NULL, *path;
	size_t i, count;

	json_array_foreach (changed, i, row)
		if ((path = bystander_of(row))) {
			first = first ? first : path;
			js_put(out, path, json_true());
		}
	count = json_object_size(out);
	if (!first)
		return NULL;
	patterns = patterns_without(source, out);
	if (!patterns || json_array_size(patterns) == 0)
		return mem_format("if no graph depends on %.200s, list the needed files in "
				  "source.include, to keep this file out of the key",
				  first);
	line = js_line(patterns);
	if (count > 1)
		return mem_format("if no graph depends on %.200s and %zu more new files, keep them "
				  "out of the key: source: {include: %s}",
				  first, count - 1, line);
	return mem_format("if no graph depends on %.200s, keep it out of the key: "
			  "source: {include: %s}",
			  first, line);
}
