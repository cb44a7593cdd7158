/* Starts the courier and hears it: the agent's side of courier.h. */
#include "jobs/node/courier.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"

#define HEAR_MS 200 /* between two looks whether a signal came */

bool courier_needed(const struct task *task)
{
	const char *cache = js_str(json_object_get(task->order, "compile"), "cache");

	return task->far || (cache && strstr(cache, "://"));
}

struct courier_for {
	const struct task *task;
	const struct claim *claim;
};

static int be_courier(const void *arg, int news_fd, int orders_fd)
{
	const struct courier_for *who = arg;

	return courier_work(who->task, who->claim, news_fd, orders_fd);
}

static void stop_listening(struct courier *courier)
{
	loop_remove(courier->loop, courier->watch);
	courier->watch = NULL;
}

static void on_news(void *arg)
{
	struct courier *courier = arg;
	char byte;
	ssize_t len = read(courier->helper.news_fd, &byte, 1);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0)
		stop_listening(courier);
	else if (byte >= 0 && byte < COURIER_NEWS)
		courier->fn(courier->arg, (enum courier_news)byte);
}

int courier_start(struct courier *courier, const struct task *task, const struct claim *claim,
		  struct loop *loop, courier_fn fn, void *arg, struct err **err)
{
	const struct courier_for who = { task, claim };

	*courier = (struct courier){ .loop = loop, .fn = fn, .arg = arg };
	if (helper_start(&courier->helper, be_courier, &who, err) < 0)
		return -1;
	courier->watch = loop_on_readable(loop, courier->helper.news_fd, on_news, courier);
	return 0;
}

/* One that is dead hears nothing. */
static void tell(const struct courier *courier, char order)
{
	if (courier->helper.pid > 0)
		(void)!write(courier->helper.orders_fd, &order, 1);
}

void courier_report(const struct courier *courier)
{
	tell(courier, COURIER_ORDER_REPORT);
}

void courier_claimed(const struct courier *courier)
{
	tell(courier, COURIER_ORDER_CLAIMED);
}

enum courier_end courier_finish(struct courier *courier, struct mono *end, int64_t grace_ms)
{
	struct pollfd news = { .fd = courier->helper.news_fd, .events = POLLIN };
	bool over = false, told = false;
	int status = -1;
	char byte;

	if (courier->helper.pid <= 0)
		return COURIER_DEAD;
	tell(courier, COURIER_ORDER_LAST);
	/* Its end of the pipe is closed by its end. */
	while (!over && mono_now().ms < end->ms && poll(&news, 1, HEAR_MS) >= 0) {
		over = news.revents && read(news.fd, &byte, 1) == 0;
		/* The loop that would hear it is over. */
		if (!told && loop_stop_take()) {
			told = true;
			if (mono_now().ms + grace_ms < end->ms)
				end->ms = mono_now().ms + grace_ms;
		}
	}
	if (!over)
		helper_kill(&courier->helper);
	waitpid(courier->helper.pid, &status, 0);
	courier->helper.pid = 0;
	if (!over)
		return COURIER_TOO_LATE;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? COURIER_BROUGHT : COURIER_DEAD;
}

void courier_gone(struct courier *courier)
{
	courier->helper.pid = 0;
}

void courier_release(struct courier *courier)
{
	if (courier->watch)
		stop_listening(courier);
	helper_close(&courier->helper);
	*courier = (struct courier){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
