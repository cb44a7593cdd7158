/*
 * Collectives on GPUs, by the programs of NVIDIA's nccl-tests (all_reduce_perf and its like) where
 * the image has them: see health_internal.h. Their table has a heading of two lines that begin with
 * '#'; the first names the columns, twice over for what is done out of place and in place. Older
 * ones have "error" where newer ones count "#wrong" elements. Source: nccl-tests, src/common.cu.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"

#define COLUMNS_MAX 32
#define PORT_ABOVE  80 /* of torchrun on this node alone: above those of the rounds with others */

static char *program_of(const struct checkup *c, const char *operation)
{
	AUTO(auto_free) char *name = mem_format("%s_perf", operation);

	return health_tool_find(&c->env, name);
}

struct perf_table {
	int busbw, time; /* columns, counted from 0; -1: absent */
	size_t columns;  /* 0: no heading yet */
	double best;     /* bus bandwidth in GB/s of the last row; -1: none */
	double time_us;
	bool has_average; /* the last line is there: the test got to its end */
	char *failure;    /* owned: the line that says so */
};

static size_t words_of(char *line, char *words[COLUMNS_MAX])
{
	size_t count = 0;
	char *save = NULL;

	for (char *word = strtok_r(line, " \t\r", &save); word && count < COLUMNS_MAX;
	     word = strtok_r(NULL, " \t\r", &save))
		words[count++] = word;
	return count;
}

/* "#  size  count  type …": the first of two columns of a name is out of place. */
static void take_heading(struct perf_table *table, char *words[], size_t count)
{
	table->busbw = table->time = -1;
	table->columns = count;
	for (size_t i = count; i-- > 0;) {
		if (strcmp(words[i], "busbw") == 0)
			table->busbw = (int)i;
		else if (strcmp(words[i], "time") == 0)
			table->time = (int)i;
	}
}

static double figure_at(char *words[], int column)
{
	double value = -1;
	size_t len = column < 0 ? 0 : strlen(words[column]);

	if (len == 0 || text_float(words[column], len, &value) != len || !isfinite(value))
		return -1;
	return value;
}

static void take_line(struct perf_table *table, char *line)
{
	bool note = line[strspn(line, " \t")] == '#';
	char *words[COLUMNS_MAX];
	size_t count;

	if ((strstr(line, "Out of bounds values") && strstr(line, "FAILED")) ||
	    strstr(line, "Test NCCL failure") || strstr(line, "Test CUDA failure"))
		table->failure = table->failure ? table->failure : mem_copy(line);
	table->has_average |= strstr(line, "Avg bus bandwidth") != NULL;
	if (note)
		line += strspn(line, " \t#");
	count = words_of(line, words);
	if (note && count > 2 && strcmp(words[0], "size") == 0)
		take_heading(table, words, count);
	else if (!note && count > 0 && count == table->columns) {
		double busbw = figure_at(words, table->busbw);

		table->best = busbw >= 0 ? busbw : table->best;
		table->time_us = busbw >= 0 ? figure_at(words, table->time) : table->time_us;
	}
}

/* Returns what went wrong, NULL with the figures added. */
static char *read_table(struct checkup *c, const char *operation, const struct tool_result *result)
{
	struct perf_table table = { .busbw = -1, .time = -1, .best = -1 };
	AUTO(auto_free) char *copy = mem_copy_n(result->out.text, result->out.len);
	AUTO(auto_free) char *last = health_tool_last_words(result);
	AUTO(auto_free) char *failure = NULL;
	AUTO(sb_release) struct sb safe = SB_INIT_MAX(400);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		take_line(&table, line);
	failure = table.failure;
	if (failure) {
		text_escape(&safe, failure, strlen(failure), false);
		return mem_format("%s_perf says: %s", operation, safe.text);
	}
	if (result->status != 0)
		return mem_format("%s_perf ended with %d: %s", operation, result->status, last);
	if (!table.has_average || table.best < 0)
		return mem_format("%s_perf ended with 0, but printed no figures", operation);
	health_put_figures(c->figures, operation, table.best, fmax(table.time_us, 0), c->cores);
	return NULL;
}

static char *by_tests(struct checkup *c, char *program, const char *operation)
{
	AUTO(auto_free) char *size = mem_format("%lld", (long long)c->order->size);
	AUTO(auto_free) char *gpus = mem_format("%d", c->cores);
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	char *argv[] = { program,
			 (char[]){ "-b" },
			 size,
			 (char[]){ "-e" },
			 size,
			 (char[]){ "-g" },
			 gpus,
			 (char[]){ "-n" },
			 (char[]){ "20" },
			 (char[]){ "-w" },
			 (char[]){ "5" },
			 (char[]){ "-c" },
			 (char[]){ "1" },
			 NULL };
	struct mono from = clock_mono_now();

	if (health_tool_run(&c->env, c->folder, argv, c->end, &result, &why) < 0) {
		c->unable = true;
		return mem_format("%s_perf: %s", operation, why->message);
	}
	if (result.hung) {
		AUTO(auto_free) char *what = mem_format("%s_perf", operation);

		return health_hung_words(c, what, from, c->end);
	}
	/* 126 and 127: the loader does not find its libraries. */
	c->unable = result.status == 126 || result.status == 127;
	return read_table(c, operation, &result);
}

char *health_nccl_collective(struct checkup *c, const char *operation)
{
	AUTO(auto_free) char *program = program_of(c, operation);

	c->unable = false;
	if (program)
		return by_tests(c, program, operation);
	if (strcmp(operation, "all_reduce") == 0 && !json_object_get(c->told, "torch"))
		health_find_torch(c);
	if (strcmp(operation, "all_reduce") == 0 && c->xla)
		return health_run_torch(c, 1, 0, "127.0.0.1",
					js_int(c->told, "port", 0) + PORT_ABOVE, c->end, operation,
					c->figures);
	c->unable = true;
	return mem_format("%s_perf (nccl-tests) is not in this image", operation);
}
