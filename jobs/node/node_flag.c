/* Flags for all nodes, each of one start of the job: see node_flag.h. */
#include "jobs/node/node_flag.h"

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
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;
	int there = store_get(store, key, REPORT_MAX, &text, tag, err);

	if (there <= 0)
		return there;
	*ret_restart = js_parse(text.text, text.len, key, &body, &ignored) < 0
			       ? 0
			       : js_int(body, "restart", 0);
	return 1;
}

bool node_flag_is_set(const struct agent_config *config, struct store *store, const char *name,
		      int64_t restart)
{
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t of;

	return read_note(config, store, name, &of, NULL, &ignored) > 0 && of >= restart;
}

bool node_flag_set(const struct agent_config *config, struct store *store, const char *name,
		   json_t *body)
{
	AUTO(auto_free) char *key = agent_config_key(config, name);
	AUTO(auto_free) char *line = NULL;
	int done = 0;

	js_put(body, "v", json_integer(1));
	js_put(body, "restart", json_integer(config->restart));
	line = js_line(body);
	json_decref(body);
	for (int i = 0; i < ROUNDS && done == 0; i++) {
		AUTO(err_freep) struct err *ignored = NULL;
		char tag[STORE_TAG];
		int64_t of;
		int there = read_note(config, store, name, &of, tag, &ignored);

		if (there > 0 && of >= config->restart)
			return true;
		/* A flag that cannot be read must not be overwritten. */
		err_freep(&ignored);
		done = there > 0 ? store_replace_if_same(store, key, tag, line, strlen(line),
							 &ignored)
				 : store_put_if_absent(store, key, line, strlen(line), &ignored);
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
