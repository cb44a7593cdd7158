/* Runs the command of a task: see task_command.h. */
#include "jobs/node/tasks/task_command.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/process/turn.h"
#include "jobs/node/subreaper.h"
#include "jobs/series/metric_reader.h"

#define READ_SIZE ((size_t)64 << 10)
/* A longer line is no reading, and is not kept. */
#define LINE_MAX_BYTES ((size_t)64 << 10)
/* Limits per turn of the loop, and for what is left in the pipe when nothing holds it any more. */
#define TURN_BYTES   ((size_t)1 << 20)
#define TURN_CPU_MS  100
#define TURN_WALL_MS 1000
#define DRAIN_BYTES  ((size_t)4 << 20)
#define DRAIN_MS     10000
/* Time for processes that outlive the command, and between two kills of them. */
#define LEFTOVERS_MS  1000
#define KILL_EVERY_MS 50

struct task_command {
	struct loop *loop;
	struct watch *pipe_watch, *timer;
	pid_t pid;
	int pipe_fd;
	bool over, stopping, killing;
	int status;
	/* readings */
	struct metric_reader *reader;       /* NULL: no metrics */
	struct metric_reading *room, *last; /* of each metric; step INT64_MIN: none yet */
	int64_t step;
	struct sb line;
	bool line_is_lost;
};

/* ---- readings ---- */

static void forget_readings(struct task_command *c)
{
	for (size_t i = 0; c->reader && i < metric_reader_count(c->reader); i++)
		c->last[i].step = INT64_MIN;
	c->step = -1;
	c->line.len = 0;
	c->line_is_lost = false;
}

static void end_line(struct task_command *c)
{
	size_t count = 0;

	if (!c->line_is_lost && c->line.len > 0)
		count = metric_reader_line(c->reader, &c->step, c->line.text, c->line.len, c->room);
	for (size_t i = 0; i < count; i++)
		c->last[c->room[i].metric] = c->room[i];
	c->line.len = 0;
	c->line_is_lost = false;
}

/* A bar that is drawn with carriage returns has a reading with each of them. */
static void read_lines(struct task_command *c, const char *bytes, size_t len)
{
	while (c->reader && len > 0) {
		size_t part = 0;

		while (part < len && bytes[part] != '\n' && bytes[part] != '\r')
			part++;
		if (c->line.len + part > LINE_MAX_BYTES)
			c->line_is_lost = true;
		else
			sb_add(&c->line, bytes, part);
		if (part == len)
			return;
		end_line(c);
		bytes += part + 1;
		len -= part + 1;
	}
}

json_t *task_command_readings(const struct task_command *c, json_t **ret_invalid)
{
	json_t *values = json_object(), *invalid = json_object();

	for (size_t i = 0; c->reader && i < metric_reader_count(c->reader); i++) {
		const char *name = metric_reader_name(c->reader, i);
		double value = c->last[i].value;

		if (c->last[i].step == INT64_MIN)
			continue;
		if (isfinite(value))
			js_put(values, name, json_real(value));
		else
			js_put_str(invalid, name,
				   isnan(value) ? "nan"
				   : value > 0  ? "inf"
						: "-inf");
	}
	*ret_invalid = invalid;
	return values;
}

/* ---- output of the command ---- */

static void close_pipe(struct task_command *c)
{
	loop_remove(c->loop, c->pipe_watch);
	c->pipe_watch = NULL;
	auto_close(&c->pipe_fd);
	c->pipe_fd = -1;
	if (c->reader)
		end_line(c);
}

/* Reads what is there. Returns false once the pipe has ended. */
static bool read_pipe(struct task_command *c, struct turn turn)
{
	char buffer[READ_SIZE];

	while (!turn.over) {
		ssize_t len = read(c->pipe_fd, buffer, sizeof buffer);

		if (len > 0) {
			/* The reader of the output may be gone; the command goes on, as it would
			 * without the runner. */
			(void)!fs_write_full(STDOUT_FILENO, buffer, (size_t)len);
			read_lines(c, buffer, (size_t)len);
			turn_spend(&turn, (size_t)len);
		} else if (len == 0) {
			return false;
		} else if (errno != EINTR) {
			return err_errno_passes(errno);
		}
	}
	return true;
}

static void on_output(void *arg)
{
	struct task_command *c = arg;

	if (!read_pipe(c, turn_begin(TURN_BYTES, TURN_CPU_MS, TURN_WALL_MS)))
		close_pipe(c);
}

