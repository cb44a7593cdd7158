/*
 * What a turn of a retraining costs beside the listing alone, of data in a directory.
 *
 *   bench_data list DIR                the listing
 *   bench_data first DIR WORKSPACE     a turn that was given nothing before, stored
 *   bench_data join DIR URL DIGEST     a turn joined with a cumulative list: finds what is new
 *
 * "peak" is the most memory of this program alone: what wait4() tells of a process counts the one
 * that started it, which is larger.
 */
#include "tests/bench/bench.h"

#include <inttypes.h>

#include "jobs/data/data.h"

static int count_object(void *arg, const struct store_object *object, struct err **err)
{
	(void)object;
	(void)err;
	++*(int64_t *)arg;
	return 0;
}

static int64_t list(const char *url, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	int64_t count = 0;

	if (store_open(url, &store, err) < 0 ||
	    store_list(store, "", count_object, &count, err) < 0)
		give_up("cannot list", *err);
	return count;
}

static long peak_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (status && kib == 0 && fgets(line, sizeof line, status))
		if (sscanf(line, "VmHWM: %ld kB", &kib) != 1)
			kib = 0;
	if (kib == 0)
		give_up("cannot read the peak of memory", NULL);
	fclose(status);
	return kib * 1024;
}

int main(int argc, char **argv)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(data_turn_freep) struct data_turn *turn = NULL;
	AUTO(data_list_release) struct data_list seen = { 0 }, manifest = { 0 };
	AUTO(store_freep) struct store *workspace = NULL;
	struct data_query query = { .incremental = true, .seen = &seen };
	double wall = wall_seconds();
	int64_t listed, new = 0;

	if (argc < 3)
		give_up("usage: list|first|join DIR …", NULL);
	query.source.url = argv[2];
	if (strcmp(argv[1], "list") == 0) {
		listed = list(argv[2], &err);
	} else {
		if (strcmp(argv[1], "join") == 0 && argc == 5) {
			seen.url = mem_copy(argv[3]);
			snprintf(seen.digest, sizeof seen.digest, "%s", argv[4]);
		}
		if (data_turn_open(&query, &turn, &err) < 0)
			give_up("cannot join", err);
		listed = data_turn_counts(turn)->listed;
		new = data_turn_counts(turn)->fresh;
	}
	if (strcmp(argv[1], "first") == 0) {
		data_list_release(&seen);
		if (store_open(argv[3], &workspace, &err) < 0 ||
		    data_turn_store(turn, workspace, &manifest, &seen, &err) < 0)
			give_up("cannot store", err);
	}
	printf("{\"wall\": %.6f, \"listed\": %" PRId64 ", \"new\": %" PRId64
	       ", \"url\": \"%s\", \"digest\": \"%s\", \"peak\": %ld}\n",
	       wall_seconds() - wall, listed, new, seen.url ? seen.url : "", seen.digest,
	       peak_bytes());
	return 0;
}
