/* The readings of a run that count, in the forms of other programs: see export_series.h. */
#include "cmd/export/export_series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/csv.h"
#include "cmd/view/reading_line.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/run/attempt/run_series.h"
#include "jobs/series/event_file.h"
#include "jobs/store/order.h"

/* TensorBoard's and PyTorch's own default. */
#define FOLDER "runs"
#define BUFFER ((size_t)256 << 10)

/* A file while it is written; of a curve file one for each node. */
struct export_file {
	char *path, *temp; /* owned; NULL: not begun, or stdout */
	FILE *file;
	struct sb buffer;
	int64_t readings;
	struct utc at;    /* of the newest reading with a time */
	int64_t step;     /* of the newest reading with a step; 0: none yet */
	int64_t *numbers; /* owned: how many readings of each metric had no step */
};

struct exporter {
	enum series_form form;
	const char *to;         /* the word of the form */
	const char *run, *dest; /* dest NULL: stdout */
	struct utc created;
	struct run_series *series;
	bool has_steps; /* a metric of the run tells the step, or the epoch that stands for it */
	struct export_file *files;
	int count;
};

static void export_release(struct exporter *exporter)
{
	for (int i = 0; i < exporter->count; i++) {
		struct export_file *file = &exporter->files[i];

		if (file->file)
			fclose(file->file);
		if (file->temp)
			unlink(file->temp);
		free(file->temp);
		free(file->path);
		free(file->numbers);
		sb_release(&file->buffer);
	}
	free(exporter->files);
	run_series_freep(&exporter->series);
}

/* ---- files ---- */

/* A file that is there is replaced when the new one is whole. */
static int begin_file(struct export_file *file, char *path, struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(path);
	char digits[HASH_NAME_HEX];

	file->path = path;
	hash_random_hex(8, digits);
	if (strcmp(folder, ".") != 0 && strcmp(folder, "/") != 0 && fs_mkdirs(folder, err) < 0)
		return -1;
	file->temp = mem_format("%s/.export-%s", folder, digits);
	file->file = fopen(file->temp, "wxe");
	if (!file->file) {
		int why = errno;

		free(TAKE(file->temp));
		return fs_error(err, why, "cannot write '%s'", path);
	}
	return 0;
}

static int flush_buffer(struct export_file *file, struct err **err)
{
	if (file->file && file->buffer.len > 0 &&
	    fwrite(file->buffer.text, 1, file->buffer.len, file->file) != file->buffer.len)
		return fs_error(err, errno, "cannot write '%s'", file->path);
	sb_clear(&file->buffer);
	return 0;
}

static int end_file(struct export_file *file, struct err **err)
{
	if (!file->file)
		return 0;
	if (flush_buffer(file, err) < 0)
		return -1;
	if (fflush(file->file) != 0 || fsync(fileno(file->file)) < 0 ||
	    fclose(TAKE(file->file)) != 0 || rename(file->temp, file->path) < 0)
		return fs_error(err, errno, "cannot write '%s'", file->path);
	free(TAKE(file->temp));
	return 0;
}

/* ---- TensorBoard ---- */

/* TensorBoard calls each folder a run; it knows its files by "tfevents" in their names, and reads
 * them in the order of these. The same run has the same name again. */
static char *event_path(const struct exporter *exporter, int node)
{
	AUTO(auto_free)
	char *folder = node == 0 ? mem_format("%s/%s", exporter->dest, exporter->run)
				 : mem_format("%s/%s/node-%d", exporter->dest, exporter->run, node);

	return mem_format("%s/events.out.tfevents.%010lld.stoker", folder,
			  (long long)(exporter->created.ms / 1000));
}

/* Every value has a step there: one before the first step of an attempt is at the step before, or
 * 0. If a run tells no steps at all, the readings of each metric are counted. */
static int64_t step_of(const struct exporter *exporter, struct export_file *file,
		       const struct run_reading *reading)
{
	if (!exporter->has_steps)
		return file->numbers[reading->metric]++;
	if (reading->step >= 0)
		file->step = reading->step;
	return file->step;
}

static int write_event(struct exporter *exporter, const struct run_reading *reading,
		       struct err **err)
{
	struct export_file *file = &exporter->files[reading->node];

	if (!file->file) {
		if (begin_file(file, event_path(exporter, reading->node), err) < 0)
			return -1;
		file->at = exporter->created;
		file->numbers =
			mem_zero(run_series_metrics(exporter->series), sizeof *file->numbers);
		event_file_begin(&file->buffer, reading->at.ms > 0 ? reading->at : file->at);
	}
	if (reading->at.ms > 0)
		file->at = reading->at;
	event_file_scalar(&file->buffer, file->at, step_of(exporter, file, reading), reading->name,
			  reading->value);
	file->readings++;
	return file->buffer.len < BUFFER ? 0 : flush_buffer(file, err);
}

/* ---- lines ---- */

static int put_line(struct exporter *exporter, const char *line, struct err **err)
{
	struct export_file *file = &exporter->files[0];

	if (!exporter->dest) {
		out_line("%s", line);
		return 0;
	}
	sb_addf(&file->buffer, "%s\n", line);
	return file->buffer.len < BUFFER ? 0 : flush_buffer(file, err);
}

