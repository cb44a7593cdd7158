/*
 * Sources as `run` has them: `pin` says by content what is there, `pack` does so and
 * publishes the bundle in a workspace and remembers digests for the next time.
 */
#include "jobs/source/source.h"
#include "tests/bench/bench.h"

int main(int argc, char **argv)
{
	AUTO(source_pin_freep) struct source_pin *pin = NULL;
	AUTO(store_freep) struct store *workspace = NULL;
	AUTO(auto_free) char *key = NULL;
	struct source_request request = { 0 };
	struct err *err = NULL;

	if (argc < 4)
		give_up("usage: bench_source pin ROOT MEMORY | pack ROOT MEMORY WORKSPACE", NULL);
	request.root = argv[2];
	request.memory = argv[3];
	if (source_pin(&request, &pin, &err) < 0)
		give_up("source_pin", err);
	if (strcmp(argv[1], "pack") == 0 && argc == 5 &&
	    (store_open(argv[4], &workspace, &err) < 0 ||
	     source_publish(&request, pin, workspace, &err) < 0))
		give_up("source_publish", err);
	key = source_bundle_key(pin->digest);
	printf("{\"files\": %zu, \"digest\": \"%s\", \"bundle\": \"%s\", \"dirty\": %s}\n",
	       pin->count, pin->digest, key, pin->dirty ? "true" : "false");
	return 0;
}
