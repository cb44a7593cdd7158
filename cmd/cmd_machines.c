/* machines: the catalogue of instance types, stoker's own rows and the user's. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "cmd/view/table.h"
#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/instance.h"

#define MIB INT64_C(1048576)
#define GB  INT64_C(1000000000)

/* ---- operands and options ---- */

static const char *env_of(const char *name)
{
	return getenv(name);
}

/* True if the word is in the name of the type, in that of its GPU, or its kind of accelerator.
 * "ml.TYPE" asks for what SageMaker trains on. */
static bool matches(const json_t *row, const char *word)
{
	bool trained = text_starts(word, "ml.");
	const char *gpu = js_str(row, "gpu"), *kind = js_str(row, "accelerator");

	if (trained && !json_is_true(json_object_get(row, "sagemaker")))
		return false;
	word += trained ? strlen("ml.") : 0;
	return strcasestr(js_str(row, "type"), word) || (gpu && strcasestr(gpu, word)) ||
	       (kind && strcasecmp(kind, word) == 0);
}

static json_t *rows_of(const json_t *catalogue, const char *word)
{
	json_auto_t *types = instance_types(catalogue);
	json_t *rows = json_array(), *type;
	size_t i;

	json_array_foreach (types, i, type) {
		json_t *row = instance_find(catalogue, json_string_value(type));

		if (!word || matches(row, word))
			json_array_append_new(rows, row);
		else
			json_decref(row);
	}
	return rows;
}

static int64_t accelerators_of(const json_t *row)
{
	int64_t count = accelerator_count(row);

	return count > 0 ? count : js_int(row, "devices", 0);
}

/* ---- output for programs ---- */

/* Keys of a line, in order, and the member that each is: of an amount in other units than bytes
 * with the bytes of one. */
static const struct {
	const char *key, *member;
	int64_t unit;
} keys[] = {
	{ "type", "type", 0 },
	{ "accelerator", "accelerator", 0 },
	{ "devices", "devices", 0 },
	{ "cores", "cores", 0 },
	{ "physical_cores", "physical_cores", 0 },
	{ "memory_bytes", "memory_mib", MIB },
	{ "gpus", "gpus", 0 },
	{ "gpu", "gpu", 0 },
	{ "gpu_memory_bytes", "gpu_memory_mib", MIB },
	{ "vcpus", "vcpus", 0 },
	{ "ram_bytes", "ram_mib", MIB },
	{ "arch", "arch", 0 },
	{ "nvme_bytes", "nvme_gb", GB },
	{ "efa", "efa", 0 },
	{ "gbps", "gbps", 0 },
	{ "quota", "quota", 0 },
	{ "spot_quota", "spot_quota", 0 },
	{ "price", "price", 0 },
	{ "region", "region", 0 },
	{ "dated", "dated", 0 },
	{ "source", "source", 0 },
	{ "figures", "figures", 0 },
	{ "figures_dated", "figures_dated", 0 },
};

static void print_row(const json_t *row)
{
	json_auto_t *line = json_object();
	int64_t count = accelerators_of(row);

	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		json_t *value = json_object_get(row, keys[i].member);

		if (value && keys[i].unit > 0)
			js_put(line, keys[i].key,
			       json_integer(json_integer_value(value) * keys[i].unit));
		else
			js_put(line, keys[i].key, json_incref(value));
	}
	js_put(line, "sagemaker", json_boolean(json_is_true(json_object_get(row, "sagemaker"))));
	if (json_object_get(row, "price") && count > 0)
		js_put(line, "accelerator_price",
		       json_real(js_real(row, "price", 0) / (double)count));
	out_json(line);
}

/* ---- output for people ---- */

enum column {
	TYPE,
	ACCELERATORS,
	MEMORY,
	VCPUS,
	RAM,
	NVME,
	EFA,
	PRICE,
	EACH,
	SAGEMAKER,
	SOURCE,
	DATED,
	PRICE_OF,
	PRICE_DATED,
	COLUMNS
};

/* The sources are what a narrow terminal leaves out first. */
static const struct {
	const char *title;
	int rank;
} columns[COLUMNS] = {
	[TYPE] = { "TYPE", 0 },
	[ACCELERATORS] = { "ACCELERATORS", 0 },
	[MEMORY] = { "MEMORY", 0 },
	[VCPUS] = { "VCPUS", 2 },
	[RAM] = { "RAM", 2 },
	[NVME] = { "NVME", 4 },
	[EFA] = { "EFA", 1 },
	[PRICE] = { "USD/H", 0 },
	[EACH] = { "USD/ACC-H", 1 },
	[SAGEMAKER] = { "SAGEMAKER", 1 },
	[SOURCE] = { "SOURCE", 6 },
	[DATED] = { "DATED", 5 },
	[PRICE_OF] = { "PRICE SOURCE", 6 },
	[PRICE_DATED] = { "PRICE DATED", 5 },
};

static char *gib(int64_t mib)
{
	return mib % 1024 == 0 ? mem_format("%lld GiB", (long long)(mib / 1024))
			       : mem_format("%.1f GiB", (double)mib / 1024);
}