/* Without a reading the file is empty, and not one of an earlier export. */
static int begin_lines(struct exporter *exporter, struct err **err)
{
	if (exporter->form == SERIES_TENSORBOARD)
		return 0;
	if (exporter->dest && begin_file(&exporter->files[0], mem_copy(exporter->dest), err) < 0)
		return -1;
	return exporter->form == SERIES_CSV
		       ? put_line(exporter, "run,attempt,node,at,step,name,value", err)
		       : 0;
}

static int write_csv(struct exporter *exporter, const struct run_reading *reading, struct err **err)
{
	AUTO(sb_release) struct sb line = SB_INIT;
	char at[UTC_TEXT] = "", value[TEXT_NUMBER];

	if (reading->at.ms > 0)
		clock_utc_format(reading->at, at);
	sb_addf(&line, "%s,%lld,%d,%s,", exporter->run, (long long)reading->attempt, reading->node,
		at);
	if (reading->step >= 0)
		sb_addf(&line, "%lld", (long long)reading->step);
	csv_add(&line, false, reading->name);
	csv_add(&line, false, text_number(reading->value, value));
	exporter->files[0].readings++;
	return put_line(exporter, line.text, err);
}

static int write_json(struct exporter *exporter, const struct run_reading *reading,
		      struct err **err)
{
	json_auto_t *object = reading_line_json(exporter->run, reading);
	AUTO(auto_free) char *line = NULL;

	exporter->files[0].readings++;
	if (!exporter->dest) {
		out_json_exact(object);
		return 0;
	}
	line = js_line_exact(object);
	return put_line(exporter, line, err);
}

/* ---- all ---- */

static int write_reading(void *arg, const struct run_reading *reading, struct err **err)
{
	struct exporter *exporter = arg;
	static int (*const writers[])(struct exporter *, const struct run_reading *,
				      struct err **) = {
		[SERIES_TENSORBOARD] = write_event,
		[SERIES_CSV] = write_csv,
		[SERIES_JSONL] = write_json,
	};

	/* A step that a later attempt makes again has left nothing. */
	return reading->counts ? writers[exporter->form](exporter, reading, err) : 0;
}

static int note_created(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev)
		*(struct utc *)arg = ev->at;
	return 1;
}

static int check(const struct exporter *exporter, struct err **err)
{
	if (exporter->form != SERIES_CSV || exporter->dest || !out_is_json())
		return 0;
	err_set(err, EXIT_USAGE, "with --json no comma-separated values go to stdout");
	return err_hint(err, "name a file behind the run, or omit --json");
}

static int open_run(const struct args *args, struct exporter *exporter, char run[JOURNAL_RUN_MAX],
		    struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;

	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0 ||
	    run_series_open(journal, run, &exporter->series, err) < 0 ||
	    journal_read(journal, run, 1, note_created, &exporter->created, err) < 0)
		return -1;
	exporter->count = (int)js_int(run_series_plan(exporter->series), "nodes", 1);
	exporter->files = mem_zero((size_t)exporter->count, sizeof *exporter->files);
	for (int i = 0; i < exporter->count; i++)
		exporter->files[i].buffer = SB_INIT;
	exporter->has_steps = order_progress_metric(json_object_get(
				      run_series_plan(exporter->series), "metrics")) != SIZE_MAX;
	return 0;
}

static void tell(const struct exporter *exporter, int node)
{
	const struct export_file *file = &exporter->files[node];
	json_auto_t *row = json_object();

	if (!file->path)
		return;
	js_put_str(row, "run", exporter->run);
	js_put_str(row, "to", exporter->to);
	if (exporter->form == SERIES_TENSORBOARD)
		js_put(row, "node", json_integer(node));
	js_put_str(row, "path", file->path);
	js_put(row, "readings", json_integer(file->readings));
	if (out_is_json())
		out_json(row);
	out_line("%s", file->path);
}

int export_series(const struct args *args, enum series_form form, const char *to, const char *dest,
		  struct err **err)
{
	char run[JOURNAL_RUN_MAX];
	AUTO(export_release) struct exporter exporter = { .form = form, .to = to, .run = run };
	int64_t readings = 0;

	exporter.dest = !dest && form == SERIES_TENSORBOARD ? FOLDER : dest;
	if (check(&exporter, err) < 0 || open_run(args, &exporter, run, err) < 0)
		return -1;
	out_bulk(true);
	if (begin_lines(&exporter, err) < 0)
		return -1;
	if (run_series_each(exporter.series, write_reading, &exporter, err) < 0)
		return -1;
	for (int i = 0; i < exporter.count; i++) {
		if (end_file(&exporter.files[i], err) < 0)
			return -1;
		readings += exporter.files[i].readings;
		tell(&exporter, i);
	}
	out_bulk(false);
	if (readings == 0)
		out_note("no reading: there is no such number in the logs of the training");
	else if (exporter.form == SERIES_TENSORBOARD)
		out_note("'tensorboard --logdir %s' shows them", exporter.dest);
	return EXIT_DONE;
}
