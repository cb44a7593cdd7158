/* Agent's side of checkpointer.h: starts the checkpointer and reads its news. */
#include "jobs/node/checkpoints/checkpointer.h"

#include <string.h>

static const char *const kinds[] = {
	[CHECKPOINTER_SAVING] = "saving",   [CHECKPOINTER_SAVED] = "saved",
	[CHECKPOINTER_MARKED] = "marked",   [CHECKPOINTER_COPYING] = "copying",
	[CHECKPOINTER_PARTIAL] = "partial", [CHECKPOINTER_TROUBLE] = "trouble",
	[CHECKPOINTER_PUSHED] = "pushed",   [CHECKPOINTER_UNPUSHED] = "unpushed",
	[CHECKPOINTER_LOST] = "lost",       [CHECKPOINTER_KEPT] = "kept",
	[CHECKPOINTER_PASSED] = "passed",
};

bool checkpointer_needed(const struct agent_config *config)
{
	AUTO(auto_free) char *cache = agent_config_cache(config);

	return cache || checkpointer_has_checkpoints(config);
}

/* ---- the child ---- */

static int be_checkpointer(const void *given, int news_fd, int orders_fd)
{
	const struct helper_task *task = given;

	return checkpointer_work(&task->config, &task->claim, news_fd, orders_fd);
}

/* ---- the agent ---- */

static void on_news(void *arg, const char *kind, const json_t *line)
{
	struct checkpointer *checkpointer = arg;

	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i], kind) == 0)
			checkpointer->fn(checkpointer->arg, (enum checkpointer_news)i, line);
}

int checkpointer_start(struct checkpointer *checkpointer, const struct agent_config *config,
		       const struct claim *claim, struct loop *loop, checkpointer_fn fn, void *arg,
		       struct err **err)
{
	const struct helper_task task = { *config, *claim };

	*checkpointer = (struct checkpointer){ .fn = fn, .arg = arg };
	if (helper_start(&checkpointer->helper, "stoker-ckpt", be_checkpointer, &task, sizeof task,
			 err) < 0)
		return -1;
	news_listen(&checkpointer->news, &checkpointer->helper, loop, on_news, checkpointer);
	orders_init(&checkpointer->orders, loop);
	orders_begin(&checkpointer->orders, &checkpointer->helper);
	return 0;
}

void checkpointer_drain(struct checkpointer *checkpointer)
{
	if (checkpointer->helper.pid > 0 && !checkpointer->last_pass)
		orders_give(&checkpointer->orders, orders_new(CHECKPOINTER_ORDER_DRAIN));
}

void checkpointer_finish(struct checkpointer *checkpointer, bool cut)
{
	json_t *order;

	if (checkpointer->helper.pid == 0 || checkpointer->last_pass)
		return;
	order = orders_new(CHECKPOINTER_ORDER_LAST);
	js_put(order, "cut", json_boolean(cut));
	orders_give(&checkpointer->orders, order);
	checkpointer->last_pass = true;
}

void checkpointer_kill(struct checkpointer *checkpointer)
{
	helper_kill(&checkpointer->helper);
}

void checkpointer_gone(struct checkpointer *checkpointer)
{
	checkpointer->helper.pid = 0;
	orders_end(&checkpointer->orders);
	news_drain(&checkpointer->news);
}

void checkpointer_release(struct checkpointer *checkpointer)
{
	if (checkpointer->fn) {
		news_release(&checkpointer->news);
		orders_release(&checkpointer->orders);
		helper_close(&checkpointer->helper);
	}
	*checkpointer = (struct checkpointer){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
