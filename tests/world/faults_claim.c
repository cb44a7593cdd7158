/*
 * Another takes the claim of the attempt that runs: an agent of a copy of the state, say, that
 * somebody has restored elsewhere. From then on two attempts are under way, of which the claim in
 * the workspace names the one that counts. See faults.h.
 */
#include <jansson.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "jobs/store/order.h"
#include "tests/world/bucket.h"
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/tree.h"

/* Below the bucket, or on the first head. */
static char *path_of(enum truth_phase phase)
{
	const struct setting *s = &playing->setting;

	return mem_format("%s/runs/%s/" CLAIM_DIR "%s",
			  s->far_workspace          ? "work"
			  : s->state == STATE_SHARE ? "/shared/work"
						    : "/srv/user/work",
			  playing->run, phase == TRUTH_TRAIN ? "train" : "precompile");
}

json_t *claim_in_workspace(enum truth_phase phase)
{
	AUTO(auto_free) char *path = path_of(phase);
	AUTO(auto_free) char *text = NULL;
	const char *there;

	if (!playing->setting.far_workspace) {
		text = tree_get(playing->hosts[0], path, NULL);
	} else {
		there = bucket_get("bucket", path, NULL);
		text = there ? mem_copy(there) : NULL;
	}
	return text ? json_loads(text, 0, NULL) : NULL;
}

/* Of the phase whose command runs. */
void claim_taken_by_another(uint64_t chance)
{
	const struct truth_command *c = truth_commands;
	AUTO(auto_free) char *path = NULL, *holder = NULL, *text = NULL;
	json_auto_t *claim = NULL;

	while (c && (c->process->state != PROCESS_ALIVE || strcmp(c->run, playing->run) != 0))
		c = c->next;
	claim = c ? claim_in_workspace(c->phase) : NULL;
	if (!claim)
		return;
	holder = mem_format("%032llx", (unsigned long long)chance);
	json_object_set_new(claim, "attempt", json_integer(js_int(claim, "attempt", 0) + 1));
	json_object_set_new(claim, "holder", json_string(holder));
	json_object_set_new(claim, "token", json_string("another"));
	path = path_of(c->phase);
	text = json_dumps(claim, JSON_COMPACT);
	trace_line("another takes the claim %s", path);
	if (playing->setting.far_workspace)
		bucket_put("bucket", path, text, strlen(text));
	else
		tree_put(playing->hosts[0], path, text, strlen(text), 0600);
}
