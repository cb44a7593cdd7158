/* Lines of JSON from a helper: see news.h. */
#include "jobs/node/news.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/err.h"

#define NEWS_LINE ((size_t)1 << 20)

static void report_line(const struct news *news, const char *text, size_t len)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *line = NULL;
	const char *kind;

	if (js_parse(text, len, "a helper's line", &line, &ignored) < 0)
		return;
	kind = js_str(line, "news");
	if (kind)
		news->fn(news->arg, kind, line);
}

static void stop_listening(struct news *news)
{
	loop_remove(news->loop, news->watch);
	news->watch = NULL;
	auto_close(&news->helper->news_fd);
	news->helper->news_fd = -1;
}

static void on_readable(void *arg)
{
	struct news *news = arg;
	char buffer[4096];
	const char *end;
	ssize_t len = read(news->helper->news_fd, buffer, sizeof buffer);

	if (len < 0 && err_errno_passes(errno))
		return;
	if (len <= 0) {
		stop_listening(news);
		if (news->ended)
			news->ended(news->arg);
		return;
	}
	sb_add(&news->text, buffer, (size_t)len);
	while ((end = memchr(news->text.text, '\n', news->text.len))) {
		size_t line = (size_t)(end - news->text.text);

		report_line(news, news->text.text, line);
		sb_drop(&news->text, line + 1);
	}
}

void news_listen(struct news *news, struct helper *helper, struct loop *loop, news_fn fn, void *arg)
{
	*news = (struct news){ .helper = helper, .loop = loop, .fn = fn, .arg = arg };
	news->text = SB_INIT_MAX(NEWS_LINE);
	news->watch = loop_on_readable(loop, helper->news_fd, on_readable, news);
}

void news_read(struct news *news)
{
	on_readable(news);
}

void news_drain(struct news *news)
{
	while (news->watch)
		on_readable(news); /* the other end of the pipe is closed: this ends */
}

void news_release(struct news *news)
{
	if (!news->fn)
		return;
	if (news->watch)
		stop_listening(news);
	sb_release(&news->text);
	*news = (struct news){ 0 };
}

json_t *news_of(const char *kind)
{
	json_t *line = json_object();

	js_put_str(line, "news", kind);
	return line;
}

void news_say(int fd, json_t *object)
{
	AUTO(auto_free) char *text = js_line(object);
	AUTO(auto_free) char *line = mem_format("%s\n", text);
	size_t left = strlen(line);
	const char *at = line;
	int failures = 0;

	json_decref(object);
	while (left > 0) {
		ssize_t done = write(fd, at, left);

		if (done < 0 && !err_try_again(&failures))
			_exit(1);
		if (done > 0) {
			at += done;
			left -= (size_t)done;
		}
	}
}
