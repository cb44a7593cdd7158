/* Has an errand done by a helper: see errand.h. */
#include "jobs/node/errand.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERRAND_WORDS ((size_t)64 << 10)

/* ---- the helper ---- */

static void tell(int fd, const struct err *why)
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

static int do_errand(const void *arg, int news_fd, int orders_fd)
{
	const struct errand *errand = arg;
	AUTO(err_freep) struct err *why = NULL;

	(void)orders_fd;
	if (errand->fn(errand->task, &why) == 0)
		return 0;
	tell(news_fd, why);
	return 1;
}

/* ---- the agent ---- */

static void collect(struct errand *errand, int *ret_status)
{
	loop_remove(errand->loop, errand->watch);
	errand->watch = NULL;
	helper_close(&errand->helper);
	while (waitpid(errand->helper.pid, ret_status, 0) < 0 && errno == EINTR)
		;
	errand->helper.pid = 0;
}

/* What the child had to say, as an error of ours. */
static struct err *words_of(const struct errand *errand, int status)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct err *why = NULL;
	json_auto_t *words = NULL;
	const char *message;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (js_parse(errand->text.text, errand->text.len, "the errand", &words, &ignored) < 0 ||
	    !(message = js_str(words, "message"))) {
		err_set(&why, EXIT_UNREACHABLE,
			"the process that fetches for this node ended with %s %d",
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
	struct errand *errand = arg;
	char buffer[4096];
	ssize_t len = read(errand->helper.news_fd, buffer, sizeof buffer);
	int status = 0;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len > 0) {
		sb_add(&errand->text, buffer, (size_t)len);
		return;
	}
	collect(errand, &status);
	errand->done(errand->arg, words_of(errand, status));
}

int errand_start(struct errand *errand, const struct task *task, errand_fn fn, struct loop *loop,
		 errand_done_fn done, void *arg, struct err **err)
{
	*errand = (struct errand){
		.task = task,
		.fn = fn,
		.loop = loop,
		.text = SB_INIT_MAX(ERRAND_WORDS),
		.done = done,
		.arg = arg,
	};
	if (helper_start(&errand->helper, do_errand, errand, err) < 0)
		return -1;
	errand->watch = loop_on_readable(loop, errand->helper.news_fd, on_end, errand);
	return 0;
}

void errand_release(struct errand *errand)
{
	int status;

	if (errand->helper.pid > 0) {
		helper_kill(&errand->helper);
		collect(errand, &status);
	}
	if (errand->done)
		sb_release(&errand->text);
	*errand = (struct errand){ .helper = { .news_fd = -1, .orders_fd = -1 } };
}
