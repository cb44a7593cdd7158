/* Keeps the readings of a log: see series_writer.h. */
#include "jobs/series/series_writer.h"

#include <stdlib.h>

#include "jobs/base/text/tail.h"
#include "jobs/series/series_file.h"
#include "jobs/store/order.h"

#define WRITE_MS 1000
/* Reading may take this much of each second; the rest of the second's lines is left out. The clock
 * is asked before every so many lines. */
#define SECOND_MS     1000
#define SPEND_US      500000
#define LINES_BETWEEN 16u
/* Bytes of a log without readings after which the file says that they are read. */
#define READ_BYTES ((uint64_t)1 << 20)

struct series_writer {
	struct series_file file;
	struct metric_reader *reader;
	struct metric_reading *readings; /* room for those of a line */
	uint32_t start;                  /* number of the command's start that goes on now */
	struct tail tail;
	int64_t step;
	struct utc at; /* time of the bytes that are read now */
	bool late;
	bool waits; /* for a step, after a part that was left out */
	bool spent; /* nothing is read until the second is over */
	struct mono second;
	struct cpu began;
	unsigned lines;
	uint64_t written; /* offset in the log up to which the file tells it */
	struct mono written_at;
	bool is_new; /* readings are not written yet */
};

/* ---- the file ---- */

static void write_block(struct series_writer *writer)
{
	series_file_write(&writer->file);
	writer->written = writer->file.block.to;
	writer->written_at = clock_mono_now();
	writer->is_new = false;
}

/* Writes what is not written yet. */
static void flush(struct series_writer *writer)
{
	if (writer->is_new || writer->file.block.to != writer->written)
		write_block(writer);
}

/* Writes the block, which goes up to this offset, and begins the next one there. */
static void end_block(struct series_writer *writer, uint64_t at)
{
	struct series_block *block = &writer->file.block;

	block->to = at;
	block->step_after = writer->step;
	if (block->count > 0 || at > block->from) {
		write_block(writer);
		series_file_next(&writer->file, at, writer->step);
		return;
	}
	series_block_begin(block, at, writer->step);
}

/* Finds the end of the whole blocks, and takes the last one up. */
static void restore(struct series_writer *writer, const struct series_log *log)
{
	uint32_t metrics = series_sum(log->specs, log->prefix, log->node);
	struct series_block *block = &writer->file.block;

	if (series_file_restore(&writer->file, metrics, log->size)) {
		writer->step = block->step_after;
		writer->tail.offset = writer->written = block->to;
	}
	writer->start = (uint32_t)log->start;
}

int series_writer_open(const char *path, const struct series_log *log, struct series_writer **ret,
		       struct err **err)
{
	AUTO(series_writer_freep) struct series_writer *writer = mem_zero(1, sizeof *writer);

	writer->step = -1;
	tail_init(&writer->tail);
	if (series_file_open(path, &writer->file, err) < 0 ||
	    metric_reader_new(log->specs, &writer->reader, err) < 0)
		return -1;
	writer->readings = mem_zero(metric_reader_count(writer->reader), sizeof *writer->readings);
	restore(writer, log);
	*ret = TAKE(writer);
	return 0;
}

void series_writer_freep(struct series_writer **writer)
{
	struct series_writer *w = *writer;

	if (!w)
		return;
	if (w->readings)
		flush(w);
	metric_reader_freep(&w->reader);
	free(w->readings);
	tail_release(&w->tail);
	series_file_release(&w->file);
	free(w);
	*writer = NULL;
}

/* ---- the log ---- */

uint64_t series_writer_offset(const struct series_writer *writer)
{
	return writer->tail.offset;
}

/* Makes sure that the block has room for all readings of the line, because the next reader goes on
 * behind a line, and that it has no other times than exact ones, or none. */
static void make_room(struct series_writer *writer, size_t count)
{
	struct series_block *block = &writer->file.block;

	if (!series_block_has_room(block, count) ||
	    (block->count > 0 && writer->late != (block->flags == SERIES_LATE)))
		end_block(writer, writer->tail.line_at);
	block->flags = writer->late ? SERIES_LATE : 0;
}

/* True if readings go on with this line. */
static bool goes_on(struct series_writer *writer, size_t count)
{
	size_t step = metric_reader_step(writer->reader);

	if (step != SIZE_MAX && (count == 0 || writer->readings[0].metric != step))
		return false;
	series_block_begin(&writer->file.block, writer->tail.line_at, writer->step);
	return true;
}

/* A new second: there is time again. */
static void begin_second(struct series_writer *writer)
{
	struct mono now = clock_mono_now();

	if (writer->second.ms > 0 && now.ms - writer->second.ms < SECOND_MS)
		return;
	writer->second = now;
	writer->began = clock_cpu_now();
	writer->spent = false;
}

/* Leaves out what comes from this line on, if there is no more time in this second. */
static bool is_spent(struct series_writer *writer)
{
	if (writer->spent || writer->lines++ % LINES_BETWEEN != 0 ||
	    clock_cpu_now().us - writer->began.us < SPEND_US)
		return writer->spent;
	if (!writer->waits)
		end_block(writer, writer->tail.line_at);
	return writer->waits = writer->spent = true;
}

/* Lines of an earlier start may be read by the writer of a later one, so the log says which they
 * are of. A new start has told no step. */
static void note_start(struct series_writer *writer, const char *line, size_t len)
{
	uint32_t start = metric_reader_start(line, len, writer->file.block.start);

	if (start == writer->file.block.start)
		return;
	if (!writer->waits)
		end_block(writer, writer->tail.line_at);
	writer->file.block.start = start;
	writer->step = writer->file.block.step_before = -1;
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct series_writer *writer = arg;
	int64_t step = writer->step;
	size_t count;

	if (is_agent_line(line, len)) {
		note_start(writer, line, len);
		return;
	}
	if (len == 0 || is_spent(writer))
		return;
	count = metric_reader_line(writer->reader, &step, line, len, writer->readings);
	writer->waits = writer->waits && !goes_on(writer, count);
	if (writer->waits)
		return;
	if (count > 0)
		make_room(writer, count);
	for (size_t i = 0; i < count; i++) {
		const struct metric_reading *reading = &writer->readings[i];

		series_block_add(&writer->file.block,
				 &(struct series_point){ reading->metric, reading->step, writer->at,
							 reading->value });
		writer->is_new = true;
	}
	writer->step = step;
}

/* The block goes up to the last line end. */
static void note_read(struct series_writer *writer)
{
	bool is_open = writer->tail.line.len > 0 || writer->tail.dropping;

	if (writer->waits)
		return;
	writer->file.block.to = is_open ? writer->tail.line_at : writer->tail.offset;
	writer->file.block.step_after = writer->step;
}

void series_writer_feed(struct series_writer *writer, const char *bytes, size_t len, struct utc at,
			bool late)
{
	writer->at = at;
	writer->late = late;
	begin_second(writer);
	tail_feed(&writer->tail, bytes, len, on_line, writer);
	writer->tail.offset += len;
	note_read(writer);
	series_writer_tick(writer);
}

void series_writer_skip(struct series_writer *writer, uint64_t offset)
{
	if (offset <= writer->tail.offset)
		return;
	if (!writer->waits)
		end_block(writer, writer->file.block.to);
	tail_skip(&writer->tail, offset);
	writer->waits = true;
	writer->file.block.start = writer->start;
}

void series_writer_tick(struct series_writer *writer)
{
	if ((writer->is_new && clock_mono_now().ms - writer->written_at.ms >= WRITE_MS) ||
	    writer->file.block.to - writer->written >= READ_BYTES)
		write_block(writer);
}
