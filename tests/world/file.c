/* Descriptors, open file descriptions and pipes: see kernel.h, pipe(7). */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

CALL_WRAPS(read);
CALL_WRAPS(write);
CALL_WRAPS(close);
CALL_WRAPS(dup2);
CALL_WRAPS(fcntl);
CALL_WRAPS(close_range);
CALL_WRAPS(pipe2);

#define PIPE_BYTES ((size_t)65536)

/* ---- descriptions ---- */

static uint64_t files_made;

struct file *file_new(const struct file_ops *ops, int flags, void *data)
{
	struct file *file = calloc(1, sizeof *file);

	if (!file)
		world_broken("there is no memory left");
	file->ops = ops;
	file->refs = 1;
	file->flags = flags;
	file->data = data;
	file->number = ++files_made;
	return file;
}

void file_ref(struct file *file)
{
	file->refs++;
}

void file_unref(struct file *file)
{
	if (--file->refs > 0)
		return;
	epolls_forget(file);
	if (file->ops->release)
		file->ops->release(file);
	free(file);
	world_stir();
}

/* ---- descriptors ---- */

struct file *fd_file(int fd)
{
	return fd >= 0 && fd < PROCESS_FDS ? self->fds[fd].file : NULL;
}

/* Descriptors of the process end here: RLIMIT_NOFILE. */
static int fd_end(const struct process *process)
{
	rlim_t most = process->limits[RLIMIT_NOFILE].rlim_cur;

	return most < PROCESS_FDS ? (int)most : PROCESS_FDS;
}

int fd_install(struct file *file, int least, bool close_on_exec)
{
	for (int fd = least; fd < fd_end(self); fd++)
		if (!self->fds[fd].file) {
			self->fds[fd] = (struct descriptor){ file, close_on_exec };
			return fd;
		}
	file_unref(file);
	return -EMFILE;
}

int fd_close(struct process *process, int fd)
{
	struct file *file = fd >= 0 && fd < PROCESS_FDS ? process->fds[fd].file : NULL;

	if (!file)
		return -EBADF;
	tree_descriptor_closes(process, file);
	process->fds[fd] = (struct descriptor){ NULL, false };
	file_unref(file);
	return 0;
}

void fd_put(struct process *process, int fd, struct file *file, bool close_on_exec)
{
	file_ref(file);
	fd_close(process, fd);
	process->fds[fd] = (struct descriptor){ file, close_on_exec };
}

void fds_copy(struct process *to, const struct process *from)
{
	for (int fd = 0; fd < PROCESS_FDS; fd++)
		if (from->fds[fd].file)
			fd_put(to, fd, from->fds[fd].file, from->fds[fd].close_on_exec);
}

void fds_close(struct process *process)
{
	for (int fd = 0; fd < PROCESS_FDS; fd++)
		fd_close(process, fd);
}

int __wrap_close(int fd)
{
	struct call call = call_enter(CALL_close, NULL, fd);

	return (int)call_return(&call, fd_close(self, fd));
}

int __wrap_close_range(unsigned first, unsigned last, int flags)
{
	struct call call = call_enter(CALL_close_range, NULL, -1);

	if (first > last)
		return (int)call_return(&call, -EINVAL);
	for (unsigned fd = first; fd < PROCESS_FDS && fd <= last; fd++)
		if (flags & (1 << 2)) /* CLOSE_RANGE_CLOEXEC, from linux/close_range.h */
			self->fds[fd].close_on_exec = true;
		else
			fd_close(self, (int)fd);
	return (int)call_return(&call, 0);
}

int __wrap_dup2(int fd, int to)
{
	struct call call = call_enter(CALL_dup2, NULL, fd);
	struct file *file = fd_file(fd);

	if (!file || to < 0 || to >= fd_end(self))
		return (int)call_return(&call, -EBADF);
	if (fd != to)
		fd_put(self, to, file, false);
	return (int)call_return(&call, to);
}

/* ---- fcntl ---- */

