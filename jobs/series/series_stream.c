/* Readings of a service's events: see series_stream.h. */
#include "jobs/series/series_stream.h"

#include <stdlib.h>

#include "jobs/series/series_mark.h"
#include "jobs/store/order.h"

#define OBJECT_BLOCKS 8  /* blocks of an object that is whole */
#define WAITING_MAX   28 /* blocks that could not be written, when the series ends */

struct series_stream {
	struct store *store; /* borrowed */
	char *folder;
	long long writer;
	size_t step_metric;
	struct series_mark before; /* of earlier writers */
	uint64_t before_to;        /* its place */
	int64_t before_step;       /* the newest step there */
	bool connected;            /* nothing between them and this one can be lost */
	struct series_mark mark;
	int64_t step; /* the newest; -1: none */
	uint64_t object_from;
	struct sb blocks;   /* blocks of the object that stay as they are */
	size_t block_count; /* of them */
	struct series_block block;
	bool is_new, is_ended, is_off;
};

/* ---- readings that are kept ---- */

static int on_block(void *arg, struct series_block *block, struct err **err)
{
	struct series_stream *stream = arg;

	(void)err;
	if (block->from > stream->block.to)
		return 0; /* behind a hole: all of that is read again */
	if (block->to > stream->block.to)
		stream->block.to = block->to;
	if (block->to < stream->block.to || !series_mark_decode(block, &stream->before))
		return 0;
	stream->before_to = block->to;
	stream->before_step = block->step_after;
	stream->is_ended = (block->flags & SERIES_END) != 0;
	return 0;
}

int series_stream_open(const struct series_place *place, int64_t writer, struct series_stream **ret,
		       struct err **err)
{
	AUTO(series_stream_freep) struct series_stream *stream = mem_zero(1, sizeof *stream);
	struct series_place own = *place;

	own.is_stream = true;
	own.log_size = UINT64_MAX;
	stream->store = place->store;
	stream->folder = mem_format("%snode-%d/" SERIES_FILE "/", place->prefix, place->node);
	stream->writer = (long long)writer;
	stream->step_metric = order_progress_metric(place->specs);
	stream->before_step = -1;
	stream->blocks = SB_INIT_MAX(SERIES_OBJECT_MAX);
	if (series_read(&own, on_block, stream, err) < 0)
		return -1;
	/* Readings behind the last mark are read again. */
	stream->object_from = stream->before_to;
	stream->step = stream->before_step;
	stream->connected = stream->before.at_ms == 0;
	series_mark_copy(&stream->mark, &stream->before);
	series_block_begin(&stream->block, stream->object_from, stream->step);
	stream->block.metrics = series_sum(place->specs, place->prefix, place->node);
	*ret = TAKE(stream);
	return 0;
}

void series_stream_freep(struct series_stream **stream)
{
	struct series_stream *s = *stream;

	if (!s)
		return;
	free(s->folder);
	series_mark_release(&s->before);
	series_mark_release(&s->mark);
	series_block_release(&s->block);
	sb_release(&s->blocks);
	free(s);
	*stream = NULL;
}

uint64_t series_stream_place(const struct series_stream *stream)
{
	return stream->block.to;
}

void series_stream_go_on(struct series_stream *stream)
{
	stream->connected = true;
}

bool series_stream_is_on(const struct series_stream *stream)
{
	return !stream->is_off;
}

/* ---- lines ---- */

/* The block stays as it is, and the next one begins. */
static void end_block(struct series_stream *stream)
{
	AUTO(err_freep) struct err *ignored = NULL; /* it is tried again */

	if (stream->block.count > 0) {
		stream->block.step_after = stream->step;
		series_block_encode(&stream->block, &stream->blocks);
		stream->block_count++;
	}
	series_block_begin(&stream->block, stream->block.to, stream->step);
	if (stream->block_count >= OBJECT_BLOCKS)
		(void)!series_stream_write(stream, &ignored);
	stream->is_off |= stream->block_count >= WAITING_MAX;
}

/* The service gives a line that is behind all that earlier writers have read, and has not given the
 * last one of theirs: what came between may be lost. */
static bool is_cut_off(struct series_stream *stream, const struct series_stream_line *line)
{
	stream->connected |= line->id == stream->before.id;
	return !stream->connected && line->at.ms > stream->before.at_ms;
}

static void add_readings(struct series_stream *stream, const struct series_stream_line *line)
{
	bool has_step = line->readings[0].metric == stream->step_metric;

	if (!series_block_has_room(&stream->block, line->count))
		end_block(stream);
	for (size_t i = 0; i < line->count; i++) {
		const struct metric_reading *reading = &line->readings[i];

		/* The log's newest step is that of the writer before, if nothing newer is read. */
		if (!has_step)
			series_block_add(&stream->block,
					 &(struct series_point){ reading->metric, stream->step,
								 line->at, reading->value });
		else
			series_block_add(&stream->block,
					 &(struct series_point){ reading->metric, reading->step,
								 line->at, reading->value });
	}
	if (has_step)
		stream->step = line->readings[0].step;
	stream->block.to += line->count;
	stream->block.step_after = stream->step;
	stream->is_new = true;
}

void series_stream_add(struct series_stream *stream, const struct series_stream_line *line)
{
	if (stream->is_off || stream->is_ended || line->at.ms == 0)
		return;
	if (is_cut_off(stream, line)) {
		end_block(stream);
		stream->block.flags = SERIES_LOST;
		stream->connected = stream->is_new = true;
	}
	if (series_mark_has(&stream->before, line->id, line->at))
		return;
	if (line->count > 0)
		add_readings(stream, line);
	series_mark_line(&stream->mark, line->id, line->at, line->count > 0);
}

/* ---- writing ---- */

static int write_object(struct series_stream *stream, uint32_t flags, struct err **err)
{
	AUTO(auto_free)
	char *key = mem_format("%s%06lld-%012llu", stream->folder, stream->writer,
			       (unsigned long long)stream->object_from);
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_OBJECT_MAX);
	struct series_block last = stream->block;

	if (stream->blocks.len > 0)
		sb_add(&bytes, stream->blocks.text, stream->blocks.len);
	if (stream->block.count > 0 || stream->block.flags != 0)
		series_block_encode(&stream->block, &bytes);
	last.flags = flags;
	series_mark_encode(&stream->mark, &last, &bytes);
	return store_put(stream->store, key, bytes.text, bytes.len, err);
}

int series_stream_write(struct series_stream *stream, struct err **err)
{
	if (!stream->is_new || stream->is_off)
		return 0;
	if (write_object(stream, 0, err) < 0)
		return -1;
	stream->is_new = false;
	if (stream->block_count < OBJECT_BLOCKS)
		return 0;
	/* The object is whole: what lies in it is written no more. */
	stream->object_from = stream->block.to;
	stream->block_count = 0;
	sb_clear(&stream->blocks);
	series_block_begin(&stream->block, stream->object_from, stream->step);
	return 0;
}

int series_stream_end(struct series_stream *stream, bool lost, struct err **err)
{
	if (stream->is_off || stream->is_ended)
		return 0;
	if (write_object(stream, SERIES_END | (lost ? SERIES_LOST : 0), err) < 0)
		return -1;
	stream->is_ended = true;
	stream->is_new = false;
	return 0;
}
