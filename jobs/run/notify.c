/* Sends notifications, and records what became of them: see notify.h. */
#include "jobs/run/notify.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/text/text.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/notify_process.h"
#include "jobs/run/notify_queue.h"

#define AT_ONCE 4 /* processes */

/* --- outcomes --- */

static void stop_watching(struct notify_message *message)
{
	struct loop *loop = message->driver->loop;

	loop_remove(loop, message->end);
	loop_remove(loop, message->readable);
	loop_remove(loop, message->timeout);
	message->end = message->readable = message->timeout = NULL;
	if (message->words_fd >= 0)
		close(message->words_fd);
	message->words_fd = -1;
}

/* Records an outcome. After the end of a run a failure to record changes nothing: a later driver
 * sends the message again. */
static void record_event(struct driver *driver, struct event *ev)
{
	AUTO(err_freep) struct err *err = NULL;

	if (driver->left || driver->failure || !again_may_act(driver) ||
	    driver_record(driver, ev, &err) == 0)
		return;
	if (driver->flow.state != FLOW_ENDED) {
		driver->failure = TAKE(err);
		if (again_try(driver))
			return;
	}
	loop_quit(driver->loop);
}

static void pump_or_quit(struct driver *driver)
{
	notify_pump(driver);
	if (driver->notify->flush && !driver->notify->first)
		loop_quit(driver->loop);
}

/* Frees `message` if it is recorded. If that fails for now, the message stays, to be recorded
 * later: it is not sent twice because a service is away. */
static void record_outcome(struct notify_message *message)
{
	struct event ev = { .kind = message->is_sent ? EV_NOTIFY_SENT : EV_NOTIFY_FAILED };
	AUTO(auto_free) char *failure = message->failure ? mem_copy(message->failure) : NULL;

	EVENT_SET(&ev, rule, message->rule);
	EVENT_SET(&ev, about, message->about);
	if (failure) {
		EVENT_SET_STR(&ev, reason, failure);
		EVENT_SET_STR(&ev, hint,
			      "run the command or request of notify by hand, with this event on "
			      "its input");
	}
	message->due.ms = clock_mono_now().ms + AWAY_MS;
	record_event(message->driver, &ev);
}

static void finish_message(struct notify_message *message)
{
	struct driver *driver = message->driver;

	message->is_sent = true;
	record_outcome(message);
	pump_or_quit(driver);
}

static void retry_message(struct notify_message *message, const char *why)
{
	struct driver *driver = message->driver;

	if (++message->tries < NOTIFY_TRIES) {
		message->due.ms =
			clock_mono_now().ms + ((int64_t)NOTIFY_FIRST_MS << (message->tries - 1));
	} else {
		message->failure = mem_format("%s: %s", message->occasion, why);
		record_outcome(message);
	}
	pump_or_quit(driver);
}

/* Returns the last line of its error output, fit for a terminal; else how it ended. */
static char *why_it_failed(const struct notify_message *message, int status)
{
	size_t len = message->words_len, from;
	struct sb text = SB_INIT;

	if (message->too_late)
		return mem_format("timeout after %d s", NOTIFY_TIMEOUT_MS / 1000);
	while (len > 0 && (message->words[len - 1] == '\n' || message->words[len - 1] == ' '))
		len--;
	for (from = len; from > 0 && message->words[from - 1] != '\n'; from--)
		;
	if (len > from)
		text_escape(&text, message->words + from, len - from, false);
	else if (WIFSIGNALED(status))
		sb_addf(&text, "killed by signal %d", WTERMSIG(status));
	else
		sb_addf(&text, "exit status %d", WEXITSTATUS(status));
	return sb_take(&text);
}

/* Returns true once its error output is closed, so that nothing more will come. */
static bool read_words(struct notify_message *message)
{
	char chunk[4096];
	ssize_t len;

	while ((len = read(message->words_fd, chunk, sizeof chunk)) > 0) {
		size_t add = (size_t)len < NOTIFY_WORDS_MAX ? (size_t)len : NOTIFY_WORDS_MAX, keep;

		keep = message->words_len < NOTIFY_WORDS_MAX - add ? message->words_len
								   : NOTIFY_WORDS_MAX - add;
		memmove(message->words, message->words + message->words_len - keep, keep);
		memcpy(message->words + keep, chunk + (size_t)len - add, add);
		message->words_len = keep + add;
	}
	return len == 0;
}

static void on_words(void *arg)
{
	struct notify_message *message = arg;

	if (!read_words(message))
		return;
	loop_remove(message->driver->loop, message->readable);
	message->readable = NULL;
}

