/* A driver whose plan asks for notifications, with each of its calls failing in turn: see
 * strikes.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "jobs/run/driver.h"
#include "jobs/run/journal/journal.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/operators.h"
#include "tests/world/play.h"
#include "tests/world/strikes.h"
#include "tests/world/tree.h"

#define TOLD "/srv/user/told"
#define TELL "/opt/venv/bin/tell"

/* ---- notifications ---- */

static bool receivers_hang; /* all of them */
static bool receivers_hung; /* while the run went on */

static void rest(int64_t seconds)
{
	const struct timespec time = { .tv_sec = seconds };

	(void)!nanosleep(&time, NULL);
}

static void put(int fd, const char *text)
{
	(void)!write(fd, text, strlen(text));
}

/* The messages that a receiver was given, kept for the check. */
static void keep_told(void)
{
	char chunk[4096];
	int fd = open(TOLD, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ssize_t len;

	while ((len = read(0, chunk, sizeof chunk)) > 0)
		(void)!write(fd, chunk, (size_t)len);
	close(fd);
}

/* tell WHAT: a receiver of messages that takes them, or does WHAT instead. */
static int tell_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "take";

	if (receivers_hang)
		rest(60);
	else if (strcmp(what, "hang") == 0)
		rest(3600);
	else if (strcmp(what, "die") == 0)
		kill(getpid(), SIGKILL);
	else if (strcmp(what, "refuse") == 0)
		put(2, "the line is dead\nthe phone is \033[31mbusy\n");
	else if (strcmp(what, "fail") != 0)
		keep_told();
	return strcmp(what, "take") == 0 && !receivers_hang ? 0 : 3;
}

/* The program that posts to a webhook takes no argument: its input begins with the URL. */
static int post_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	return tell_main(0, NULL);
}

static void put_program(struct machine *machine, const char *path, const char *mark)
{
	tree_put(machine, path, mark, strlen(mark), 0755);
}

#define BOTH "when: [started, succeeded]"
#define END  "when: [succeeded]"

/* The outcome of the messages of each rule, while no call of stoker fails; NULL: it is sent. */
static const char *const failures[] = {
	NULL,
	NULL,
	"succeeded: the phone is \\x1b[31mbusy",
	"succeeded: exit status 3",
	"succeeded: killed by signal 9",
	"succeeded: program './nowhere' not found",
	"succeeded: timeout after 15 s",
};
#define RULES STK_LENGTH(failures)
#define HANGS (RULES - 1) /* no driver of an ended run waits until it is given up */

static void add_receivers(struct schedule *places)
{
	static const char rules[] =
		"notify:\n"
		"  - {" BOTH ", command: [" TELL ", take]}\n"
		"  - {" BOTH ", webhook: \"https://example.com/hook\"}\n"
		"  - {" END ", command: [" TELL ", refuse]}\n"
		"  - {" END ", command: [" TELL ", fail]}\n"
		"  - {" END ", command: [" TELL ", die]}\n"
		"  - {" END ", command: [./nowhere]}\n"
		"  - {" END ", command: [" TELL ", hang]}\n"
		"  - {when: [failed, stopped, gate, at_risk], command: [" TELL ", take]}\n";

	program_register("tell", tell_main);
	program_register("stoker-post", post_main);
	for (int host = 0; host < 2 && places->hosts[host]; host++) {
		put_program(places->hosts[host], TELL, "\177ELF world tell\n");
		put_program(places->hosts[host], "/opt/stoker/stoker-post",
			    "\177ELF world stoker-post\n");
	}
	strikes_add_to_spec(rules);
}

/* The run has ended, and its driver has left with all of its messages unsent. */
static void leave_messages(struct schedule *places)
{
	add_receivers(places);
	receivers_hang = receivers_hung = true;
	strikes_run_to_end(places);
	receivers_hang = false;
}

