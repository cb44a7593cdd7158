/* What calls cost, how they fail, and the digest of them all: see call.h. */
#include "tests/world/call.h"

#include <stdio.h>
#include <string.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

/* Of a row behind its name: the kind, and the errors with the 0 at their end. */
#define KIND_OF(kind, ...)   CALL_##kind
#define ERRORS_OF(kind, ...) __VA_ARGS__

#define CALL(name, ...) static const int errors_of_##name[] = { ERRORS_OF(__VA_ARGS__, 0) };
#include "tests/world/calls.def"
#undef CALL

#define CALL(name, ...) [CALL_##name] = { #name, KIND_OF(__VA_ARGS__, 0), errors_of_##name },
const struct call_row call_rows[CALL_COUNT] = {
#include "tests/world/calls.def"
};
#undef CALL

static int64_t usual_cost(const struct process *process, const struct call *call);

void (*call_fault)(struct process *process, struct call *call, const char *path);
int64_t (*call_cost)(const struct process *process, const struct call *call) = usual_cost;
uint64_t call_digest = UINT64_C(0xcbf29ce484222325);

bool call_is_answer(enum call_id id, int error)
{
	bool of_service = strncmp(call_rows[id].name, "s3_", 3) == 0 ||
			  strncmp(call_rows[id].name, "cloud_", 6) == 0;

	return of_service && error == EACCES;
}

/* Between the two, each as likely. */
static int64_t between(int64_t least_ns, int64_t most_ns)
{
	return least_ns + chance_below(most_ns - least_ns);
}

static int64_t usual_cost(const struct process *process, const struct call *call)
{
	(void)process;
	switch (call->id) {
	case CALL_fsync:
	case CALL_syncfs:
		return between(500 * WORLD_US, 10 * WORLD_MS);
	case CALL_posix_spawn:
	case CALL_helper_start:
	case CALL_helper_start_command:
		return between(300 * WORLD_US, 3 * WORLD_MS);
	default:
		break;
	}
	switch (call_rows[call->id].kind) {
	case CALL_OWN:
		return between(WORLD_US, 5 * WORLD_US);
	case CALL_LOOKS:
		return between(5 * WORLD_US, 100 * WORLD_US);
	case CALL_CHANGES:
		return between(10 * WORLD_US, 200 * WORLD_US);
	case CALL_WAITS:
		break;
	}
	return between(2 * WORLD_US, 20 * WORLD_US);
}

static void digest(uint64_t value)
{
	/* FNV-1a, a word at a time. */
	call_digest = (call_digest ^ value) * UINT64_C(0x100000001b3);
	call_digest ^= call_digest >> 29;
}

/* Time of the process that the processor has worked for it, in a call. */
static void spend_cpu(const struct call *call, int64_t cost_ns)
{
	int64_t most_ns = call_rows[call->id].kind == CALL_OWN ? cost_ns : 20 * WORLD_US;

	self->cpu_ns += cost_ns < most_ns ? cost_ns : most_ns;
}

struct call call_enter(enum call_id id, const char *path, int fd)
{
	struct call call = { .id = id };
	int64_t cost_ns;

	if (!self) {
		char text[100];

		snprintf(text, sizeof text, "%s() is called outside of any process",
			 call_rows[id].name);
		world_broken(text);
	}
	self->calls++;
	cost_ns = call_cost(self, &call);
	spend_cpu(&call, cost_ns);
	if (call_fault) {
		if (!path && fd >= 0 && fd_file(fd))
			path = tree_path(fd_file(fd));
		call_fault(self, &call, path);
	}
	world_spend(cost_ns);
	digest((uint64_t)now_ns ^ (uint64_t)id << 48 ^ self->number << 56);
	return call;
}

void call_move(size_t bytes)
{
	int64_t cost_ns = (int64_t)(bytes / 2); /* 2 GB/s */

	if (cost_ns == 0)
		return;
	self->cpu_ns += cost_ns;
	world_spend(cost_ns);
}

int call_fail(const struct call *call)
{
	digest((uint64_t)call->error);
	errno = call->error;
	return -1;
}

ssize_t call_return(const struct call *call, ssize_t result)
{
	enum call_kind kind = call_rows[call->id].kind;

	digest((uint64_t)result);
	if (kind == CALL_CHANGES || kind == CALL_WAITS)
		world_observe();
	if (call->error)
		return call_fail(call);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}
