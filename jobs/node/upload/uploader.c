/* Agent's side of uploader.h: starts the uploader, gives it orders and reads its news. */
#include "jobs/node/upload/uploader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/node/upload/carry_out.h"

#define HEAR_MS 200 /* between two looks for a signal */

/* ---- start and end ---- */

void uploader_init(struct uploader *uploader, struct loop *loop, uploader_fn fn, void *arg)
{
	*uploader = (struct uploader){
		.helper = { .news_fd = -1, .orders_fd = -1 }, .loop = loop, .fn = fn, .arg = arg
	};
	orders_init(&uploader->orders, loop);
}

static int be_uploader(const void *given, int news_fd, int orders_fd)
{
	const struct helper_task *task = given;

	return uploader_work(&task->config, &task->claim, news_fd, orders_fd);
}

static void on_news(void *arg, const char *kind, const json_t *line)
{
	struct uploader *uploader = arg;

	for (int i = 0; i < UPLOADER_NEWS; i++)
		if (strcmp(kind, carry_out_news[i]) == 0) {
			if (i == UPLOADER_DONE)
				orders_done(&uploader->orders, (size_t)js_int(line, "bytes", 0));
			uploader->fn(uploader->arg, (enum uploader_news)i, line);
		}
}

static void close_pipes(struct uploader *uploader)
{
	orders_end(&uploader->orders);
	news_release(&uploader->news);
	helper_close(&uploader->helper);
}

int uploader_start(struct uploader *uploader, const struct agent_config *config,
		   const struct claim *claim, struct err **err)
{
	const struct helper_task task = { *config, *claim };

	close_pipes(uploader);
	if (helper_start(&uploader->helper, "stoker-upload", be_uploader, &task, sizeof task, err) <
	    0)
		return -1;
	news_listen(&uploader->news, &uploader->helper, uploader->loop, on_news, uploader);
	orders_begin(&uploader->orders, &uploader->helper);
	return 0;
}

void uploader_gone(struct uploader *uploader)
{
	news_drain(&uploader->news); /* orders that the uploader has said to be done are not done
					again */
	uploader->helper.pid = 0;    /* not before: who hears the news might start the next one */
	orders_end(&uploader->orders);
}

void uploader_release(struct uploader *uploader)
{
	if (!uploader->fn)
		return;
	close_pipes(uploader);
	orders_release(&uploader->orders);
	*uploader = (struct uploader){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}

/* ---- orders ---- */

static void give(struct uploader *uploader, json_t *order)
{
	if (uploader->fn)
		orders_give(&uploader->orders, order);
	else
		json_decref(order);
}

void uploader_claimed(struct uploader *uploader, int64_t restart)
{
	json_t *order = orders_new("claimed");

	js_put(order, "restart", json_integer(restart));
	give(uploader, order);
}

void uploader_report(struct uploader *uploader, const char *state, const char *text)
{
	json_t *order = orders_new("report");

	js_put_str(order, "state", state);
	js_put_str(order, "text", text);
	give(uploader, order);
}

void uploader_flag(struct uploader *uploader, const char *name, json_t *body)
{
	json_t *order = orders_new("flag");

	js_put_str(order, "name", name);
	js_put(order, "body", body);
	give(uploader, order);
}

static void give_text(struct uploader *uploader, const char *kind, const char *text)
{
	json_t *order = orders_new(kind);

	js_put_str(order, "text", text);
	give(uploader, order);
}

void uploader_progress(struct uploader *uploader, const char *text)
{
	give_text(uploader, "progress", text);
}

void uploader_pace(struct uploader *uploader, const char *text)
{
	give_text(uploader, "pace", text);
}

void uploader_sum(struct uploader *uploader, const char *path, int64_t what)
{
	json_t *order = orders_new("sum");

	js_put_str(order, "path", path);
	js_put(order, "for", json_integer(what));
	give(uploader, order);
}

void uploader_usage(struct uploader *uploader, int64_t step, json_t *values)
{
	json_t *order = orders_new("usage");

	js_put(order, "at", json_integer(clock_utc_now().ms));
	js_put(order, "step", json_integer(step));
	js_put(order, "values", values);
	give(uploader, order);
}

void uploader_look(struct uploader *uploader)
{
	give(uploader, orders_new("look"));
}

void uploader_sync(struct uploader *uploader)
{
	give(uploader, orders_new("sync"));
}

/* ---- the end ---- */

enum uploader_end uploader_finish(struct uploader *uploader, struct mono *end, int64_t grace_ms)
{
	struct pollfd news = { .fd = uploader->helper.news_fd, .events = POLLIN };
	bool told = grace_ms < 0;
	int status = -1, failures = 0;

	if (uploader->helper.pid <= 0)
		return UPLOADER_DEAD;
	give(uploader, orders_new("last"));
	/* The pipe ends when the uploader does. */
	while (uploader->news.watch && clock_mono_now().ms < end->ms) {
		int ready = poll(&news, 1, HEAR_MS);

		if (ready < 0 && !err_try_again(&failures))
			break;
		if (ready > 0)
			news_read(&uploader->news);
		orders_push(&uploader->orders);
		/* The loop, which would handle the signal, is over. */
		if (!told && loop_stop_take()) {
			told = true;
			if (clock_mono_now().ms + grace_ms < end->ms)
				end->ms = clock_mono_now().ms + grace_ms;
		}
	}
	if (uploader->news.watch)
		helper_kill(&uploader->helper);
	while (waitpid(uploader->helper.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (uploader->news.watch) {
		uploader_gone(uploader);
		return UPLOADER_TOO_LATE;
	}
	uploader_gone(uploader);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? UPLOADER_BROUGHT : UPLOADER_DEAD;
}

static void say_here(void *arg, json_t *line)
{
	const char *kind = js_str(line, "news");

	if (kind)
		on_news(arg, kind, line);
	json_decref(line);
}

void uploader_replace(struct uploader *uploader, const struct agent_config *config,
		      const struct claim *claim, struct store *store)
{
	struct carrier carrier = { .config = *config,
				   .claim = claim,
				   .store = store,
				   .say = say_here,
				   .arg = uploader,
				   .log_fd = -1,
				   .times_fd = -1 };
	struct orders_reader reader = { .fd = -1, .text = uploader->orders.queue };
	const char *bytes;
	size_t len;
	json_t *order;

	/* An order that comes meanwhile waits for the next call. */
	uploader->orders.queue = SB_INIT_MAX(uploader->orders.queue.max);
	uploader->orders.sent = 0;
	while ((order = orders_take(&reader, &bytes, &len))) {
		carry_out(&carrier, order, bytes, len);
		json_decref(order);
	}
	sb_release(&reader.text);
	carry_out_release(&carrier);
}