/* ---- end of the command ---- */

static void on_kill(void *arg)
{
	struct task_command *c = arg;

	subreaper_signal(SIGKILL, NULL, 0);
	c->timer = loop_after(c->loop, KILL_EVERY_MS, on_kill, c);
}

/* The command is over, and has left processes behind. */
static void end_leftovers(struct task_command *c)
{
	if (c->killing)
		return;
	c->killing = true;
	subreaper_signal(SIGTERM, NULL, 0);
	subreaper_signal(SIGCONT, NULL, 0);
	c->timer = loop_after(c->loop, LEFTOVERS_MS, on_kill, c);
}

static void on_child(void *arg)
{
	struct task_command *c = arg;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == c->pid) {
			c->over = true;
			c->status = status;
		}
	if (!c->over)
		return;
	if (pid == 0) { /* children are there, and live */
		end_leftovers(c);
		return;
	}
	if (c->pipe_fd >= 0) {
		read_pipe(c, turn_begin(DRAIN_BYTES, DRAIN_MS, DRAIN_MS));
		close_pipe(c);
	}
	loop_quit(c->loop);
}

static void on_stop(void *arg)
{
	struct task_command *c = arg;

	c->stopping = true;
	if (c->pid > 0 && !c->over) {
		kill(-c->pid, SIGTERM);
		kill(-c->pid, SIGCONT);
	}
}

/* ---- one run of the command ---- */

bool task_command_stopping(const struct task_command *c)
{
	return c->stopping || loop_stop_pending();
}

static int spawn(struct task_command *c, struct proc_start *start, struct err **err)
{
	int fds[2];
	int done;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	start->in = -1;
	start->out = start->err = fds[1];
	done = proc_spawn(start, &c->pid, err);
	close(fds[1]);
	if (done < 0) {
		close(fds[0]);
		c->pid = 0;
		return -1;
	}
	/* Only our end never blocks: the command must not meet EAGAIN on its stdout. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	c->pipe_fd = fds[0];
	c->pipe_watch = loop_on_readable(c->loop, c->pipe_fd, on_output, c);
	return 0;
}

int task_command_run(struct task_command *c, const char *program, char *const *argv,
		     char *const *envp, const char *cwd, int *ret_status, struct err **err)
{
	struct proc_start start = { .program = program, .argv = argv, .envp = envp, .cwd = cwd };
	int done;

	c->over = c->killing = false;
	forget_readings(c);
	if (spawn(c, &start, err) < 0)
		return -1;
	if (c->stopping) /* the signal came before the command */
		on_stop(c);
	loop_after(c->loop, 0, on_child,
		   c); /* the child may have ended before its signal was asked for */
	done = loop_run(c->loop, err);
	loop_remove(c->loop, c->timer);
	c->timer = NULL;
	c->pid = 0;
	*ret_status = c->status;
	return done;
}

/* ---- life ---- */

int task_command_new(const json_t *metrics, struct task_command **ret, struct err **err)
{
	AUTO(task_command_freep) struct task_command *c = mem_zero(1, sizeof *c);
	static const int stops[] = { SIGTERM, SIGINT, SIGHUP };
	size_t count;

	c->pipe_fd = -1;
	c->line = SB_INIT_MAX(LINE_MAX_BYTES + 1);
	if (loop_new(&c->loop, err) < 0)
		return -1;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot become a subreaper");
	for (size_t i = 0; i < STK_LENGTH(stops); i++)
		loop_on_signal(c->loop, stops[i], on_stop, c);
	loop_on_signal(c->loop, SIGCHLD, on_child, c);
	if (json_array_size(metrics) > 0) {
		if (metric_reader_new(metrics, &c->reader, err) < 0)
			return -1;
		count = metric_reader_count(c->reader);
		c->room = mem_zero(count, sizeof *c->room);
		c->last = mem_zero(count, sizeof *c->last);
	}
	*ret = TAKE(c);
	return 0;
}

void task_command_freep(struct task_command **command)
{
	struct task_command *c = *command;

	if (!c)
		return;
	auto_close(&c->pipe_fd);
	loop_freep(&c->loop);
	metric_reader_freep(&c->reader);
	sb_release(&c->line);
	free(c->room);
	free(c->last);
	free(c);
	*command = NULL;
}