/* Messages that are due, and what the journal says of them. */
struct outcomes {
	int64_t started, ended; /* the events that they are about */
	bool succeeded;
	struct outcome_row {
		int sent, failed;
		char why[128];
	} rows[RULES][2]; /* by rule, and whether it is about the end */
	int others;
};

static int see_outcome(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct outcomes *all = arg;
	struct outcome_row *one;

	(void)row, (void)err;
	if (ev && ev->kind == EV_RUN_CREATED)
		all->started = ev->seq;
	if (ev && ev->kind == EV_RUN_ENDED) {
		all->ended = ev->seq;
		all->succeeded = ev->state == OUTCOME_SUCCEEDED;
	}
	if (!ev || (ev->kind != EV_NOTIFY_SENT && ev->kind != EV_NOTIFY_FAILED))
		return 0;
	if (ev->rule < 0 || ev->rule >= (int64_t)RULES ||
	    (ev->about != all->started && ev->about != all->ended)) {
		all->others += all->succeeded || ev->rule != (int64_t)RULES;
		return 0;
	}
	one = &all->rows[ev->rule][ev->about == all->ended];
	one->sent += ev->kind == EV_NOTIFY_SENT;
	one->failed += ev->kind == EV_NOTIFY_FAILED;
	if (ev->kind == EV_NOTIFY_FAILED)
		snprintf(one->why, sizeof one->why, "%s", ev->reason);
	return 0;
}

static int read_outcomes(const char *run, struct outcomes *ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;

	*ret = (struct outcomes){ 0 };
	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0)
		return -1;
	return journal_read(journal, run, 1, see_outcome, ret, err);
}

/* A rule that hears of the end alone has no message about the beginning, and none of these hears
 * of a failure. */
static bool is_due(const struct outcomes *all, size_t rule, int about_end)
{
	return about_end ? all->succeeded : rule < 2;
}

static bool are_all_told(const struct outcomes *all)
{
	for (size_t rule = 0; rule < HANGS; rule++)
		for (int end = 0; end < 2; end++)
			if (is_due(all, rule, end) &&
			    all->rows[rule][end].sent + all->rows[rule][end].failed == 0)
				return false;
	return true;
}

/* The receiver has the message that the journal calls sent: a line of JSON with its id. */
static int find_told(const char *run, int64_t about, size_t rule, struct err **err)
{
	AUTO(auto_free) char *id = mem_format("%s-%lld-%zu", run, (long long)about, rule);
	AUTO(auto_free) char *told = tree_get(self->machine, TOLD, NULL);
	char *rest_of = NULL;

	for (char *line = told ? strtok_r(told, "\n", &rest_of) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest_of)) {
		AUTO(err_freep) struct err *ignored = NULL;
		json_auto_t *body = NULL;

		if (js_parse(line, strlen(line), "message", &body, &ignored) == 0 &&
		    js_is(body, "id", id) && js_is(body, "name", "world") &&
		    !json_object_get(body, "plan") && js_str(body, "text"))
			return 0;
	}
	return err_set(err, EXIT_REFUSED, "nobody has message %s", id);
}

/* What a receiver that hangs may have made of it while no call of stoker fails: a run may take
 * longer than a message has. */
static bool may_fail(const struct outcome_row *one, size_t rule, int end)
{
	const char *why = failures[rule];

	if (!end && receivers_hung)
		why = "started: timeout after 15 s";
	return why && strcmp(one->why, why) == 0;
}

static int check_outcome(const char *run, const struct outcomes *all, size_t rule, int end,
			 struct err **err)
{
	const struct outcome_row *one = &all->rows[rule][end];

	if (one->sent + one->failed != is_due(all, rule, end) && rule != HANGS)
		return err_set(err, EXIT_REFUSED, "a message of rule %zu is sent %d, failed %d",
			       rule, one->sent, one->failed);
	if (one->sent && failures[rule])
		return err_set(err, EXIT_REFUSED, "nobody took a message of rule %zu", rule);
	if (one->sent)
		return find_told(run, end ? all->ended : all->started, rule, err);
	if (one->failed && !strikes_have_hit() && !may_fail(one, rule, end))
		return err_set(err, EXIT_REFUSED, "rule %zu has failed: %s", rule, one->why);
	return 0;
}

