/* Notes to all nodes, each of one start of the job: see note.h. */
#include "jobs/node/note.h"

#include <stdlib.h>
#include <string.h>

/* Writers that meet: each loses at most once to one that stands then. */
#define ROUNDS 4

/* Of which start: 1 and that, 0 there is none, -1. What is no JSON is of the first. */
static int read_note(const struct task *task, struct store *store, const char *name,
		     int64_t *ret_restart, char tag[STORE_TAG], struct err **err)
{
	AUTO(auto_free) char *key = task_key(task, name);
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

bool note_stands(const struct task *task, struct store *store, const char *name, int64_t restart)
{
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t of;

	return read_note(task, store, name, &of, NULL, &ignored) > 0 && of >= restart;
}

bool note_leave(const struct task *task, struct store *store, const char *name, json_t *body)
{
	AUTO(auto_free) char *key = task_key(task, name);
	AUTO(auto_free) char *line = NULL;
	int done = 0;

	js_put(body, "v", json_integer(1));
	js_put(body, "restart", json_integer(task->restart));
	line = js_line(body);
	json_decref(body);
	for (int i = 0; i < ROUNDS && done == 0; i++) {
		AUTO(err_freep) struct err *ignored = NULL;
		char tag[STORE_TAG];
		int64_t of;
		int there = read_note(task, store, name, &of, tag, &ignored);

		if (there > 0 && of >= task->restart)
			return true;
		/* One that cannot be read must not be overwritten. */
		err_freep(&ignored);
		done = there > 0 ? store_replace_if_same(store, key, tag, line, strlen(line),
							 &ignored)
				 : store_put_if_absent(store, key, line, strlen(line), &ignored);
	}
	return done > 0;
}

int note_clear(const struct task *task, struct store *store, const char *name, struct err **err)
{
	AUTO(auto_free) char *key = task_key(task, name);
	int64_t of;
	int there = read_note(task, store, name, &of, NULL, err);

	if (there <= 0 || of >= task->restart)
		return there < 0 ? -1 : 0;
	return store_delete(store, key, err);
}
