/* Reads what Neuron's tools print: see health_parse.h. */
#include "jobs/node/health/health_parse.h"

#include <math.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define COLUMNS_MAX   32
#define DEVICES_MAX   4096
#define CORES_MAX     1024 /* per device */
#define PROCESSES_MAX 64

void health_neuron_ls_release(struct neuron_ls *ls)
{
	json_decref(ls->processes);
	*ls = (struct neuron_ls){ 0 };
}

static void add_processes(struct neuron_ls *ls, const json_t *device)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(device, "neuron_processes"), i, one) {
		json_t *row = json_object();

		js_put(row, "device", json_integer(js_int(device, "neuron_device", ls->devices)));
		js_put(row, "pid", json_integer(js_int(one, "pid", 0)));
		js_put_str(row, "command", js_str(one, "command"));
		if (json_array_size(ls->processes) < PROCESSES_MAX)
			json_array_append_new(ls->processes, row);
		else
			json_decref(row);
	}
}

/* Returns the start of the first list that is empty or of objects: some versions print greeting
 * lines first, and those may begin with "[INFO]". NULL if there is no list. */
static const char *find_list(const char *text, size_t len)
{
	const char *end = text + len, *at = text;

	while ((at = memchr(at, '[', (size_t)(end - at)))) {
		const char *next = ++at;

		while (next < end && strchr(" \t\r\n", *next) && *next)
			next++;
		if (next < end && (*next == '{' || *next == ']'))
			return at - 1;
	}
	return NULL;
}

int health_neuron_ls_parse(const char *text, size_t len, struct neuron_ls *ret, struct err **err)
{
	AUTO(health_neuron_ls_release) struct neuron_ls ls = { .processes = json_array() };
	const char *begin = find_list(text, len);
	json_auto_t *list = NULL;
	const json_t *device;
	size_t i;

	if (begin) {
		len -= (size_t)(begin - text);
		text = begin;
	}
	if (js_parse(text, len, "neuron-ls", &list, err) < 0)
		return -1;
	if (!json_is_array(list) || json_array_size(list) > DEVICES_MAX)
		return err_set(err, EXIT_REFUSED, "neuron-ls shows no list of devices");
	json_array_foreach (list, i, device) {
		int64_t cores = js_int(device, "nc_count", 0);

		if (!json_is_object(device))
			return err_set(err, EXIT_REFUSED,
				       "neuron-ls shows something else than "
				       "devices");
		if (cores > 0 && cores <= CORES_MAX)
			ls.cores += (int)cores;
		add_processes(&ls, device);
		ls.devices++;
	}
	*ret = ls;
	ls = (struct neuron_ls){ 0 };
	return 0;
}

/* ---- nccom-test ---------------------------------------------------------------- */

static bool is_figure(double value)
{
	return isfinite(value) && value >= 0;
}

/* "time:avg(us)", or "time(us)" in versions without percentiles. */
static bool is_time(const char *name)
{
	return strcmp(name, "time:avg(us)") == 0 || strcmp(name, "time(us)") == 0;
}

/* Keeps the row of the largest message. */
static void keep_largest(struct nccom_row *best, bool *any, const struct nccom_row *row)
{
	if (*any && row->size < best->size)
		return;
	*best = *row;
	*any = true;
}

int health_nccom_parse_json(const char *text, size_t len, struct nccom_row *ret, struct err **err)
{
	json_auto_t *report = NULL;
	struct nccom_row best = { 0 };
	const json_t *one;
	bool any = false;
	size_t i;

	if (js_parse(text, len, "the report of nccom-test", &report, err) < 0)
		return -1;
	json_array_foreach (json_object_get(report, "results"), i, one) {
		struct nccom_row row = {
			js_real(one, "size(B)", -1), js_real(one, "busbw(GB/s)", -1),
			js_real(one, "time:avg(us)", js_real(one, "time(us)", 0))
		};

		if (is_figure(row.size) && is_figure(row.busbw) && is_figure(row.time_us))
			keep_largest(&best, &any, &row);
	}
	if (!any)
		return err_set(err, EXIT_REFUSED, "the report of nccom-test holds no figures");
	*ret = best;
	return 0;
}