/* Each message has one outcome, and those that were sent have arrived. What is left is for the
 * next driver. */
static int check_told(const char *run, struct err **err)
{
	struct outcomes all;

	if (read_outcomes(run, &all, err) < 0)
		return -1;
	for (int i = 0; i < 12 && !are_all_told(&all); i++)
		if (operator_resume(run, err) < 0 || read_outcomes(run, &all, err) < 0)
			return -1;
	if (all.others > 0)
		return err_set(err, EXIT_REFUSED, "%d messages that are not due", all.others);
	for (size_t rule = 0; rule < RULES; rule++)
		for (int end = 0; end < 2; end++)
			if (check_outcome(run, &all, rule, end, err) < 0)
				return -1;
	return 0;
}

static int tell_rest(const char *run, struct err **err)
{
	return operator_resume(run, err);
}

/* ---- a user who does not wait for them ---- */

static void interrupt_at_first(void *arg, const struct event *ev, json_t *row)
{
	bool *interrupted = arg;

	(void)row;
	if (ev->kind == EV_NOTIFY_SENT && !*interrupted)
		kill(getpid(), SIGINT);
	*interrupted |= ev->kind == EV_NOTIFY_SENT;
}

/* The run has ended: there is nothing to ask, and the next driver sends the rest. */
static int cut_short(const char *run, struct err **err)
{
	bool interrupted = false;
	const struct driver_options options = { .run = run,
						.on_event = interrupt_at_first,
						.arg = &interrupted };

	return operator_drive(&options, NULL, err);
}

struct question {
	int answer_fd;
	bool answered;
};

static void ask_and_answer_late(void *arg, const struct event *ev, json_t *row)
{
	const struct question *question = arg;

	(void)row;
	if (ev->kind == EV_ATTEMPT_STARTED && ev->phase == PHASE_TRAIN)
		kill(getpid(), SIGINT);
	if (ev->kind == EV_RUN_ENDED)
		put(question->answer_fd, "y");
}

static enum interrupt ask(void *arg, int signo)
{
	(void)arg, (void)signo;
	return INTERRUPT_ASK;
}

static enum interrupt take_answer(void *arg)
{
	((struct question *)arg)->answered = true;
	return INTERRUPT_STOP;
}

/* The answer to a question comes when the run has ended. */
static int answer_late(const char *run, struct err **err)
{
	struct question question = { 0 };
	const struct driver_options options = { .run = run,
						.on_event = ask_and_answer_late,
						.on_interrupt = ask,
						.on_answer = take_answer,
						.arg = &question };
	int result, ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, EXIT_REFUSED, "there is no terminal");
	question.answer_fd = ends[1];
	dup2(ends[0], 0);
	close(ends[0]);
	result = operator_drive(&options, STRIKES_SPEC, err);
	close(ends[1]);
	if (!question.answered)
		return result;
	err_freep(err);
	return err_set(err, EXIT_DEFECT, "the answer was taken though the run had ended");
}

static const struct strike_action actions[] = {
	STRIKE("left sqlite", "sqlite", leave_messages, tell_rest, .check = check_told),
	STRIKE("left bucket", "far", leave_messages, tell_rest, .check = check_told),
	STRIKE("cut short", "sqlite", leave_messages, cut_short, .again = tell_rest,
	       .check = check_told, .share = 5),
	STRIKE("driven", "sqlite", add_receivers, strikes_drive, .check = check_told, .share = 20),
	STRIKE("answered late", "sqlite", add_receivers, answer_late, .again = strikes_drive,
	       .check = check_told, .share = 40),
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