/* Takes leave of its process, which has ended or is about to. Returns its exit status. */
static int reap(struct notify_message *message)
{
	int status = 0;

	while (waitpid(message->sender, &status, 0) < 0 && errno == EINTR)
		;
	(void)read_words(message);
	stop_watching(message);
	message->sender = 0;
	message->driver->notify->under_way--;
	return status;
}

static void on_end(void *arg)
{
	struct notify_message *message = arg;
	int status;

	message->end = NULL;
	status = reap(message);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		finish_message(message);
	} else {
		AUTO(auto_free) char *why = why_it_failed(message, status);

		retry_message(message, why);
	}
}

static void on_timeout(void *arg)
{
	struct notify_message *message = arg;

	message->timeout = NULL;
	message->too_late = true;
	kill(-message->sender, SIGKILL);
}

/* --- sending --- */

/* Nobody would learn of the end of its process: that is ended now, and the message sent again. */
static void end_unwatched(struct notify_message *message, int error)
{
	AUTO(auto_free)
	char *why = mem_format("its process cannot be watched: %s", strerror(error));

	kill(-message->sender, SIGKILL);
	(void)reap(message);
	retry_message(message, why);
}

static void send_message(struct notify_message *message)
{
	struct driver *driver = message->driver;
	const json_t *rule =
		json_array_get(json_object_get(driver->plan, "notify"), (size_t)message->rule);
	const struct notify_letter letter = { .rule = rule,
					      .body = message->body,
					      .occasion = message->occasion,
					      .run = driver->run,
					      .spec_file = js_str(driver->plan, "spec_file") };
	AUTO(err_freep) struct err *err = NULL;

	message->too_late = false;
	message->words_len = 0;
	if (notify_process_start(&letter, &message->sender, &message->words_fd, &err) < 0) {
		stop_watching(message);
		retry_message(message, err->message);
		return;
	}
	driver->notify->under_way++;
	message->readable = loop_on_readable(driver->loop, message->words_fd, on_words, message);
	message->timeout = loop_after(driver->loop, NOTIFY_TIMEOUT_MS, on_timeout, message);
	message->end = loop_on_exit(driver->loop, message->sender, on_end, message);
	if (!message->end)
		end_unwatched(message, errno);
}

/* Returns the message that has waited longest and is not under way; NULL if there is no such
 * message. */
static struct notify_message *next_due(const struct notify *notify)
{
	struct notify_message *next = NULL;

	for (struct notify_message *message = notify->first; message; message = message->next)
		if (message->sender == 0 && (!next || message->due.ms < next->due.ms))
			next = message;
	return next;
}

/* Handles one message a turn: its outcome may change any other state. */
static void on_due(void *arg)
{
	struct driver *driver = arg;
	struct notify_message *next = next_due(driver->notify);

	driver->notify->timer = NULL;
	if (next && next->due.ms <= clock_mono_now().ms) {
		if (next->is_sent || next->failure)
			record_outcome(next);
		else
			send_message(next);
	}
	pump_or_quit(driver);
}

void notify_pump(struct driver *driver)
{
	struct notify *notify = driver->notify;
	struct notify_message *next;
	int64_t wait_ms;

	if (!notify || driver->left || driver->failure || !lease_is_mine(driver->lease))
		return;
	/* A new message may be due before the one that was waited for. */
	loop_remove(driver->loop, notify->timer);
	notify->timer = NULL;
	next = notify->under_way < AT_ONCE ? next_due(notify) : NULL;
	if (!next)
		return;
	wait_ms = next->due.ms - clock_mono_now().ms;
	notify->timer = loop_after(driver->loop, wait_ms > 0 ? wait_ms : 0, on_due, driver);
}

static void on_flush(void *arg)
{
	loop_quit(((struct driver *)arg)->loop);
}

void notify_flush(struct driver *driver)
{
	if (!notify_queue_pending(driver)) {
		loop_quit(driver->loop);
		return;
	}
	if (!driver->notify->flush)
		driver->notify->flush = loop_after(driver->loop, NOTIFY_FLUSH_MS, on_flush, driver);
	notify_pump(driver);
}

void notify_release(struct driver *driver)
{
	struct notify *notify = driver->notify;

	while (notify && notify->first) {
		struct notify_message *message = notify->first;

		notify->first = message->next;
		if (driver->loop)
			stop_watching(message);
		free(message->body);
		free(message->failure);
		free(message);
	}
	free(TAKE(driver->notify));
}
