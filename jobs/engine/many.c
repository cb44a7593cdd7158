/* Many requests on their way: see many.h. */
#include "jobs/engine/many.h"

#include <stdlib.h>

#define SILENT_MS 20000 /* an answer takes a second */

struct one {
	struct many *many;
	struct aws_task *task; /* NULL: answered */
	size_t i;
};

struct many {
	many_fn fn;
	void *arg;
	size_t left;
};

static void on_reply(void *arg, struct aws_reply *reply)
{
	struct one *one = arg;

	one->task = NULL;
	one->many->left--;
	one->many->fn(one->many->arg, one->i, reply);
}

int many_ask(struct aws *aws, enum aws_operation operation, const json_t *bodies, many_fn fn,
	     void *arg, struct err **err)
{
	size_t count = json_array_size(bodies);
	AUTO(auto_free) struct one *all = mem_zero(count + 1, sizeof *all);
	struct many many = { fn, arg, count };

	for (size_t i = 0; i < count; i++) {
		struct aws_call call = { .operation = operation,
					 .body_fd = -1,
					 .json = json_array_get(bodies, i),
					 .silent_ms = SILENT_MS };

		all[i] = (struct one){ &many, NULL, i };
		all[i].task = aws_start(aws, &call, on_reply, &all[i]);
	}
	while (many.left > 0) {
		if (aws_wait_turn(aws, err) == 0)
			continue;
		for (size_t i = 0; i < count; i++)
			if (all[i].task)
				aws_cancel(aws, all[i].task);
		return -1;
	}
	return 0;
}
