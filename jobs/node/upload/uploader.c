/* Agent's side of uploader.h: starts the uploader and reads its news. */
#include "jobs/node/upload/uploader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"

#define HEAR_MS 200 /* between two looks for a signal */

bool uploader_needed(const struct agent_config *config)
{
	const char *cache = config->order->compile.cache;

	return config->object_workspace || (cache && strstr(cache, "://"));
}

static int be_uploader(const void *given, int news_fd, int orders_fd)
{
	const struct helper_task *task = given;

	return uploader_work(&task->config, &task->claim, news_fd, orders_fd);
}

static void stop_listening(struct uploader *uploader)
{
	loop_remove(uploader->loop, uploader->watch);
	uploader->watch = NULL;
}

static void on_news(void *arg)
{
	struct uploader *uploader = arg;
	char byte;
	ssize_t len = read(uploader->helper.news_fd, &byte, 1);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0)
		stop_listening(uploader);
	else if (byte >= 0 && byte < UPLOADER_NEWS)
		uploader->fn(uploader->arg, (enum uploader_news)byte);
}

int uploader_start(struct uploader *uploader, const struct agent_config *config,
		   const struct claim *claim, struct loop *loop, uploader_fn fn, void *arg,
		   struct err **err)
{
	const struct helper_task task = { *config, *claim };

	*uploader = (struct uploader){ .loop = loop, .fn = fn, .arg = arg };
	if (helper_start(&uploader->helper, "stoker-upload", be_uploader, &task, sizeof task, err) <
	    0)
		return -1;
	uploader->watch = loop_on_readable(loop, uploader->helper.news_fd, on_news, uploader);
	return 0;
}

void uploader_report(struct uploader *uploader)
{
	helper_order(&uploader->helper, UPLOADER_ORDER_REPORT);
}

void uploader_claimed(struct uploader *uploader)
{
	helper_order(&uploader->helper, UPLOADER_ORDER_CLAIMED);
}

enum uploader_end uploader_finish(struct uploader *uploader, struct mono *end, int64_t grace_ms)
{
	struct pollfd news = { .fd = uploader->helper.news_fd, .events = POLLIN };
	bool over = false, told = false;
	int status = -1, failures = 0, ready;
	char byte;

	if (uploader->helper.pid <= 0)
		return UPLOADER_DEAD;
	helper_order(&uploader->helper, UPLOADER_ORDER_LAST);
	/* The pipe ends when the uploader does. */
	while (!over && clock_mono_now().ms < end->ms) {
		helper_remind(&uploader->helper);
		ready = poll(&news, 1, HEAR_MS);
		if (ready < 0 && !err_try_again(&failures))
			break;
		over = ready > 0 && read(news.fd, &byte, 1) == 0;
		/* The loop, which would handle the signal, is over. */
		if (!told && loop_stop_take()) {
			told = true;
			if (clock_mono_now().ms + grace_ms < end->ms)
				end->ms = clock_mono_now().ms + grace_ms;
		}
	}
	if (!over)
		helper_kill(&uploader->helper);
	while (waitpid(uploader->helper.pid, &status, 0) < 0 && errno == EINTR)
		;
	uploader->helper.pid = 0;
	if (!over)
		return UPLOADER_TOO_LATE;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? UPLOADER_BROUGHT : UPLOADER_DEAD;
}

void uploader_gone(struct uploader *uploader)
{
	uploader->helper.pid = 0;
}

void uploader_release(struct uploader *uploader)
{
	if (uploader->watch)
		stop_listening(uploader);
	helper_close(&uploader->helper);
	*uploader = (struct uploader){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
