/* Reads what nvidia-smi prints: see health_smi.h. */
#include "jobs/node/health/health_smi.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define COLUMNS_MAX 32
#define ROWS_MAX    4096

/* Splits a line at its commas into `max` cells at most, the last with the rest. Changes the line.
 */
static size_t split(char *line, char *cells[COLUMNS_MAX], size_t max)
{
	size_t count = 0;

	while (line && count < max) {
		char *comma = count + 1 < max ? strchr(line, ',') : NULL;

		if (comma)
			*comma = '\0';
		line += strspn(line, " \t");
		cells[count++] = line;
		for (size_t len = strlen(line); len > 0 && strchr(" \t\r", line[len - 1]);)
			line[--len] = '\0';
		line = comma ? comma + 1 : NULL;
	}
	return count;
}

/* "used_gpu_memory [MiB]" has its unit behind a blank. */
static void drop_unit(char *name)
{
	char *unit = strstr(name, " [");

	if (unit)
		*unit = '\0';
}

/* Returns the number of columns of a heading with that column; 0 for another line. */
static size_t heading(char *line, const char *column, char *names[COLUMNS_MAX])
{
	size_t count = split(line, names, COLUMNS_MAX);
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		drop_unit(names[i]);
		found |= strcmp(names[i], column) == 0;
	}
	return found ? count : 0;
}

/* Returns false for a line that is no row. */
static bool add_row(json_t *rows, char *line, char *names[COLUMNS_MAX], size_t columns)
{
	char *cells[COLUMNS_MAX];
	json_t *row;

	if (split(line, cells, columns) != columns || json_array_size(rows) >= ROWS_MAX)
		return false;
	row = json_object();
	for (size_t i = 0; i < columns; i++)
		js_put(row, names[i], js_text(cells[i], strlen(cells[i])));
	json_array_append_new(rows, row);
	return true;
}

/* Keeps the line in *ret unless it is blank. */
static void keep(const char *line, size_t len, char **ret)
{
	while (len > 0 && strchr(" \t\r", line[len - 1]))
		len--;
	if (len == 0)
		return;
	free(*ret);
	*ret = mem_copy_n(line, len);
}

json_t *health_smi_parse(const char *text, size_t len, const char *column, char **ret_aside,
			 struct err **err)
{
	AUTO(auto_free) char *copy = mem_copy_n(text, len);
	AUTO(auto_free) char *aside = NULL;
	json_t *rows = json_array();
	char *names[COLUMNS_MAX], *save = NULL;
	size_t columns = 0;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t length = strlen(line);
		bool known = columns > 0 ? add_row(rows, line, names, columns)
					 : (columns = heading(line, column, names)) > 0;

		if (!known)
			keep(text + (line - copy), length, &aside);
	}
	if (ret_aside)
		*ret_aside = TAKE(aside);
	if (columns > 0)
		return rows;
	json_decref(rows);
	err_set(err, EXIT_REFUSED, "nvidia-smi prints no column '%s'", column);
	return NULL;
}

char *health_smi_unknown(const char *text, size_t len)
{
	AUTO(auto_free) char *copy = mem_copy_n(text, len);
	char *name = strstr(copy, "Field \""), *end;

	name = name ? name + strlen("Field \"") : NULL;
	end = name ? strchr(name, '"') : NULL;
	if (!end || !text_starts(end, "\" is not a valid field to query"))
		return NULL;
	return mem_copy_n(name, (size_t)(end - name));
}

const char *health_smi_broken(const char *cell)
{
	static const char *const words[] = { "GPU is lost", "GPU requires reset" };

	for (size_t i = 0; cell && i < STK_LENGTH(words); i++) {
		size_t length = strlen(words[i]);

		if (cell[0] == '[' && strncasecmp(cell + 1, words[i], length) == 0 &&
		    strcmp(cell + 1 + length, "]") == 0)
			return words[i];
	}
	return NULL;
}

bool health_smi_count(const char *text, int64_t *ret)
{
	char *end;

	if (!text)
		return false;
	if (strcasecmp(text, "Yes") == 0 || strcasecmp(text, "No") == 0) {
		*ret = strcasecmp(text, "Yes") == 0;
		return true;
	}
	*ret = strtoll(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0';
}
