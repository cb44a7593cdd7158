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
#include "tests/world/faults.h"
#include "tests/world/play.h"
#include "tests/world/workspace.h"

static char *key_of(enum truth_phase phase)
{
	return mem_format("runs/%s/" CLAIM_DIR "%s", playing->run, truth_phase_names[phase]);
}

json_t *claim_in_workspace(enum truth_phase phase)
{
	AUTO(auto_free) char *key = key_of(phase);
	AUTO(auto_free) char *text = workspace_get(key);

	return text ? json_loads(text, 0, NULL) : NULL;
}

/* Of the phase whose command runs. */
void claim_taken_by_another(uint64_t chance)
{
	const struct truth_command *c = truth_commands;
	AUTO(auto_free) char *key = NULL, *holder = NULL, *text = NULL;
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
	key = key_of(c->phase);
	text = json_dumps(claim, JSON_COMPACT);
	trace_line("another takes the claim %s", key);
	workspace_put(key, text);
}
