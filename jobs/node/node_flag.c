/* Flags for all nodes, each of one start of the job: see node_flag.h. */
#include "jobs/node/node_flag.h"
#include "jobs/store/store_json.h"

#include <stdlib.h>
#include <string.h>

/* Rounds for writers that meet: each loses at most once, to a flag that then stands. */
#define ROUNDS 4

/* Reads which start a flag is of. Returns 1 if there is one, 0 if not, -1 with an error. A flag
 * that is not JSON counts as of the first start. */
static int read_note(const struct agent_config *config, struct store *store, const char *name,
		     int64_t *ret_restart, char tag[STORE_TAG], struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(config, name);
	json_auto_t *body = NULL;
	int there = store_json_get(store, key, REPORT_MAX, &body, tag, err);

	*ret_restart = js_int(body, "restart", 0);
	return there;
}

bool node_flag_is_set(const struct agent_config *config, struct store *store, const char *name,
		      int64_t restart)
{
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t of;

	return read_note(config, store, name, &of, NULL, &ignored) > 0 && of >= restart;
}

bool node_flag_set(const struct agent_config *config, struct store *store, const char *name,
		   json_t *members)
{
	json_auto_t *body = members;
	AUTO(auto_free) char *key = agent_config_key(config, name);
	int done = 0;

	js_put(body, "v", json_integer(1));
	js_put(body, "restart", json_integer(config->restart));
	for (int i = 0; i < ROUNDS && done == 0; i++) {
		AUTO(err_freep) struct err *ignored = NULL;
		char tag[STORE_TAG];
		int64_t of;
		int there = read_note(config, store, name, &of, tag, &ignored);

		if (there > 0 && of >= config->restart)
			return true;
		/* A flag that cannot be read must not be overwritten. */
		err_freep(&ignored);
		done = store_json_replace(store, key, there > 0 ? tag : NULL, body, &ignored);
	}
	return done > 0;
}

int node_flag_clear(const struct agent_config *config, struct store *store, const char *name,
		    struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(config, name);
	int64_t of;
	int there = read_note(config, store, name, &of, NULL, err);

	if (there <= 0 || of >= config->restart)
		return there < 0 ? -1 : 0;
	return store_delete(store, key, err);
}
