/* Notifications: what they say, what a command is given, and what becomes of one whose end nobody
 * could learn of. */
#include "notify_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct event outcome; /* of a message */
static char why[256];

static void note_outcome(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)row;
	if (ev->kind != EV_NOTIFY_SENT && ev->kind != EV_NOTIFY_FAILED)
		return;
	outcome = *ev;
	snprintf(why, sizeof why, "%s", EVENT_HAS(ev, reason) ? ev->reason : "");
	loop_quit(driver.loop);
}

/* A run that has begun, by a plan whose command is this script. */
static void begin(const char *script)
{
	json_t *rules = json_array();

	json_array_append_new(rules, rule_of(script));
	memset(&outcome, 0, sizeof outcome);
	begin_run("sqlite", rules, note_outcome);
	assert_true(notify_queue_pending(&driver));
}

static void a_command_runs_beside_the_spec_with_the_event_on_its_input(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = NULL;
	json_auto_t *message = NULL;
	json_auto_t *about = NULL;

	(void)state;
	begin("cat >message; echo \"[\\\"$STOKER_RUN\\\",\\\"$STOKER_OCCASION\\\"]\" >about");
	notify_pump(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(outcome.kind, EV_NOTIFY_SENT);
	assert_int_equal(outcome.about, 1);
	assert_false(notify_queue_pending(&driver));
	path = mem_format("%s/message", dir);
	assert_int_equal(js_load(path, 4096, &message, &err), 0);
	assert_string_equal(js_str(message, "id"), "r1-1-0");
	assert_string_equal(js_str(message, "occasion"), "started");
	assert_string_equal(js_str(message, "text"), "run r1 of n has started");
	assert_null(json_object_get(message, "plan"));
	free(path);
	path = mem_format("%s/about", dir);
	assert_int_equal(js_load(path, 4096, &about, &err), 0);
	assert_string_equal(json_string_value(json_array_get(about, 0)), "r1");
	assert_string_equal(json_string_value(json_array_get(about, 1)), "started");
	end();
}

/* Makes this process unable to watch ends of processes from now on. */
static void refuse_pidfds(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = STK_LENGTH(filter), .filter = filter };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* True if the message's process is gone, and it is due again. */
static bool is_due_again(void)
{
	const struct notify_message *message = driver.notify->first;

	return message && message->tries == 1 && message->sender == 0 && !message->end &&
	       message->words_fd < 0 && driver.notify->under_way == 0 &&
	       waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static bool send_unwatched(void)
{
	AUTO(err_freep) struct err *err = NULL;
	bool again;

	begin("sleep 3600");
	refuse_pidfds();
	notify_pump(&driver);
	loop_after(driver.loop, 0, quit, driver.loop);
	again = loop_run(driver.loop, &err) == 0 && is_due_again();
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	driver.notify->first->due.ms = 0;
	notify_pump(&driver);
	again = again && loop_run(driver.loop, &err) == 0 && outcome.kind == EV_NOTIFY_FAILED &&
		strcmp(why, "started: its process cannot be watched: Too many open files") == 0;
	end();
	return again;
}

static void a_command_whose_end_cannot_be_watched_is_ended_and_run_again(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(send_unwatched() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- words of messages ---- */

static void says(struct event *ev, const char *occasion, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	const struct notify_message *message;
	json_auto_t *body = NULL;

	driver.facts.passed_count = 2;
	ev->seq = 9;
	notify_release(&driver);
	notify_queue_apply(&driver, ev);
	message = driver.notify ? driver.notify->first : NULL;
	assert_non_null(message);
	assert_int_equal(js_parse(message->body, strlen(message->body), "message", &body, &err), 0);
	assert_string_equal(js_str(body, "occasion"), occasion);
	assert_string_equal(js_str(body, "text"), text);
	assert_string_equal(js_str(body, "id"), "r1-9-0");
}

static void ends(enum outcome outcome_of, const char *occasion, const char *text)
{
	struct event ev = { .kind = EV_RUN_ENDED, .state = outcome_of };

	EVENT_SET_STR(&ev, reason, "no space on '/ckpt'");
	EVENT_SET_STR(&ev, hint, "free some");
	says(&ev, occasion, text);
}

static void each_occasion_is_a_sentence(void **state)
{
	struct event risk = { .kind = EV_RUN_AT_RISK };
	struct event rejected = { .kind = EV_CHECKPOINT_REJECTED };
	struct event sent = { .kind = EV_NOTIFY_SENT };

	(void)state;
	begin("exit 0");
	json_decref(driver.plan);
	driver.plan =
		json_pack("{s:s, s:[{s:[s,s,s,s,s], s:[s]}]}", "name", "n", "notify", "when",
			  "succeeded", "failed", "stopped", "gate", "at_risk", "command", "x");
	ends(OUTCOME_SUCCEEDED, "succeeded",
	     "run r1 of n has succeeded: no space on '/ckpt'; free some");
	ends(OUTCOME_FAILED, "failed", "run r1 of n has failed: no space on '/ckpt'; free some");
	ends(OUTCOME_STOPPED, "stopped", "run r1 of n was stopped: no space on '/ckpt'; free some");
	ends(OUTCOME_REFUSED, "gate",
	     "run r1 of n failed at a gate: no space on '/ckpt'; free some");
	EVENT_SET(&risk, limit, LIMIT_DEADLINE);
	EVENT_SET_STR(&risk, reason, "soon over");
	says(&risk, "at_risk", "run r1 of n is at risk: limits.deadline: soon over");
	says(&rejected, "at_risk",
	     "run r1 of n is at risk: its checkpoints are passed over for the second time");
	/* Once may be an accident, and more than twice is known. */
	for (int64_t count = 1; count <= 3; count += 2) {
		notify_release(&driver);
		driver.facts.passed_count = count;
		notify_queue_apply(&driver, &rejected);
		assert_false(notify_queue_pending(&driver));
	}
	/* A message that another driver has sent is not sent again; the rest is. */
	says(&risk, "at_risk", "run r1 of n is at risk: limits.deadline: soon over");
	EVENT_SET(&sent, about, 8);
	EVENT_SET(&sent, rule, 0);
	notify_queue_apply(&driver, &sent);
	assert_true(notify_queue_pending(&driver));
	EVENT_SET(&sent, about, 9);
	notify_queue_apply(&driver, &sent);
	assert_false(notify_queue_pending(&driver));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_runs_beside_the_spec_with_the_event_on_its_input),
		cmocka_unit_test(each_occasion_is_a_sentence),
		cmocka_unit_test(a_command_whose_end_cannot_be_watched_is_ended_and_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