static char *accelerator_text(const json_t *row)
{
	int64_t devices = js_int(row, "devices", 0), gpus = js_int(row, "gpus", 0);
	int64_t cores = js_int(row, "cores", 0);

	if (devices > 0 && cores > 0)
		return mem_format("%lld Neuron, %lld cores", (long long)devices, (long long)cores);
	if (devices > 0)
		return mem_format("%lld Neuron", (long long)devices);
	if (gpus > 0)
		return mem_format("%lld %s", (long long)gpus,
				  js_str(row, "gpu") ? js_str(row, "gpu") : "GPU");
	return js_str(row, "accelerator") ? mem_copy(js_str(row, "accelerator")) : NULL;
}

static void set_count(struct table *table, enum column column, const json_t *row, const char *key)
{
	if (json_object_get(row, key))
		table_set(table, column, mem_format("%lld", (long long)js_int(row, key, 0)));
}

static void set_text(struct table *table, enum column column, const char *text)
{
	if (text)
		table_set(table, column, mem_copy(text));
}

static void add_row(struct table *table, const json_t *row)
{
	int64_t count = accelerators_of(row), gpu = js_int(row, "gpu_memory_mib", 0);
	int64_t memory = gpu > 0 ? gpu * js_int(row, "gpus", 0) : js_int(row, "memory_mib", 0);
	double price = js_real(row, "price", 0);
	char number[TEXT_NUMBER];
	const char *region = js_str(row, "region"), *dated = js_str(row, "dated");

	table_add_row(table, MARK_NONE);
	table_set(table, TYPE, mem_copy(js_str(row, "type")));
	table_set(table, ACCELERATORS, accelerator_text(row));
	if (memory > 0)
		table_set(table, MEMORY, gib(memory));
	set_count(table, VCPUS, row, "vcpus");
	if (js_int(row, "ram_mib", 0) > 0)
		table_set(table, RAM, gib(js_int(row, "ram_mib", 0)));
	if (js_int(row, "nvme_gb", 0) > 0)
		table_set(table, NVME, mem_format("%lld GB", (long long)js_int(row, "nvme_gb", 0)));
	set_count(table, EFA, row, "efa");
	if (price > 0)
		table_set(table, PRICE, mem_copy(text_number(price, number)));
	if (price > 0 && count > 0)
		table_set(table, EACH, mem_format("%.4f", price / (double)count));
	table_set(table, SAGEMAKER,
		  mem_copy(json_is_true(json_object_get(row, "sagemaker")) ? "yes" : "no"));
	set_text(table, SOURCE, js_str(row, "figures"));
	set_text(table, DATED, js_str(row, "figures_dated"));
	set_text(table, PRICE_OF, js_str(row, "source"));
	if (region || dated)
		table_set(table, PRICE_DATED,
			  mem_format("%s%s%s", region ? region : "", region && dated ? " " : "",
				     dated ? dated : ""));
}

static void print_table(const json_t *rows)
{
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb lines = SB_INIT_MAX(SIZE_MAX / 2);
	const json_t *row;
	size_t i;

	for (int column = 0; column < COLUMNS; column++)
		table_add_column(&table, columns[column].title, columns[column].rank, 0);
	json_array_foreach (rows, i, row)
		add_row(&table, row);
	table_print(&table, out_is_verbose() ? 0 : out_width(), SIZE_MAX, out_style(), &lines);
	out_finished(lines.text);
}

/* ---- the command ---- */

static int tell_mistakes(const struct problems *problems, struct err **err)
{
	for (size_t i = 0; i < problems->count; i++) {
		AUTO(auto_free) char *line = problem_format(&problems->list[i]);

		out_error_line(line);
		if (problems->list[i].hint)
			out_hint("%s", problems->list[i].hint);
	}
	if (problems->errors == 0)
		return 0;
	err_set(err, EXIT_SPEC, "the catalogue of your own has mistakes: %s",
		problems->list[0].file);
	return err_hint(err, "correct it; what is listed is without the wrong figures");
}

int cmd_machines(const struct args *args, struct err **err)
{
	AUTO(problems_release) struct problems problems = { 0 };
	const char *word = args->operand_count > 0 ? args->operands[0] : NULL;
	json_auto_t *catalogue = instances_load(env_of, &problems);
	json_auto_t *rows = rows_of(catalogue, word);
	AUTO(auto_free) char *nearest = NULL;
	const json_t *row;
	size_t i;

	if (word && json_array_size(rows) == 0 && problems.errors == 0) {
		nearest = instance_nearest(catalogue, word);
		err_set(err, EXIT_USAGE, "no machine of the catalogue has '%.80s' in its name",
			word);
		return err_hint(err, "%s%s%s'stoker machines' lists all of them",
				nearest ? "did you mean '" : "", nearest ? nearest : "",
				nearest ? "'? " : "");
	}
	if (out_is_json())
		json_array_foreach (rows, i, row)
			print_row(row);
	else if (json_array_size(rows) > 0)
		print_table(rows);
	return tell_mistakes(&problems, err);
}
