/* A checkpoint in the far folder of a place, marked by an earlier attempt of its run. */
#ifndef STK_TESTS_UNIT_NODE_MARKED_H
#define STK_TESTS_UNIT_NODE_MARKED_H

#include "jobs/checkpoint/checkpoint.h"
#include "tests/unit/node/place.h"

static UNUSED void mark_step(const struct place *place, int step)
{
	AUTO(auto_free) char *path = mem_format("%s/saved/step-%d", place->root, step);
	AUTO(auto_free) char *file = fs_join(path, "state.bin");
	AUTO(auto_free) char *url = mem_format("dir:%s/far", place->root);
	const struct ckpt_owner owner = { .run = "r1", .nonce = NONCE, .attempt = 1, NULL, 0 };
	struct ckpt_root root = { .path = "", .attempt = 1, .nonce = NONCE };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt ckpt = { 0 };

	write_file(file, "state", 0600);
	must(store_open(url, &store, &err), &err);
	root.store = store;
	must(checkpoint_prove(path, checkpoint_kind_find("files"), &ckpt, &err), &err);
	must(checkpoint_copy(&ckpt, &root, NULL, NULL, &err), &err);
	must(checkpoint_mark(&root, &ckpt, &owner, clock_utc_now(), &err), &err);
	checkpoint_release(&ckpt);
}

#endif
