/* Runs a prefetch in a helper: see prefetch.h. */
#include "jobs/node/checkpoints/prefetch.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFETCH_WORDS ((size_t)64 << 10)

/* ---- the helper ---- */

static void send_error(int fd, const struct err *why)
{
	json_t *words = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put_str(words, "message", why->message);
	js_put_str(words, "hint", why->hint);
	js_put(words, "code", json_integer(why->code));
	js_put(words, "errno", json_integer(why->os_errno));
	text = js_line(words);
	json_decref(words);
	(void)!write(fd, text, strlen(text));
}

static int do_prefetch(const void *arg, int news_fd, int orders_fd)
{
	const struct prefetch *prefetch = arg;
	AUTO(err_freep) struct err *why = NULL;

	(void)orders_fd;
	if (prefetch->fn(prefetch->config, &why) == 0)
		return 0;
	send_error(news_fd, why);
	return 1;
}

/* ---- the agent ---- */

static void collect(struct prefetch *prefetch, int *ret_status)
{
	loop_remove(prefetch->loop, prefetch->watch);
	prefetch->watch = NULL;
	helper_close(&prefetch->helper);
	while (waitpid(prefetch->helper.pid, ret_status, 0) < 0 && errno == EINTR)
		;
	prefetch->helper.pid = 0;
}

/* Returns the child's error as an error of the agent; NULL on success. */
static struct err *words_of(const struct prefetch *prefetch, int status)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct err *why = NULL;
	json_auto_t *words = NULL;
	const char *message;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (js_parse(prefetch->text.text, prefetch->text.len, "the prefetch", &words, &ignored) <
		    0 ||
	    !(message = js_str(words, "message"))) {
		err_set(&why, EXIT_UNREACHABLE,
			"the download process of this node ended with %s %d",
			WIFSIGNALED(status) ? "signal" : "exit",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		return why;
	}
	err_set(&why, (enum exit_code)js_int(words, "code", EXIT_REFUSED), "%s", message);
	why->os_errno = (int)js_int(words, "errno", 0);
	if (js_str(words, "hint"))
		err_hint(&why, "%s", js_str(words, "hint"));
	return why;
}

static void on_end(void *arg)
{
	struct prefetch *prefetch = arg;
	char buffer[4096];
	ssize_t len = read(prefetch->helper.news_fd, buffer, sizeof buffer);
	int status = 0;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len > 0) {
		sb_add(&prefetch->text, buffer, (size_t)len);
		return;
	}
	collect(prefetch, &status);
	prefetch->done(prefetch->arg, words_of(prefetch, status));
}

int prefetch_start(struct prefetch *prefetch, const struct agent_config *config, prefetch_fn fn,
		   struct loop *loop, prefetch_done_fn done, void *arg, struct err **err)
{
	*prefetch = (struct prefetch){
		.config = config,
		.fn = fn,
		.loop = loop,
		.text = SB_INIT_MAX(PREFETCH_WORDS),
		.done = done,
		.arg = arg,
	};
	if (helper_start(&prefetch->helper, "stoker-prefetch", do_prefetch, prefetch, err) < 0)
		return -1;
	prefetch->watch = loop_on_readable(loop, prefetch->helper.news_fd, on_end, prefetch);
	return 0;
}

void prefetch_release(struct prefetch *prefetch)
{
	int status;

	if (prefetch->helper.pid > 0) {
		helper_kill(&prefetch->helper);
		collect(prefetch, &status);
	}
	if (prefetch->done)
		sb_release(&prefetch->text);
	*prefetch = (struct prefetch){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