/* Splits a line into words, at most COLUMNS_MAX, and returns their number. Changes the line. */
static size_t split(char *line, char *words[COLUMNS_MAX])
{
	size_t count = 0;
	char *save = NULL;

	for (char *word = strtok_r(line, " \t\r", &save); word && count < COLUMNS_MAX;
	     word = strtok_r(NULL, " \t\r", &save))
		words[count++] = word;
	return count;
}

struct nccom_table {
	int size, busbw, time; /* columns; -1: absent */
	size_t columns;        /* 0: no heading yet */
	struct nccom_row best;
	bool any;
	double average; /* below the table; -1: absent */
};

static void take_heading(struct nccom_table *table, char *words[], size_t count)
{
	table->size = table->busbw = table->time = -1;
	table->columns = count;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], "size(B)") == 0)
			table->size = (int)i;
		else if (strcmp(words[i], "busbw(GB/s)") == 0)
			table->busbw = (int)i;
		else if (is_time(words[i]))
			table->time = (int)i;
	}
}

static bool number_at(char *words[], int column, double *ret)
{
	size_t len = column < 0 ? 0 : strlen(words[column]);

	return len > 0 && text_float(words[column], len, ret) == len && is_figure(*ret);
}

static void take_row(struct nccom_table *table, char *words[], size_t count)
{
	struct nccom_row row = { .busbw = -1 };

	/* "Failure running …" stands where a row would. */
	if (table->columns == 0 || count != table->columns ||
	    !number_at(words, table->size, &row.size))
		return;
	if (table->busbw >= 0 && !number_at(words, table->busbw, &row.busbw))
		return;
	if (table->time >= 0 && !number_at(words, table->time, &row.time_us))
		return;
	keep_largest(&table->best, &table->any, &row);
}

/* "Avg bus bandwidth:\t40.6901GB/s": no blank before the unit. */
static void take_average(struct nccom_table *table, const char *text)
{
	size_t len;
	double value;

	text += strspn(text, " \t");
	len = text_float(text, strlen(text), &value);
	if (len > 0 && is_figure(value) &&
	    strncmp(text + len + strspn(text + len, " "), "GB/s", 4) == 0)
		table->average = value;
}

static void take_line(struct nccom_table *table, char *line)
{
	static const char average[] = "Avg bus bandwidth:";
	char *words[COLUMNS_MAX];
	char *at = strstr(line, average);
	size_t count;

	if (at) {
		take_average(table, at + strlen(average));
		return;
	}
	count = split(line, words);
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], "size(B)") == 0) {
			take_heading(table, words, count);
			return;
		}
	take_row(table, words, count);
}

int health_nccom_parse_table(const char *text, size_t len, struct nccom_row *ret, struct err **err)
{
	struct nccom_table table = { .average = -1 };
	AUTO(auto_free) char *copy = mem_copy_n(text, len);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		take_line(&table, line);
	/* Output that breaks off before its last line is not complete. */
	if (!table.any || table.average < 0)
		return err_set(err, EXIT_REFUSED, "nccom-test printed no figures");
	if (table.best.busbw < 0)
		table.best.busbw = table.average;
	*ret = table.best;
	return 0;
}

char *health_nccom_failure(const char *text, size_t len)
{
	static const char *const signs[] = { "Failure running", "errors found",
					     "Neuron DKMS Driver is not running",
					     "Neuron Driver is not running" };
	AUTO(auto_free) char *copy = mem_copy_n(text, len);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\r\n", &save); line;
	     line = strtok_r(NULL, "\r\n", &save)) {
		line += strspn(line, " \t");
		for (size_t i = 0; i < STK_LENGTH(signs); i++)
			if (strstr(line, signs[i]))
				return mem_copy(line);
	}
	return NULL;
}
