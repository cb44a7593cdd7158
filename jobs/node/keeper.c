/* Starts the keeper and hears it: the agent's side of keeper.h. */
#include "jobs/node/keeper.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "jobs/node/fetch.h"
#include "jobs/node/shards.h"

#define NEWS_LINE ((size_t)1 << 20)

static const char *const kinds[] = {
	[KEEPER_SAVING] = "saving",   [KEEPER_SAVED] = "saved",       [KEEPER_MARKED] = "marked",
	[KEEPER_COPYING] = "copying", [KEEPER_PARTIAL] = "partial",   [KEEPER_TROUBLE] = "trouble",
	[KEEPER_PUSHED] = "pushed",   [KEEPER_UNPUSHED] = "unpushed", [KEEPER_LOST] = "lost",
	[KEEPER_KEPT] = "kept",
};

bool keeper_needed(const struct task *task)
{
	AUTO(auto_free) char *cache = fetch_cache(task);

	return cache || keeper_has_checkpoints(task);
}

bool keeper_has_checkpoints(const struct task *task)
{
	const json_t *checkpoint = json_object_get(task->order, "checkpoint");
	const char *root = js_str(checkpoint, "root");

	return (task->node == 0 || shards_needed(task)) && !task->scratch && root && *root;
}

/* ---- the child ---- */

struct keeper_for {
	const struct task *task;
	const struct claim *claim;
};

static int be_keeper(const void *arg, int news_fd, int orders_fd)
{
	const struct keeper_for *who = arg;

	return keeper_work(who->task, who->claim, news_fd, orders_fd);
}

/* ---- the agent ---- */

static void tell(struct keeper *keeper, const char *line, size_t len)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *news = NULL;
	const char *kind;

	if (js_parse(line, len, "the keeper's line", &news, &ignored) < 0)
		return;
	kind = js_str(news, "news");
	for (size_t i = 0; kind && i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i], kind) == 0)
			keeper->fn(keeper->arg, (enum keeper_news)i, news);
}

static void stop_listening(struct keeper *keeper)
{
	loop_remove(keeper->loop, keeper->watch);
	keeper->watch = NULL;
	auto_close(&keeper->helper.news_fd);
	keeper->helper.news_fd = -1;
}

static void on_news(void *arg)
{
	struct keeper *keeper = arg;
	char buffer[4096];
	const char *end;
	ssize_t len = read(keeper->helper.news_fd, buffer, sizeof buffer);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0) {
		stop_listening(keeper);
		return;
	}
	sb_add(&keeper->text, buffer, (size_t)len);
	while ((end = memchr(keeper->text.text, '\n', keeper->text.len))) {
		size_t line = (size_t)(end - keeper->text.text);

		tell(keeper, keeper->text.text, line);
		sb_drop(&keeper->text, line + 1);
	}
}

int keeper_start(struct keeper *keeper, const struct task *task, const struct claim *claim,
		 struct loop *loop, keeper_fn fn, void *arg, struct err **err)
{
	const struct keeper_for who = { task, claim };

	*keeper = (struct keeper){ .loop = loop, .fn = fn, .arg = arg };
	keeper->text = SB_INIT_MAX(NEWS_LINE);
	if (helper_start(&keeper->helper, be_keeper, &who, err) < 0)
		return -1;
	keeper->watch = loop_on_readable(loop, keeper->helper.news_fd, on_news, keeper);
	return 0;
}

static void tell_keeper(const struct keeper *keeper, char order)
{
	(void)!write(keeper->helper.orders_fd, &order, 1);
}

void keeper_hurry(const struct keeper *keeper)
{
	if (keeper->helper.pid > 0 && !keeper->last_pass)
		tell_keeper(keeper, KEEPER_ORDER_HURRY);
}

void keeper_finish(struct keeper *keeper, bool cut)
{
	if (keeper->helper.pid == 0 || keeper->last_pass)
		return;
	keeper->last_pass = true;
	tell_keeper(keeper, cut ? KEEPER_ORDER_CUT : KEEPER_ORDER_LAST);
}

void keeper_kill(struct keeper *keeper)
{
	helper_kill(&keeper->helper);
}

void keeper_gone(struct keeper *keeper)
{
	keeper->helper.pid = 0;
	while (keeper->watch)
		on_news(keeper); /* its end of the pipe is closed: this ends */
}

void keeper_release(struct keeper *keeper)
{
	if (keeper->fn) {
		if (keeper->watch)
			stop_listening(keeper);
		helper_close(&keeper->helper);
		sb_release(&keeper->text);
	}
	*keeper = (struct keeper){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