static int fcntl_number(struct file *file, int fd, int cmd, int number)
{
	const int settable = O_APPEND | O_NONBLOCK;

	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		if (number < 0 || number >= fd_end(self))
			return -EINVAL;
		file_ref(file);
		return fd_install(file, number, cmd == F_DUPFD_CLOEXEC);
	case F_GETFD:
		return self->fds[fd].close_on_exec ? FD_CLOEXEC : 0;
	case F_SETFD:
		self->fds[fd].close_on_exec = number & FD_CLOEXEC;
		return 0;
	case F_GETFL:
		return file->flags;
	case F_SETFL:
		if (file->flags & O_PATH)
			return -EBADF;
		file->flags = (file->flags & ~settable) | (number & settable);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Linux refuses a lock that it has no memory for. The end of one needs none unless it cuts a lock
 * in two, which nobody does here. */
static int fcntl_lock(struct call *call, struct file *file, int cmd, struct flock *lock)
{
	if (call->error != ENOLCK || lock->l_type == F_UNLCK)
		call->error = 0;
	return call->error && !call->done ? -ENOLCK : tree_fcntl_lock(file, cmd, lock);
}

int __wrap_fcntl(int fd, int cmd, ...)
{
	struct call call = call_enter(CALL_fcntl, NULL, fd);
	struct file *file = fd_file(fd);
	va_list arguments;
	int result;

	if (!file)
		return (int)call_return(&call, -EBADF);
	va_start(arguments, cmd);
	switch (cmd) {
	case F_SETLK:
	case F_SETLKW:
	case F_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
	case F_OFD_GETLK:
		result = fcntl_lock(&call, file, cmd, va_arg(arguments, struct flock *));
		break;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		result = call.error == EMFILE ? -EMFILE
					      : fcntl_number(file, fd, cmd, va_arg(arguments, int));
		call.error = 0;
		break;
	default:
		call.error = 0; /* looks at memory only */
		result = fcntl_number(file, fd, cmd, va_arg(arguments, int));
	}
	va_end(arguments);
	return (int)call_return(&call, result);
}

/* ---- read and write ---- */

static bool is_readable(void *arg)
{
	struct file *file = arg;

	return file_events(file) & (POLLIN | POLLHUP | POLLERR);
}

static bool is_writable(void *arg)
{
	struct file *file = arg;

	return file_events(file) & (POLLOUT | POLLERR);
}

static size_t at_most(const struct call *call, size_t len)
{
	return call->share > 0 && call->share < len ? call->share : len;
}

ssize_t file_read(struct file *file, void *buffer, size_t len)
{
	ssize_t done;

	if ((file->flags & O_ACCMODE) == O_WRONLY || !file->ops->read)
		return -EBADF;
	file_ref(file); /* another may close it while this one waits */
	while ((done = file->ops->read(file, buffer, len)) == -EAGAIN &&
	       !(file->flags & O_NONBLOCK)) {
		int waited = world_wait(is_readable, file, WORLD_NEVER);

		if (waited < 0) {
			done = waited;
			break;
		}
	}
	file_unref(file);
	return done;
}

ssize_t __wrap_read(int fd, void *buffer, size_t len)
{
	struct call call = call_enter(CALL_read, NULL, fd);
	struct file *file = fd_file(fd);
	ssize_t done;

	if (call.error)
		return call_fail(&call);
	done = file ? file_read(file, buffer, at_most(&call, len)) : -EBADF;
	if (done > 0)
		call_move((size_t)done);
	return call_return(&call, done);
}

/* A blocking write of much goes on until all is written, or a signal comes. */
ssize_t file_write(struct file *file, const void *bytes, size_t len)
{
	ssize_t done = 0, part;
	int waited = 0;

	if ((file->flags & O_ACCMODE) == O_RDONLY || !file->ops->write)
		return -EBADF;
	file_ref(file);
	for (;;) {
		part = file->ops->write(file, (const char *)bytes + done, len - (size_t)done);
		if (part > 0)
			done += part;
		if ((part < 0 && part != -EAGAIN) || (size_t)done == len ||
		    file->flags & O_NONBLOCK)
			break;
		/* A regular file that is full takes a part and says why at the next call. */
		if (part >= 0 && !file->ops->ready)
			break;
		waited = world_wait(is_writable, file, WORLD_NEVER);
		if (waited < 0)
			break;
	}
	file_unref(file);
	if (part == -EPIPE)
		signal_send(self, SIGPIPE);
	process_leave();
	if (done > 0)
		return done;
	return waited < 0 ? waited : part;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	struct call call = call_enter(CALL_write, NULL, fd);
	struct file *file = fd_file(fd);

	if (call.error && !call.done)
		return call_fail(&call);
	len = at_most(&call, len);
	call_move(len);
	file = fd_file(fd);
	return call_return(&call, file ? file_write(file, bytes, len) : -EBADF);
}

/* A stream's errors are those of its descriptor; 0 is one here: fopencookie(3). */
static ssize_t write_stderr(void *cookie, const char *bytes, size_t len)
{
	ssize_t done;

	(void)cookie;
	if (!self) /* at the end of the test program itself, which flushes all streams */
		return 0;
	done = __wrap_write(STDERR_FILENO, bytes, len);
	return done < 0 ? 0 : done;
}

FILE *stderr_new(void)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_stderr });

	if (!stream)
		world_broken("there is no memory left");
	setvbuf(stream, NULL, _IONBF, 0);
	return stream;
}

/* ---- pipes ---- */

struct pipe {
	char bytes[PIPE_BYTES];
	size_t start, len;
	int readers, writers; /* descriptions */
};

