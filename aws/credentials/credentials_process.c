/*
 * Keys that a program prints (credential_process of a profile): the command is split like a
 * shell's, without a shell. The program gets our environment, no input, one minute and 64 KiB of
 * output; errors show nothing of its stdout, and only the last line of its stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/shell_words.h"
#include "jobs/base/text/text.h"

#define TIME_MAX   ((int64_t)60 * 1000)
#define OUTPUT_MAX ((size_t)64 << 10)

extern char **environ;

/* The program's stdout or stderr. */
struct credentials_process_stream {
	int fd; /* our end; -1: it has ended */
	char *bytes;
	size_t len;
	bool full;
	struct watch *watch;
	struct talk *talk;
};

/* A run of the program. */
struct talk {
	struct loop *loop;
	struct credentials_process_stream out, err;
	pid_t pid;
	bool ended, late;
};

static void stream_release(struct credentials_process_stream *stream)
{
	auto_close(&stream->fd);
	if (stream->bytes)
		explicit_bzero(stream->bytes, OUTPUT_MAX);
	free(stream->bytes);
	stream->bytes = NULL;
}

static void talk_release(struct talk *talk)
{
	loop_freep(&talk->loop);
	stream_release(&talk->out);
	stream_release(&talk->err);
}

/* Reads the available output; bytes beyond the limit are discarded. */
static void read_some(struct credentials_process_stream *stream)
{
	char spare[4096] = { 0 };

	for (;;) {
		size_t room = OUTPUT_MAX - stream->len;
		ssize_t got = read(stream->fd, room ? stream->bytes + stream->len : spare,
				   room ? room : sizeof spare);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (got == 0 || errno != EAGAIN)
				auto_close(&stream->fd);
			return;
		}
		stream->full = stream->full || room == 0;
		stream->len += room ? (size_t)got : 0;
		if (room == 0)
			return; /* lets other events have a turn */
	}
}

static void on_output(void *arg)
{
	struct credentials_process_stream *stream = arg;
	int before = stream->fd;

	/* The watch must go before the descriptor is closed. */
	loop_remove(stream->talk->loop, TAKE(stream->watch));
	read_some(stream);
	if (stream->fd >= 0)
		stream->watch = loop_on_readable(stream->talk->loop, before, on_output, stream);
}

static void on_end(void *arg)
{
	struct talk *talk = arg;

	talk->ended = true;
	loop_quit(talk->loop);
}

static void on_late(void *arg)
{
	struct talk *talk = arg;

	talk->late = true;
	loop_quit(talk->loop);
}

static int open_stream(struct talk *talk, struct credentials_process_stream *stream,
		       int *ret_theirs, struct err **err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*stream = (struct credentials_process_stream){ .fd = ends[0],
						       .bytes = mem_zero(1, OUTPUT_MAX),
						       .talk = talk };
	*ret_theirs = ends[1];
	return 0;
}

static int start(struct talk *talk, char **argv, struct err **err)
{
	AUTO(auto_free) char *program = proc_find_program(argv[0], NULL, getenv("PATH"));
	AUTO(auto_close) int out = -1, errors = -1;
	struct proc_start how = { .program = program, .argv = argv, .envp = environ, .in = -1 };

	if (!program) {
		err_set(err, EXIT_REFUSED, "program '%.200s' not found", argv[0]);
		return err_hint(
			err, "install the program, or correct credential_process in the profile");
	}
	if (loop_new(&talk->loop, err) < 0 || open_stream(talk, &talk->out, &out, err) < 0 ||
	    open_stream(talk, &talk->err, &errors, err) < 0)
		return -1;
	how.out = out;
	how.err = errors;
	return proc_spawn(&how, &talk->pid, err);
}

/* Waits until the program has ended or its time is over, and reaps it. Returns its exit status,
 * or -1 if another part of the process has reaped it. */
