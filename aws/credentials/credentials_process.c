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
#include "aws/http/patience.h"
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
	struct run *run;
};

/* A run of the program. */
struct run {
	struct loop *loop;
	struct credentials_process_stream out, err;
	pid_t pid;
	bool ended, late;
	int64_t time_max; /* ms */
};

static void stream_release(struct credentials_process_stream *stream)
{
	auto_close(&stream->fd);
	if (stream->bytes)
		explicit_bzero(stream->bytes, OUTPUT_MAX);
	free(stream->bytes);
	stream->bytes = NULL;
}

static void run_release(struct run *run)
{
	loop_freep(&run->loop);
	stream_release(&run->out);
	stream_release(&run->err);
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
	loop_remove(stream->run->loop, TAKE(stream->watch));
	read_some(stream);
	if (stream->fd >= 0)
		stream->watch = loop_on_readable(stream->run->loop, before, on_output, stream);
}

static void on_end(void *arg)
{
	struct run *run = arg;

	run->ended = true;
	loop_quit(run->loop);
}

static void on_late(void *arg)
{
	struct run *run = arg;

	run->late = true;
	patience_spend(run->time_max);
	loop_quit(run->loop);
}

static int open_stream(struct run *run, struct credentials_process_stream *stream, int *ret_theirs,
		       struct err **err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*stream = (struct credentials_process_stream){ .fd = ends[0],
						       .bytes = mem_zero(1, OUTPUT_MAX),
						       .run = run };
	*ret_theirs = ends[1];
	return 0;
}

static int start(struct run *run, char **argv, struct err **err)
{
	AUTO(auto_free) char *program = proc_find_program(argv[0], NULL, getenv("PATH"));
	AUTO(auto_close) int out = -1, errors = -1;
	struct proc_start how = { .program = program, .argv = argv, .envp = environ, .in = -1 };

	if (!program) {
		err_set(err, EXIT_REFUSED, "program '%.200s' not found", argv[0]);
		return err_hint(
			err, "install the program, or correct credential_process in the profile");
	}
	if (loop_new(&run->loop, err) < 0 || open_stream(run, &run->out, &out, err) < 0 ||
	    open_stream(run, &run->err, &errors, err) < 0)
		return -1;
	how.out = out;
	how.err = errors;
	return proc_spawn(&how, &run->pid, err);
}

/* Waits until the program has ended or its time is over, and reaps it. Returns its exit status,
 * or -1 if another part of the process has reaped it. */
static int wait_for_end(struct run *run)
{
	struct proc_id id;
	int status = -1;

	run->out.watch = loop_on_readable(run->loop, run->out.fd, on_output, &run->out);
	run->err.watch = loop_on_readable(run->loop, run->err.fd, on_output, &run->err);
	loop_after(run->loop, run->time_max, on_late, run);
	if (loop_on_exit(run->loop, run->pid, on_end, run))
		loop_run(run->loop, NULL);
	if (run->late && proc_identify(run->pid, &id) == 0)
		proc_signal_group(&id, SIGKILL);
	if (waitpid(run->pid, &status, 0) != run->pid)
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

static int check_exit(const struct run *run, int status, struct err **err)
{
	AUTO(auto_free) char *words = NULL;

	if (run->late) {
		err_set(err, EXIT_REFUSED, "no output within %.3g s", (double)run->time_max / 1000);
		return err_hint(err, "run the command by hand; it must not ask for input");
	}
	/* The output decides if there is no exit status. */
	if (status == 0 || (status == -1 && run->out.len > 0)) {
		if (!run->out.full)
			return 0;
		err_set(err, EXIT_REFUSED, "output of more than %d KiB", (int)(OUTPUT_MAX >> 10));
		return err_hint(err, "let the command print one JSON object");
	}
	words = last_words(&run->err);
	if (WIFSIGNALED(status))
		err_set(err, EXIT_REFUSED, "killed by signal %d", WTERMSIG(status));
	else
		err_set(err, EXIT_REFUSED, "exit status %d%s%s", WEXITSTATUS(status),
			*words ? ": " : "", words);
	return err_hint(err, "run the command by hand");
}

static int read_output(struct run *run, struct credentials *ret, struct err **err)
{
	static const char what[] = "the output";
	json_auto_t *object = NULL;
	int64_t version;

	if (js_parse(run->out.bytes, run->out.len, what, &object, err) < 0)
		return err_hint(err,
				"let the command print one JSON object and nothing else on stdout");
	version = js_int(object, "Version", -1);
	if (version != 1) {
		err_set(err, EXIT_REFUSED, "the JSON has no \"Version\": 1");
		return err_hint(err,
				"let the credential_process print version 1, which stoker knows");
	}
	return credentials_from_json(what, run->out.bytes, run->out.len, "SessionToken", ret, err);
}

int credentials_provide_process(const struct provider_request *request, struct credentials *ret,
				struct err **err)
{
	const char *command = aws_config_value(request->profile, "credential_process");
	int64_t left = patience_left();
	AUTO(run_release)
	struct run run = { .out.fd = -1,
			   .err.fd = -1,
			   .time_max = left < TIME_MAX ? left : TIME_MAX };
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
			request->profile);
		return err_hint(err, "correct the profile in '%s'", aws_config_path());
	}
	if (start(&run, argv, err) == 0) {
		int status = wait_for_end(&run);

		/* The program may have written output while it ended. */
		if (run.out.fd >= 0)
			read_some(&run.out);
		if (run.err.fd >= 0)
			read_some(&run.err);
		if (check_exit(&run, status, err) == 0)
			outcome = read_output(&run, ret, err);
	}
	return outcome < 0 ? err_wrap(err, "the credential_process of the profile '%.80s'",
				      request->profile)
			   : outcome;
}
