/* Our rows, and SageMaker's names, by the lines of their files: see catalogue.h. */
#include "jobs/spec/machines/catalogue.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define NAME   "\n  - " /* of a machine that SageMaker trains on */
#define FAR    8        /* letters by which a name of the same family may differ */
#define SLIPS  2        /* … and one of another */
#define STEP   2        /* blanks of a step of the layout */
#define OF_ALL (2 * STEP)
#define OF_ROW (3 * STEP)

/* Returns the file of that name without its extension, which there must be. */
const struct embedded_file *catalogue_file(const char *name)
{
	for (size_t i = 0; i < catalogue_file_count; i++)
		if (strcmp(catalogue_files[i].name, name) == 0)
			return &catalogue_files[i];
	abort();
}

/* Returns the blanks that a line begins with; -1 for a comment or an empty line. */
static int indent_of(const char *line)
{
	size_t blanks = strspn(line, " ");

	return strchr("#\n", line[blanks]) ? -1 : (int)blanks;
}

static const char *line_after(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* Returns the end of what begins on a line: all lines that are indented further belong to it. */
static const char *end_of(const char *line)
{
	int indent = indent_of(line);

	do {
		line = line_after(line);
	} while (*line && indent_of(line) > indent);
	return line;
}

/* Splits "  NAME: TEXT…" up to `end`. */
static void split(const char *line, const char *end, struct catalogue_text *ret_name,
		  struct catalogue_text *ret_text)
{
	const char *name = line + strspn(line, " "), *colon = strchr(name, ':');

	*ret_name = (struct catalogue_text){ name, (size_t)(colon - name) };
	*ret_text = (struct catalogue_text){ colon + 1, (size_t)(end - colon - 1) };
}

bool catalogue_next(struct catalogue_row *row)
{
	const char *text = catalogue_file("instances")->text, *line = text + row->at, *end;

	if (row->at == 0)
		line = strstr(text, "\ngroups:\n") + 1;
	for (; *line; line = end) {
		struct catalogue_text name;
		int indent = indent_of(line);
		bool is_all = indent == OF_ALL && text_starts(line + OF_ALL, "all:");

		end = is_all || indent == OF_ROW ? end_of(line) : line_after(line);
		if (is_all)
			split(line, end, &name, &row->all);
		if (indent != OF_ROW)
			continue;
		split(line, end, &row->type, &row->own);
		row->at = (size_t)(end - text);
		return true;
	}
	return false;
}

bool catalogue_seek(const char *type, struct catalogue_row *ret)
{
	size_t len = strlen(type);

	*ret = (struct catalogue_row){ 0 };
	while (catalogue_next(ret))
		if (ret->type.len == len && memcmp(ret->type.text, type, len) == 0)
			return true;
	return false;
}

bool catalogue_trains_on(const char *name)
{
	const char *at = catalogue_file("sagemaker")->text;
	size_t len = strlen(name);

	while ((at = strstr(at, NAME))) {
		at += strlen(NAME);
		if (strncmp(at, name, len) == 0 && at[len] == '\n')
			return true;
	}
	return false;
}

static size_t family_length(const char *name)
{
	const char *dot = text_starts(name, "ml.") ? strchr(name + 3, '.') : NULL;

	return dot ? (size_t)(dot - name) + 1 : 0;
}

char *catalogue_nearest_name(const char *name)
{
	const char *at = catalogue_file("sagemaker")->text;
	size_t family = family_length(name), nearest = FAR + 1;
	bool in_family = false;
	char *found = NULL;

	while ((at = strstr(at, NAME))) {
		char *known = mem_copy_n(at + strlen(NAME), strcspn(at + strlen(NAME), "\n"));
		bool alike = family > 0 && strncmp(known, name, family) == 0;
		size_t limit = alike ? FAR : SLIPS, distance = text_distance(known, name, limit);

		at += strlen(NAME);
		if (distance <= limit &&
		    (alike > in_family || (alike == in_family && distance < nearest))) {
			free(found);
			found = known;
			known = NULL;
			nearest = distance;
			in_family = alike;
		}
		free(known);
	}
	return found;
}

char *catalogue_names_version(void)
{
	const char *at =
		strstr(catalogue_file("sagemaker")->text, "\nmodel: \"") + strlen("\nmodel: \"");

	return mem_copy_n(at, strcspn(at, "\""));
}
