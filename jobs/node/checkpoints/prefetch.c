/* Runs a prefetch in a helper: see prefetch.h. */
#include "jobs/node/checkpoints/prefetch.h"

#include <errno.h>
#include <sys/wait.h>

/* ---- the helper ---- */

struct prefetch_task {
	struct agent_config config;
	prefetch_fn fn;
};

static int do_prefetch(const void *given, int news_fd, int orders_fd)
{
	const struct prefetch_task *task = given;
	AUTO(err_freep) struct err *why = NULL;
	json_t *line;

	(void)orders_fd;
	if (task->fn(&task->config, &why) == 0)
		return 0;
	line = news_of("failed");
	js_put_str(line, "message", why->message);
	js_put_str(line, "hint", why->hint);
	js_put(line, "code", json_integer(why->code));
	js_put(line, "errno", json_integer(why->os_errno));
	js_put(line, "damage", json_boolean(why->damage));
	news_say(news_fd, line);
	return 1;
}

/* ---- the agent ---- */

static void collect(struct prefetch *prefetch, int *ret_status)
{
	news_release(&prefetch->news);
	helper_close(&prefetch->helper);
	while (waitpid(prefetch->helper.pid, ret_status, 0) < 0 && errno == EINTR)
		;
	prefetch->helper.pid = 0;
}

/* Takes the child's error as an error of the agent. */
static void on_news(void *arg, const char *kind, const json_t *line)
{
	struct prefetch *prefetch = arg;
	const char *message = js_str(line, "message");

	(void)kind;
	if (!message)
		return;
	err_freep(&prefetch->why);
	err_set(&prefetch->why, (enum exit_code)js_int(line, "code", EXIT_REFUSED), "%s", message);
	prefetch->why->os_errno = (int)js_int(line, "errno", 0);
	prefetch->why->damage = js_bool(line, "damage", false);
	if (js_str(line, "hint"))
		err_hint(&prefetch->why, "%s", js_str(line, "hint"));
}

static void on_end(void *arg)
{
	struct prefetch *prefetch = arg;
	int status = 0;

	collect(prefetch, &status);
	prefetch->died = (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !prefetch->why;
	if (prefetch->died)
		err_set(&prefetch->why, EXIT_UNREACHABLE,
			"the download process of this node ended with %s %d",
			WIFSIGNALED(status) ? "signal" : "exit",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	prefetch->done(prefetch->arg, TAKE(prefetch->why));
}

int prefetch_start(struct prefetch *prefetch, const struct agent_config *config, prefetch_fn fn,
		   struct loop *loop, prefetch_done_fn done, void *arg, struct err **err)
{
	const struct prefetch_task task = { *config, fn };

	*prefetch = (struct prefetch){
		.done = done,
		.arg = arg,
	};
	if (helper_start(&prefetch->helper, "stoker-prefetch", do_prefetch, &task, sizeof task,
			 err) < 0)
		return -1;
	news_listen(&prefetch->news, &prefetch->helper, loop, on_news, prefetch);
	prefetch->news.ended = on_end;
	return 0;
}

void prefetch_release(struct prefetch *prefetch)
{
	int status;

	if (prefetch->helper.pid > 0) {
		helper_kill(&prefetch->helper);
		collect(prefetch, &status);
	}
	err_freep(&prefetch->why);
	*prefetch = (struct prefetch){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
