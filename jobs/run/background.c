/* Starting a driver that outlives this process: see background.h. */
#include "jobs/run/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aws/credentials/settings.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/process/program.h"
#include "jobs/base/text/text.h"

#define POLL_MS        20
#define POLL_REMOTE_MS 500               /* the same if each look is a request to a service */
#define WORDS_MAX      ((size_t)4 << 10) /* end of the log that is quoted */
#define EXIT_ERROR     128

struct background {
	struct journal *journal; /* borrowed */
	char *run, *log;
	const char *until; /* borrowed until the driver is started; NULL: none */
	off_t from;        /* offset of its own output in the log */
	struct loop *loop;
	pid_t pid;
	int64_t seq;    /* number of the newest event seen */
	bool took_over; /* the driver has taken the run over */
	bool over;      /* the process has ended */
	int status;     /* with which it has ended */
	struct err **err;
	int result;
};

static int see_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct background *start = arg;

	(void)err;
	start->seq = js_int(row, "seq", start->seq);
	if (ev && ev->kind == EV_DRIVER_TOOK_OVER && ev->pid == start->pid)
		start->took_over = true;
	return 0;
}

/* Asked for with each look, and not waited for: what tells of the end of a process can be refused,
 * and the driver may be at work for days. */
static bool is_over(struct background *start)
{
	pid_t ended = start->over ? 0 : waitpid(start->pid, &start->status, WNOHANG);

	start->over |= ended == start->pid || (ended < 0 && errno == ECHILD);
	return start->over;
}

static void poll_journal(void *arg)
{
	struct background *start = arg;
	bool over = is_over(start); /* before looking: all that it journalled is there */

	start->result = journal_read(start->journal, start->run, start->seq + 1, see_event, start,
				     start->err);
	if (start->result < 0 || start->took_over || over)
		loop_quit(start->loop);
	else
		loop_after(start->loop,
			   journal_is_remote(start->journal) ? POLL_REMOTE_MS : POLL_MS,
			   poll_journal, start);
}

/* Sets an error with the last output of the driver as the reason. Returns -1; 0 if it had nothing
 * to do. */
static int explain_exit(const struct background *start, struct err **err)
{
	AUTO(auto_close) int fd = open(start->log, O_RDONLY | O_CLOEXEC);
	AUTO(sb_release) struct sb words = SB_INIT;
	char text[WORDS_MAX];
	ssize_t len = fd < 0 ? 0 : pread(fd, text, sizeof text, start->from < 0 ? 0 : start->from);
	int code = WIFEXITED(start->status) ? WEXITSTATUS(start->status)
					    : EXIT_ERROR + WTERMSIG(start->status);

	if (code == 0)
		return 0;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text_escape(&words, text, len > 0 ? (size_t)len : 0, false);
	err_set(err, code > 0 && code < EXIT_ERROR ? (enum exit_code)code : EXIT_DEFECT,
		"the background driver of run %s ended at once: %s", start->run,
		words.len ? words.text : "no output");
	return err_hint(err, "'%s' has all of its output", start->log);
}

#define WORDS 12

/* Builds the command line; borrowed strings stay valid until the process has been started. */
static void build_argv(const struct background *start, char *argv[WORDS + 1])
{
	const char *profile = aws_profile_is_explicit() ? aws_profile() : NULL;
	const char *const words[] = { "stoker",
				      "--state",
				      journal_url(start->journal),
				      "--quiet",
				      profile ? "--profile" : NULL,
				      profile,
				      aws_region_option() ? "--region" : NULL,
				      aws_region_option(),
				      "resume",
				      start->until ? "--until" : NULL,
				      start->until,
				      start->run };
	size_t count = 0;

	for (size_t i = 0; i < STK_LENGTH(words); i++)
		if (words[i])
			argv[count++] = (char *)(uintptr_t)words[i];
	argv[count] = NULL;
}

static int spawn_driver(struct background *start, int out, struct err **err)
{
	AUTO(auto_free) char *program = program_path();
	char *argv[WORDS + 1];
	struct proc_start how = {
		.program = program, .argv = argv, .envp = environ, .in = -1, .out = out, .err = out
	};

	build_argv(start, argv);
	if (!program)
		return fs_error(err, errno, "cannot find this program");
	if (proc_spawn(&how, &start->pid, err) < 0)
		return err_wrap(err, "cannot start a driver in the background ('%s')", start->log);
	return 0;
}

int background_start(struct journal *journal, const char *run, const char *until,
		     struct background **ret, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", journal_dir(journal), run);
	AUTO(background_freep) struct background *start = mem_zero(1, sizeof *start);
	AUTO(auto_close) int out = -1;

	start->journal = journal;
	start->run = mem_copy(run);
	start->until = until;
	start->log = fs_join(folder, "driver.log");
	if (fs_mkdirs(folder, err) < 0 ||
	    damage_refuse_obstacle(folder, "driver.log", "output of drivers", err) < 0)
		return -1;
	/* Opening a pipe would wait for its other end. */
	out = open(start->log,
		   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		   0600);
	if (out < 0)
		return fs_error(err, errno, "cannot open '%s'", start->log);
	start->from = lseek(out, 0, SEEK_END);
	if (spawn_driver(start, out, err) < 0)
		return -1;
	*ret = TAKE(start);
	return 0;
}

int background_wait(struct background *start, pid_t *ret_pid, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;

	if (loop_new(&loop, err) < 0)
		return -1;
	start->loop = loop;
	start->err = err;
	loop_after(loop, 0, poll_journal, start);
	if (loop_run(loop, err) < 0 || start->result < 0)
		return -1;
	*ret_pid = start->took_over ? start->pid : 0;
	return start->took_over ? 0 : explain_exit(start, err);
}

void background_freep(struct background **background)
{
	if (*background) {
		free((*background)->run);
		free((*background)->log);
		free(*background);
	}
	*background = NULL;
}
