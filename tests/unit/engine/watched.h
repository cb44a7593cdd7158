/*
 * A job of a service as its engine watches it: the service is a peer that answers as a test
 * writes it, the workspace is a directory.
 */
#ifndef STK_TESTS_WATCHED_H
#define STK_TESTS_WATCHED_H

#include "tests/unit/aws/peer.h"
#include "tests/unit/node/place.h"

#include "aws/credentials/settings.h"
#include "jobs/engine/engine.h"

#define NAME "stk-r1-train-1"

struct watched {
	struct place *place;
	json_t *plan;
	struct engine *engine;
	struct peer *peer;
	struct peer_reply replies[8]; /* in order, the last one again and again */
	char *bodies[8];              /* of them, where a test writes them; freed at its end */
};

/* An object of the attempt's. */
static void put(const struct watched *w, const char *name, const char *text)
{
	AUTO(auto_free) char *key = mem_format(PREFIX "%s", name);
	AUTO(auto_free) char *path = place_path(w->place, key);

	write_file(path, text, 0600);
}

/* The engine of `w->plan`, whose service gives the first `count` of the replies. */
static void watched_open(struct watched *w, const struct engine_ops *ops, size_t count)
{
	AUTO(err_freep) struct err *err = NULL;

	w->peer = peer_new(w->replies, count);
	setenv("AWS_ENDPOINT_URL", w->peer->url, 1);
	aws_settings_forget();
	must(ops->open(&(struct engine_where){ .workspace = w->place->root, .plan = w->plan },
		       &w->engine, &err),
	     &err);
}

static int watched_setup(void **state)
{
	struct watched *w = mem_zero(1, sizeof *w);

	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	place_make((void **)&w->place);
	setenv("HOME", w->place->root, 1);
	*state = w;
	return 0;
}

static int watched_teardown(void **state)
{
	struct watched *w = *state;

	w->engine->ops->close(w->engine);
	peer_freep(&w->peer);
	json_decref(w->plan);
	for (size_t i = 0; i < STK_LENGTH(w->bodies); i++)
		free(w->bodies[i]);
	place_remove((void **)&w->place);
	free(w);
	aws_settings_forget();
	return 0;
}

#endif