static ssize_t pipe_read(struct file *file, void *buffer, size_t len)
{
	struct pipe *pipe = file->data;
	size_t done = len < pipe->len ? len : pipe->len, first = PIPE_BYTES - pipe->start;

	if (len == 0 || (pipe->len == 0 && pipe->writers == 0))
		return 0;
	if (pipe->len == 0)
		return -EAGAIN;
	first = first < done ? first : done;
	memcpy(buffer, pipe->bytes + pipe->start, first);
	memcpy((char *)buffer + first, pipe->bytes, done - first);
	pipe->start = (pipe->start + done) % PIPE_BYTES;
	pipe->len -= done;
	world_stir();
	return (ssize_t)done;
}

static ssize_t pipe_write(struct file *file, const void *bytes, size_t len)
{
	struct pipe *pipe = file->data;
	size_t room = PIPE_BYTES - pipe->len, to = (pipe->start + pipe->len) % PIPE_BYTES, first;

	if (len == 0)
		return 0;
	if (pipe->readers == 0)
		return -EPIPE;
	if (room == 0 || (len <= PIPE_BUF && room < len))
		return -EAGAIN;
	len = len < room ? len : room;
	first = PIPE_BYTES - to < len ? PIPE_BYTES - to : len;
	memcpy(pipe->bytes + to, bytes, first);
	memcpy(pipe->bytes, (const char *)bytes + first, len - first);
	pipe->len += len;
	world_stir();
	return (ssize_t)len;
}

static unsigned pipe_ready_to_read(struct file *file)
{
	const struct pipe *pipe = file->data;

	return (pipe->len > 0 ? POLLIN : 0) | (pipe->writers == 0 ? POLLHUP : 0);
}

/* As Linux has it: writable while a page is free, and also when nobody reads. */
static unsigned pipe_ready_to_write(struct file *file)
{
	const struct pipe *pipe = file->data;

	return (PIPE_BYTES - pipe->len >= PIPE_BUF ? POLLOUT : 0) |
	       (pipe->readers == 0 ? POLLERR : 0);
}

static void pipe_release_one(struct file *file, int *ends)
{
	struct pipe *pipe = file->data;

	(*ends)--;
	if (pipe->readers == 0 && pipe->writers == 0)
		free(pipe);
}

static void pipe_release_reader(struct file *file)
{
	pipe_release_one(file, &((struct pipe *)file->data)->readers);
}

static void pipe_release_writer(struct file *file)
{
	pipe_release_one(file, &((struct pipe *)file->data)->writers);
}

static int pipe_reopen(struct file *file, int flags, struct file **ret);

static const struct file_ops reader_ops = {
	.kind = "pipe",
	.reopen = pipe_reopen,
	.read = pipe_read,
	.ready = pipe_ready_to_read,
	.release = pipe_release_reader,
};

static const struct file_ops writer_ops = {
	.kind = "pipe",
	.reopen = pipe_reopen,
	.write = pipe_write,
	.ready = pipe_ready_to_write,
	.release = pipe_release_writer,
};

/* One more end, of either kind, with flags of its own: fifo(7). */
static int pipe_reopen(struct file *file, int flags, struct file **ret)
{
	struct pipe *pipe = file->data;
	int mode = flags & O_ACCMODE;

	flags &= O_ACCMODE | O_NONBLOCK;
	if (mode == O_RDWR)
		return -EACCES; /* nobody here opens one for both */
	/* Where it would wait for a reader, too: nobody could come. */
	if (mode == O_WRONLY && pipe->readers == 0)
		return -ENXIO;
	if (mode == O_RDONLY)
		pipe->readers++;
	else
		pipe->writers++;
	*ret = file_new(mode == O_RDONLY ? &reader_ops : &writer_ops, flags, pipe);
	return 0;
}

int pipe_new(int fds[2], int flags)
{
	struct pipe *pipe = calloc(1, sizeof *pipe);
	int nonblock = flags & O_NONBLOCK;

	if (!pipe)
		world_broken("there is no memory left");
	pipe->readers = pipe->writers = 1;
	/* Where there is no descriptor for one end, that end is released at once. */
	fds[0] = fd_install(file_new(&reader_ops, O_RDONLY | nonblock, pipe), 0, flags & O_CLOEXEC);
	if (fds[0] < 0) {
		free(pipe); /* the reader's release has left it */
		return -EMFILE;
	}
	fds[1] = fd_install(file_new(&writer_ops, O_WRONLY | nonblock, pipe), 0, flags & O_CLOEXEC);
	if (fds[1] >= 0)
		return 0;
	fd_close(self, fds[0]);
	return -EMFILE;
}

int __wrap_pipe2(int fds[2], int flags)
{
	struct call call = call_enter(CALL_pipe2, NULL, -1);
	int made[2], failed;

	if (call.error)
		return call_fail(&call);
	failed = pipe_new(made, flags);
	if (!failed)
		memcpy(fds, made, sizeof made);
	return (int)call_return(&call, failed);
}
