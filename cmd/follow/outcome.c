/* The file of --outcome: see outcome.h. */
#include "cmd/follow/outcome.h"

#include <string.h>

#include "cmd/follow/run_view.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/js.h"

int outcome_write(const struct args *args, struct journal *journal, const char *run,
		  const char *verdict, int code, struct err **err)
{
	const char *file = args->value[OPT_OUTCOME];
	AUTO(err_freep) struct err *unwritten = NULL;
	AUTO(err_freep) struct err *unread = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *status = NULL;
	json_auto_t *outcome = NULL;

	if (!file)
		return code;
	outcome = json_object();
	/* A command that failed before there was a run has none. */
	if (journal &&
	    (cmd_run_view(journal, run, false, &status, &unread) < 0 || !js_str(status, "name"))) {
		json_decref(status);
		status = NULL;
	}
	js_put(outcome, "exit_code", json_integer(code < 0 ? (int)(*err)->code : code));
	js_put_str(outcome, "name", js_str(status, "name"));
	js_put_str(outcome, "phase", js_str(status, "phase"));
	if (status)
		js_put_str(outcome, "run", run);
	js_put_str(outcome, "verdict", verdict ? verdict : js_str(status, "state"));
	text = js_line(outcome);
	if (fs_write_atomic(file, text, strlen(text), 0644, &unwritten) == 0 || code < 0)
		return code;
	*err = TAKE(unwritten);
	err_wrap(err, "cannot write the outcome");
	return -1;
}