static int converse(struct talk *talk)
{
	struct proc_id id;
	int status = -1;

	talk->out.watch = loop_on_readable(talk->loop, talk->out.fd, on_output, &talk->out);
	talk->err.watch = loop_on_readable(talk->loop, talk->err.fd, on_output, &talk->err);
	loop_after(talk->loop, TIME_MAX, on_late, talk);
	if (loop_on_exit(talk->loop, talk->pid, on_end, talk))
		loop_run(talk->loop, NULL);
	if (talk->late && proc_identify(talk->pid, &id) == 0)
		proc_signal_group(&id, SIGKILL);
	if (waitpid(talk->pid, &status, 0) != talk->pid)
		return -1;
	return status;
}

/* Returns the last line of the output, escaped for display. */
static char *last_words(const struct credentials_process_stream *stream)
{
	struct sb shown = SB_INIT_MAX(512);
	size_t len = stream->len, from;

	while (len > 0 && (stream->bytes[len - 1] == '\n' || stream->bytes[len - 1] == '\r'))
		len--;
	for (from = len; from > 0 && stream->bytes[from - 1] != '\n';)
		from--;
	if (len - from > 300)
		len = from + 300;
	text_escape(&shown, stream->bytes + from, len - from, false);
	return sb_take(&shown);
}

static int judge(const struct talk *talk, int status, struct err **err)
{
	AUTO(auto_free) char *words = NULL;

	if (talk->late) {
		err_set(err, EXIT_REFUSED, "no output within %d s", (int)(TIME_MAX / 1000));
		return err_hint(err, "run the command by hand; it must not ask for input");
	}
	/* Without an exit status the output decides. */
	if (status == 0 || (status == -1 && talk->out.len > 0)) {
		if (!talk->out.full)
			return 0;
		err_set(err, EXIT_REFUSED, "output of more than %d KiB", (int)(OUTPUT_MAX >> 10));
		return err_hint(err, "let the command print one JSON object");
	}
	words = last_words(&talk->err);
	if (WIFSIGNALED(status))
		err_set(err, EXIT_REFUSED, "killed by signal %d", WTERMSIG(status));
	else
		err_set(err, EXIT_REFUSED, "exit status %d%s%s", WEXITSTATUS(status),
			*words ? ": " : "", words);
	return err_hint(err, "run the command by hand");
}

static int take(struct talk *talk, struct credentials *ret, struct err **err)
{
	static const char what[] = "the output";
	json_auto_t *object = NULL;
	int64_t version;

	if (js_parse(talk->out.bytes, talk->out.len, what, &object, err) < 0)
		return err_hint(err,
				"let the command print one JSON object and nothing else on stdout");
	version = js_int(object, "Version", -1);
	if (version != 1) {
		err_set(err, EXIT_REFUSED, "the JSON has no \"Version\": 1");
		return err_hint(err,
				"let the credential_process print version 1, which stoker knows");
	}
	return credentials_take_json(what, talk->out.bytes, talk->out.len, "SessionToken", ret,
				     err);
}

int credentials_provide_process(const struct ask *ask, struct credentials *ret, struct err **err)
{
	const char *command = aws_config_value(ask->profile, "credential_process");
	AUTO(talk_release) struct talk talk = { .out.fd = -1, .err.fd = -1 };
	AUTO(auto_strv) char **argv = NULL;
	size_t count = 0;
	int outcome = -1;

	if (!command)
		return 0;
	argv = shell_words(command, &count);
	if (!argv || count == 0) {
		err_set(err, EXIT_REFUSED,
			"the credential_process of the profile '%.80s' has a quote that is not "
			"closed",
			ask->profile);
		return err_hint(err, "correct the profile in '%s'", aws_config_path());
	}
	if (start(&talk, argv, err) == 0) {
		int status = converse(&talk);

		/* The program may have written output while it ended. */
		if (talk.out.fd >= 0)
			read_some(&talk.out);
		if (talk.err.fd >= 0)
			read_some(&talk.err);
		if (judge(&talk, status, err) == 0)
			outcome = take(&talk, ret, err);
	}
	return outcome < 0 ? err_wrap(err, "the credential_process of the profile '%.80s'",
				      ask->profile)
			   : outcome;
}
