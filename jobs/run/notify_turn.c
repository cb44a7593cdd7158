/* Notifications about a turn without a run: see notify_turn.h. */
#include "jobs/run/notify_turn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/text.h"
#include "jobs/run/notify.h"
#include "jobs/run/notify_process.h"
#include "jobs/run/notify_queue.h"

#define TRIES 3

/* A process that delivers a message. */
struct delivery {
	struct loop *loop;
	pid_t pid;
	int words; /* the process's error output */
	bool too_late;
};

static void on_end(void *arg)
{
	struct delivery *delivery = arg;

	loop_quit(delivery->loop);
}

static void on_timeout(void *arg)
{
	struct delivery *delivery = arg;

	delivery->too_late = true;
	kill(-delivery->pid, SIGKILL);
}

/* Waits for its end, or ends it. Returns its exit status as of waitpid(). */
static int await(struct delivery *delivery)
{
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	int status = 0;

	if (loop_new(&loop, &ignored) == 0) {
		delivery->loop = loop;
		loop_after(loop, NOTIFY_TIMEOUT_MS, on_timeout, delivery);
		if (!loop_on_exit(loop, delivery->pid, on_end, delivery) ||
		    loop_run(loop, &ignored) < 0)
			kill(-delivery->pid, SIGKILL);
	} else {
		kill(-delivery->pid, SIGKILL);
	}
	while (waitpid(delivery->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Sets the error to what the process said last, or to how it ended. */
static int say_why(const struct delivery *delivery, int status, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * NOTIFY_WORDS_MAX);
	char words[NOTIFY_WORDS_MAX];
	ssize_t len = read(delivery->words, words, sizeof words), from;

	while (len > 0 && (words[len - 1] == '\n' || words[len - 1] == ' '))
		len--;
	for (from = len; from > 0 && words[from - 1] != '\n'; from--)
		;
	if (len > from)
		text_escape(&text, words + from, (size_t)(len - from), false);
	if (delivery->too_late)
		return err_set(err, EXIT_REFUSED, "timeout after %d s", NOTIFY_TIMEOUT_MS / 1000);
	if (text.len > 0)
		return err_set(err, EXIT_REFUSED, "%s", text.text);
	return err_set(err, EXIT_REFUSED, "exit status %d",
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int deliver(const struct notify_letter *letter, struct err **err)
{
	struct delivery delivery = { .words = -1 };
	int status, sent;

	if (notify_process_start(letter, &delivery.pid, &delivery.words, err) < 0)
		return -1;
	status = await(&delivery);
	sent = !delivery.too_late && WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : say_why(&delivery, status, err);
	close(delivery.words);
	return sent;
}

static char *body_of(const struct notify_turn *turn, size_t rule)
{
	AUTO(auto_free) char *id = mem_format("%s-%zu", turn->id, rule);
	json_auto_t *body =
		turn->facts ? json_copy((json_t *)(uintptr_t)turn->facts) : json_object();

	js_put_str(body, "id", id);
	js_put_str(body, "occasion", turn->occasion);
	js_put_str(body, "name", turn->name);
	js_put_str(body, "text", turn->text);
	return js_line(body);
}

static int send_rule(const struct notify_turn *turn, const json_t *rule, size_t index,
		     struct err **err)
{
	AUTO(auto_free) char *body = body_of(turn, index);
	const struct notify_letter letter = {
		.rule = rule, .body = body, .occasion = turn->occasion, .spec_file = turn->spec_file
	};

	for (int tries = 1;; tries++) {
		if (deliver(&letter, err) == 0)
			return 0;
		if (tries == TRIES || cancel_is_due())
			return err_wrap(err, "notify[%zu] failed", index);
		err_freep(err);
		cancel_pause((int64_t)NOTIFY_FIRST_MS << (tries - 1));
	}
}

int notify_turn_send(const struct notify_turn *turn, struct err **err)
{
	const json_t *rule;
	int ret = 0;
	size_t i;

	json_array_foreach (turn->rules, i, rule) {
		AUTO(err_freep) struct err *why = NULL;

		if (!notify_queue_asks(rule, turn->occasion) || send_rule(turn, rule, i, &why) == 0)
			continue;
		if (ret == 0)
			*err = TAKE(why);
		ret = -1;
	}
	return ret;
}
