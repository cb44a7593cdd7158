/*
 * The series of a log. `ingest`: what an agent does with each line, readings found and kept in a
 * file. `scan`: the least that printing them again can take, a row of text for each reading in the
 * file.
 */
#include <fcntl.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/series/series_block.h"
#include "jobs/series/series_writer.h"
#include "tests/bench/bench.h"

#define PIECE ((size_t)64 << 10)
#define AT_MS INT64_C(1764400000000)

/* ingest LOG METRICS.json SERIES PREFIX */
static int ingest(char **argv)
{
	json_auto_t *specs = json_load_file(argv[1], 0, NULL);
	struct series_log log = { .specs = specs, .prefix = argv[3] };
	AUTO(sb_release) struct sb text = SB_INIT_MAX((size_t)2 << 30);
	struct series_writer *writer = NULL;
	struct err *err = NULL;
	double wall, cpu;

	if (fs_read(argv[0], text.max, &text, &err) < 0)
		give_up("cannot read the log", err);
	log.size = text.len;
	if (series_writer_open(argv[2], &log, &writer, &err) < 0)
		give_up("cannot begin", err);
	wall = wall_seconds();
	cpu = cpu_seconds();
	for (size_t at = 0; at < text.len; at += PIECE)
		series_writer_feed(writer, text.text + at,
				   text.len - at < PIECE ? text.len - at : PIECE,
				   (struct utc){ AT_MS }, false);
	series_writer_freep(&writer);
	printf("{\"seconds\": %.6f, \"cpu\": %.6f}\n", wall_seconds() - wall, cpu_seconds() - cpu);
	return 0;
}

/* scan SERIES NAME… */
static int scan(char **argv)
{
	AUTO(auto_close) int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
	AUTO(auto_free) char *bytes = mem_alloc(SERIES_BLOCK_MAX);
	struct series_block block;
	uint64_t at = 0;
	ssize_t len;
	size_t size;

	while ((len = fs_read_full(fd, bytes, SERIES_BLOCK_MAX, (int64_t)at)) > 0 &&
	       (size = series_block_decode(bytes, (size_t)len, &block)) > 0) {
		struct series_point point = { 0 };

		while (series_block_next(&block, &point)) {
			char when[UTC_TEXT];

			printf("1,0,%s,%lld,%s,%.17g,\n", clock_utc_format(point.at, when),
			       (long long)point.step, argv[1 + point.metric], point.value);
		}
		at += size;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "ingest") == 0)
		return ingest(argv + 2);
	if (argc > 3 && strcmp(argv[1], "scan") == 0)
		return scan(argv + 2);
	give_up("usage: bench_series ingest LOG METRICS.json SERIES PREFIX | scan SERIES NAME…",
		NULL);
}
