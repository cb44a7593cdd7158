/* Reads a repository in a process of its own: see pin_aside.h. */
#include "jobs/source/pin_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/source/pin_wire.h"

/* Output of the child: ticks, then one RESULT and the encoded result. */
#define TICK_GIT  'g'
#define TICK_TREE 't'
#define RESULT    '='

#define RESULT_MAX ((size_t)1 << 30)
#define CHUNK      ((size_t)64 << 10)
#define REAP_TRIES 50 /* a killed child that hangs in the kernel is left to init */
#define REAP_MS    10

struct pin_ticker {
	int fd;
};

static void write_all(int fd, const char *bytes, size_t len)
{
	if (fs_write_full(fd, bytes, len))
		_exit(1);
}

static void write_tick(const struct pin_ticker *ticker, char what)
{
	if (ticker)
		write_all(ticker->fd, &what, 1);
}

void pin_tick(const struct pin_ticker *ticker)
{
	write_tick(ticker, TICK_GIT);
}

void pin_tick_tree(const struct pin_ticker *ticker)
{
	write_tick(ticker, TICK_TREE);
}

static _Noreturn void be_child(pin_fn fn, const struct source_request *request, pid_t parent,
			       int fd)
{
	struct pin_ticker ticker = { fd };
	struct source_pin *pin = NULL;
	struct err *err = NULL;
	struct sb out = SB_INIT_MAX(RESULT_MAX);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sb_addc(&out, RESULT);
	if (fn(request, &ticker, &pin, &err) < 0)
		pin_encode_error(err, &out);
	else
		pin_encode(pin, &out);
	write_all(fd, out.text, out.len);
	_exit(0);
}

/* State of the parent: the messages heard so far. */
struct child_output {
	struct mono heard_at;
	bool in_tree, has_result;
	struct sb result;
};

static void read_messages(struct child_output *l, const char *bytes, size_t len)
{
	l->heard_at = clock_mono_now();
	for (size_t i = 0; i < len; i++) {
		if (l->has_result) {
			sb_add(&l->result, bytes + i, len - i);
			return;
		}
		l->in_tree = bytes[i] == TICK_TREE;
		l->has_result = bytes[i] == RESULT;
	}
}

/* Returns 0 if the child has closed its end, 1 if it was silent for too long, -1 on failure. */
static int read_child(int fd, struct child_output *l)
{
	char *chunk = mem_alloc(CHUNK);
	int result = -1;

	l->heard_at = clock_mono_now();
	while (result < 0) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = l->heard_at.ms + PIN_SILENCE_MS - clock_mono_now().ms;
		bool timed = !l->in_tree && !l->has_result;
		int ready = poll(&wait, 1, !timed ? -1 : left > 0 ? (int)left : 0);
		ssize_t n;

		if (ready == 0) {
			result = 1;
		} else if (ready > 0) {
			n = read(fd, chunk, CHUNK);
			if (n == 0)
				result = 0;
			else if (n > 0)
				read_messages(l, chunk, (size_t)n);
			else if (errno != EINTR)
				break;
		} else if (errno != EINTR) {
			break;
		}
	}
	free(chunk);
	return result;
}

static void reap_child(pid_t child)
{
	for (int i = 0; i < REAP_TRIES && waitpid(child, NULL, WNOHANG) == 0; i++)
		cancel_pause_briefly(REAP_MS);
}

static int fail_silent(const struct source_request *request, struct err **err)
{
	err_set(err, EXIT_REFUSED,
		"git's files of the source '%s' do not answer: nothing could be read of them for "
		"%d seconds",
		request->root, PIN_SILENCE_MS / 1000);
	err_hint(err,
		 "look for a FIFO, a damaged object or a dead mount beneath its .git: "
		 "'git -C %s fsck' may name it",
		 request->root);
	return err_field(err, "source.path");
}

int pin_aside(pin_fn fn, const struct source_request *request, struct source_pin **ret,
	      struct err **err)
{
	struct child_output l = { .result = SB_INIT_MAX(RESULT_MAX) };
	pid_t parent = getpid(), child;
	int ends[2], outcome;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	child = fork();
	if (child == 0) {
		close(ends[0]);
		be_child(fn, request, parent, ends[1]);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return err_system(err, EXIT_REFUSED, errno, "cannot start a process");
	}
	outcome = read_child(ends[0], &l);
	close(ends[0]);
	kill(child, SIGKILL);
	reap_child(child);
	if (outcome == 1)
		fail_silent(request, err);
	else if (outcome < 0 || !l.has_result)
		err_set(err, EXIT_REFUSED, "the process that reads the source '%s' died",
			request->root);
	else
		outcome = pin_decode(l.result.text, l.result.len, ret, err);
	sb_release(&l.result);
	return outcome == 0 && *ret ? 0 : -1;
}
