/* Driving a run with what a plan, a terminal and other commands may ask for beside it, with each of
 * its calls failing in turn: see strikes.h. */
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
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/run/driver.h"
#include "jobs/run/journal/journal.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/operators.h"
#include "tests/world/play.h"
#include "tests/world/strikes.h"
#include "tests/world/tree.h"

#define SPEC "/srv/user/job/job.yaml"
#define TOLD "/srv/user/told"
#define TELL "/opt/venv/bin/tell"

static int drive(const char *run, struct err **err)
{
	return operator_run(run, SPEC, err);
}

static int resume(const char *run, struct err **err)
{
	return operator_resume(run, err);
}

/* ---- notifications ---- */

static bool receivers_hang; /* all of them */
static bool was_struck;     /* a call of what was asked for has failed */

static void rest(int64_t seconds)
{
	const struct timespec time = { .tv_sec = seconds };

	(void)!nanosleep(&time, NULL);
}

static void put(int fd, const char *text)
{
	(void)!write(fd, text, strlen(text));
}

/* What a receiver was given, kept for the check. */
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

/* What becomes of the messages of each rule, while no call of stoker fails; NULL: it is sent. */
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
	receivers_hang = true;
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
	if (one->failed && !was_struck &&
	    (!failures[rule] || strcmp(one->why, failures[rule]) != 0))
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
		if (resume(run, err) < 0 || read_outcomes(run, &all, err) < 0)
			return -1;
	if (all.others > 0)
		return err_set(err, EXIT_REFUSED, "%d messages that are not due", all.others);
	for (size_t rule = 0; rule < RULES; rule++)
		for (int end = 0; end < 2; end++)
			if (check_outcome(run, &all, rule, end, err) < 0)
				return -1;
	return 0;
}

static int noted(int result)
{
	was_struck = self->refused > 0;
	return result;
}

static int resume_and_tell(const char *run, struct err **err)
{
	return noted(resume(run, err));
}

static int drive_and_tell(const char *run, struct err **err)
{
	return noted(drive(run, err));
}

/* ---- a terminal ---- */

/* What happens once the first numbers of the training are shown. */
struct terminal {
	int signo;                /* comes to the driver; 0: none */
	enum interrupt reaction;  /* of who looks on */
	const char *stop_file;    /* lies in the workspace; NULL: none */
	bool disk_is_full;        /* for the journal */
	enum event_kind recorded; /* what comes of it, and the reason that is told */
	const char *reason;
};

static const struct terminal *terminal;
static bool disk_is_full; /* for the journal, from then on */

/* Of one driver. */
struct look {
	struct loop *loop;
	bool shown;
};

static void on_loop(void *arg, struct loop *loop)
{
	((struct look *)arg)->loop = loop;
}

static void on_numbers(void *arg, const struct event *ev)
{
	struct look *look = arg;

	if (look->shown || !EVENT_HAS(ev, step))
		return;
	look->shown = true;
	disk_is_full = terminal->disk_is_full;
	if (terminal->stop_file) {
		AUTO(auto_free)
		char *path = mem_format("/srv/user/work/runs/%s/stop.json", self->argv[2]);

		tree_put(self->machine, path, terminal->stop_file, strlen(terminal->stop_file),
			 0600);
	}
	if (terminal->signo)
		kill(getpid(), terminal->signo);
}

static void lose_patience(void *arg)
{
	(void)arg;
	kill(getpid(), terminal->signo);
}

/* Who asked for a stop, and hears that something does not answer, waits no longer than that. */
static void on_away(void *arg, const struct err *why)
{
	const struct look *look = arg;

	(void)why;
	if (terminal->disk_is_full)
		(void)!loop_after(look->loop, 20000, lose_patience, NULL);
}

static enum interrupt on_interrupt(void *arg, int signo)
{
	(void)arg;
	return signo == terminal->signo ? terminal->reaction : INTERRUPT_GO_ON;
}

/* A letter at a time: y. */
static enum interrupt on_answer(void *arg)
{
	char letter = 0;

	(void)arg;
	if (read(0, &letter, 1) < 0)
		return INTERRUPT_ASK;
	return letter == 'y' ? INTERRUPT_STOP : INTERRUPT_ASK;
}

static int drive_before(const char *run, const char *spec, const struct terminal *given,
			struct err **err)
{
	struct look look = { 0 };
	const struct driver_options options = {
		.run = run,
		.on_loop = on_loop,
		.on_progress_update = on_numbers,
		.on_away = on_away,
		.on_interrupt = given->reaction == INTERRUPT_DETACH ? NULL : on_interrupt,
		.on_answer = on_answer,
		.arg = &look,
	};
	int result;

	terminal = given;
	result = operator_drive(&options, spec, err);
	disk_is_full = false;
	if (look.loop) {
		err_freep(err);
		return err_set(err, EXIT_DEFECT, "its loop is gone, and nobody was told");
	}
	return result;
}

static int act_before(const char *run, const struct terminal *given, struct err **err)
{
	return noted(drive_before(run, SPEC, given, err));
}

/* The answer lies on the terminal: a letter that says nothing, and yes. */
static int be_asked(const char *run, struct err **err)
{
	static const struct terminal asks = { .signo = SIGINT,
					      .reaction = INTERRUPT_ASK,
					      .recorded = EV_REQUEST_STOP,
					      .reason = "interrupted" };
	int result, ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, EXIT_REFUSED, "there is no terminal");
	(void)!write(ends[1], "?y", 2);
	dup2(ends[0], 0);
	close(ends[0]);
	result = act_before(run, &asks, err);
	close(ends[1]);
	return result;
}

