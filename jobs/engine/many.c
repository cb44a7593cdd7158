/* Many requests on their way: see many.h. */
#include "jobs/engine/many.h"

#include <stdlib.h>

#define SILENT_MS 20000 /* an answer takes a second */
#define REPLY_MAX ((size_t)32 << 20)

struct many {
	many_fn fn;
	void *arg;
	size_t left;
	struct sb spare; /* memory of the reply before, for the next one */
};

struct one {
	struct many *many;
	struct aws_task *task; /* NULL: answered */
	struct sb text;
	size_t i;
};

static void on_reply(void *arg, struct aws_reply *reply)
{
	struct one *one = arg;

	one->task = NULL;
	one->many->left--;
	one->many->fn(one->many->arg, one->i, reply, &one->text);
	if (one->many->spare.cap >= one->text.cap) {
		sb_release(&one->text);
		return;
	}
	sb_release(&one->many->spare);
	one->many->spare = one->text;
	sb_clear(&one->many->spare);
	one->text = SB_INIT;
}

static bool gather(void *arg, const void *bytes, size_t len)
{
	struct one *one = arg;

	if (one->text.cap == 0 && one->many->spare.cap > 0) {
		one->text = one->many->spare;
		one->many->spare = SB_INIT;
	}
	sb_add(&one->text, bytes, len);
	return true;
}

static void gather_again(void *arg)
{
	sb_clear(&((struct one *)arg)->text);
}

int many_ask(struct aws *aws, enum aws_operation operation, const json_t *bodies, many_fn fn,
	     void *arg, struct err **err)
{
	size_t count = json_array_size(bodies);
	AUTO(auto_free) struct one *all = mem_zero(count + 1, sizeof *all);
	struct many many = { fn, arg, count, SB_INIT };

	for (size_t i = 0; i < count; i++) {
		struct aws_call call = { .operation = operation,
					 .body_fd = -1,
					 .json = json_array_get(bodies, i),
					 .silent_ms = SILENT_MS,
					 .sink = gather,
					 .restart = gather_again,
					 .sink_arg = &all[i] };

		all[i] = (struct one){ .many = &many, .text = SB_INIT_MAX(REPLY_MAX), .i = i };
		all[i].task = aws_start(aws, &call, on_reply, &all[i]);
	}
	while (many.left > 0) {
		if (aws_wait_turn(aws, err) == 0)
			continue;
		for (size_t i = 0; i < count; i++) {
			if (all[i].task)
				aws_cancel(aws, all[i].task);
			sb_release(&all[i].text);
		}
		sb_release(&many.spare);
		return -1;
	}
	sb_release(&many.spare);
	return 0;
}