static int hang_up(const char *run, struct err **err)
{
	static const struct terminal hangs_up = {
		.signo = SIGHUP,
		.reaction = INTERRUPT_HAND_OVER,
		.recorded = EV_DRIVER_LEFT,
		.reason = "the terminal hung up: a driver in the background follows",
	};

	return act_before(run, &hangs_up, err);
}

static int detach(const char *run, struct err **err)
{
	static const struct terminal detaches = { .signo = SIGTERM,
						  .reaction = INTERRUPT_DETACH,
						  .recorded = EV_DRIVER_LEFT,
						  .reason = "interrupted: the job runs on" };

	return act_before(run, &detaches, err);
}

static int be_told(const char *run, struct err **err)
{
	static const struct terminal tells = {
		.signo = SIGUSR1,
		.reaction = INTERRUPT_GO_ON,
		.recorded = EV_REQUEST_STOP,
		.reason = "'stoker stop', which could not journal it",
	};

	return act_before(run, &tells, err);
}

static int find_stop(const char *run, struct err **err)
{
	static const struct terminal finds = { .reaction = INTERRUPT_GO_ON,
					       .stop_file = "{\"v\":1,\"reason\":\"enough\"}",
					       .recorded = EV_REQUEST_STOP,
					       .reason = "enough" };

	return act_before(run, &finds, err);
}

/* A stop that the journal does not take, and the user's second Ctrl-C. */
static int give_up(const char *run, struct err **err)
{
	static const struct terminal gives_up = { .signo = SIGINT,
						  .reaction = INTERRUPT_STOP,
						  .disk_is_full = true,
						  .recorded = EV_RUN_ENDED };
	int result = act_before(run, &gives_up, err);

	if (result >= 0 || !strstr((*err)->message, "the stop could not be recorded yet"))
		return was_struck || result < 0
			       ? result
			       : err_set(err, EXIT_REFUSED, "the user was not heard: %d", result);
	err_freep(err);
	return 0;
}

static int refuse_journal(enum call_id id, const char *path)
{
	return disk_is_full && id == CALL_pwrite && path && strstr(path, "journal.db") ? ENOSPC : 0;
}

struct seen_end {
	bool ended, recorded;
};

static int see_end(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct seen_end *seen = arg;

	(void)row, (void)err;
	if (!ev)
		return 0;
	seen->ended |= ev->kind == EV_RUN_ENDED;
	seen->recorded |= ev->kind == terminal->recorded &&
			  (!terminal->reason ||
			   (EVENT_HAS(ev, reason) && strcmp(ev->reason, terminal->reason) == 0));
	return 0;
}

static int check_end(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(auto_free) char *stop_file = mem_format("/srv/user/work/runs/%s/stop.json", run);
	struct seen_end seen = { 0 };

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, see_end, &seen, err) < 0)
		return -1;
	if (!seen.ended)
		return err_set(err, EXIT_REFUSED, "the run has not ended");
	if (!seen.recorded && !was_struck)
		return err_set(err, EXIT_REFUSED, "nobody was heard");
	if (!was_struck && access(stop_file, F_OK) == 0)
		return err_set(err, EXIT_REFUSED, "the request for a stop is left");
	return 0;
}

/* A file that could not be looked at for minutes is not in the plan: the run belongs to that plan
 * then. */
static int go_on(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *other = NULL;
	int result = drive(run, &other);

	if (result >= 0)
		return result;
	if (other->code == EXIT_SPEC)
		return resume(run, err);
	*err = TAKE(other);
	return -1;
}

/* ---- an id that is taken ---- */

static void keep_data(struct schedule *places)
{
	AUTO(auto_free) char *path = mem_format("/srv/user/state/runs/%s/kept.json", places->run);

	tree_put(places->hosts[0], path, "{}", 2, 0600);
}

static int begin_anew(const char *run, struct err **err)
{
	if (operator_begin(run, SPEC, err) == 0)
		return err_set(err, EXIT_DEFECT, "its kept data would be taken for the new run's");
	if ((*err)->code == EXIT_SPEC && strstr((*err)->message, "was removed"))
		err_freep(err);
	return *err ? -1 : 0;
}

static const struct strike_action actions[] = {
	{ .name = "messages left sqlite",
	  .scenario = "sqlite",
	  .before = leave_messages,
	  .act = resume_and_tell,
	  .again = resume,
	  .check = check_told },
	{ .name = "messages left bucket",
	  .scenario = "far",
	  .before = leave_messages,
	  .act = resume_and_tell,
	  .again = resume,
	  .check = check_told },
	{ .name = "messages sqlite",
	  .scenario = "sqlite",
	  .before = add_receivers,
	  .act = drive_and_tell,
	  .again = go_on,
	  .check = check_told,
	  .share = 20 },
	{ .name = "begin anew",
	  .scenario = "sqlite",
	  .before = keep_data,
	  .act = begin_anew,
	  .share = 5 },
#define TERMINAL(called, ...)                                                                      \
	{                                                                                          \
		.name = called, .scenario = "sqlite", .act = __VA_ARGS__, .again = go_on,          \
		.check = check_end                                                                 \
	}
	TERMINAL("asked", be_asked, .share = 20),
	TERMINAL("hung up", hang_up, .share = 20),
	TERMINAL("detached", detach, .share = 20),
	TERMINAL("told to stop", be_told, .share = 20),
	TERMINAL("stop found", find_stop, .share = 20),
	TERMINAL("stop unrecorded", give_up, .refused = refuse_journal, .share = 20),
#undef TERMINAL
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
