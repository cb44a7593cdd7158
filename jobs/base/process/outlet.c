/* Output to a reader that may be slow: see outlet.h. */
#include "jobs/base/process/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"

#define NOTE_MAX     256
#define STOP_POLL_MS 100 /* interval of the checks for a stop signal */
#define DROP_PARTS   16  /* a drop frees at least room / DROP_PARTS, so that it is rare */

bool outlet_unblock(int fd)
{
	char path[64];
	struct stat st;
	int own, flags;

	if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode))
		return false;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0) {
		dup2(own, fd);
		close(own);
		return true;
	}
	/* A socket, or a pipe of another user. */
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void outlet_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

void outlet_init(struct outlet *outlet, int fd, const struct outlet_rules *rules, struct loop *loop)
{
	*outlet = (struct outlet){
		.fd = fd, .rules = *rules, .loop = loop, .note = SB_INIT_MAX(NOTE_MAX)
	};
}

static void unwatch(struct outlet *outlet)
{
	if (outlet->loop)
		loop_remove(outlet->loop, outlet->watch);
	outlet->watch = NULL;
}

void outlet_release(struct outlet *outlet)
{
	unwatch(outlet);
	if (outlet->note.text)
		sb_release(&outlet->note);
	free(TAKE(outlet->ring));
	outlet->len = 0;
}

static void wait_for_reader(const struct outlet *outlet, int wait_ms)
{
	struct pollfd reader = { .fd = outlet->fd, .events = POLLOUT };

	(void)!poll(&reader, 1, wait_ms);
}

/* Waits for the reader; with `until_stop`, a stop signal ends the wait and fails the outlet. */
static void wait_for_reader_or_stop(struct outlet *outlet)
{
	if (!outlet->rules.until_stop)
		wait_for_reader(outlet, -1);
	else if (loop_stop_pending())
		outlet->failed = ECANCELED;
	else
		wait_for_reader(outlet, STOP_POLL_MS);
}

/* Writes as much as the reader takes now, or all of it if the rules say to wait. Returns the number
 * of bytes written. */
static size_t write_some(struct outlet *outlet, const char *bytes, size_t len)
{
	size_t at = 0;
	int failures = 0;

	while (at < len && !outlet->failed) {
		ssize_t done = write(outlet->fd, bytes + at, len - at);

		if (done >= 0) {
			at += (size_t)done;
			failures = 0;
		} else if (errno == EAGAIN && outlet->rules.room > 0) {
			break;
		} else if (errno == EAGAIN) {
			wait_for_reader_or_stop(outlet);
		} else if (!err_try_again(&failures)) {
			outlet->failed = errno;
		}
	}
	if (at > 0)
		outlet->mid_line = bytes[at - 1] != '\n';
	return at;
}

/* ---- waiting output ------------------------------------------------------------------- */

static void forget(struct outlet *outlet, size_t len)
{
	outlet->start = (outlet->start + len) % outlet->rules.room;
	outlet->len -= len;
}

static void leave_out(struct outlet *outlet, size_t len)
{
	outlet->dropped += len;
	outlet->unreported += outlet->rules.by ? len : 0;
}

/* Drops the oldest bytes, up to the end of a line if there is one. */
static void drop(struct outlet *outlet, size_t len)
{
	size_t least = outlet->rules.room / DROP_PARTS;

	len = len < least ? least : len;
	len = len < outlet->len ? len : outlet->len;
	for (size_t i = len; i > 0 && i < outlet->len; i++)
		if (outlet->ring[(outlet->start + i - 1) % outlet->rules.room] == '\n') {
			len = i;
			break;
		}
	forget(outlet, len);
	leave_out(outlet, len);
}

static void keep(struct outlet *outlet, const char *bytes, size_t len)
{
	size_t room = outlet->rules.room;

	if (!outlet->ring)
		outlet->ring = mem_alloc(room);
	if (!outlet->rules.by && len > room - outlet->len) {
		leave_out(outlet, len);
		return;
	}
	if (len > room) { /* only the end of the new bytes fits */
		drop(outlet, outlet->len);
		leave_out(outlet, len - room);
		bytes += len - room;
		len = room;
	}
	if (len > room - outlet->len)
		drop(outlet, len - (room - outlet->len));
	while (len > 0) {
		size_t to = (outlet->start + outlet->len) % room;
		size_t part = len < room - to ? len : room - to;

		memcpy(outlet->ring + to, bytes, part);
		outlet->len += part;
		bytes += part;
		len -= part;
	}
}

bool outlet_waits(const struct outlet *outlet)
{
	return outlet->note.len > 0 || outlet->unreported > 0 || outlet->len > 0;
}

static bool write_note(struct outlet *outlet)
{
	size_t done;

	/* A note that is not begun yet can still count all dropped bytes. */
	if (outlet->unreported > 0 && !outlet->note_begun) {
		sb_clear(&outlet->note);
		outlet->noted += outlet->unreported;
		outlet->unreported = 0;
		sb_addf(&outlet->note,
			"%s%s: %llu bytes of output were dropped here: no reader took them in "
			"time; %s\n",
			outlet->mid_line ? "\n" : "", outlet->rules.by,
			(unsigned long long)outlet->noted, outlet->rules.has);
	}
	done = write_some(outlet, outlet->note.text, outlet->note.len);
	sb_drop(&outlet->note, done);
	outlet->note_begun = outlet->note.len > 0 && (outlet->note_begun || done > 0);
	if (outlet->note.len == 0)
		outlet->noted = 0;
	return outlet->note.len == 0 && outlet->unreported == 0;
}

/* Writes the waiting output, as much as the reader takes now. */
static void write_waiting(struct outlet *outlet)
{
	while (outlet_waits(outlet) && !outlet->failed) {
		size_t part = outlet->rules.room - outlet->start;
		size_t done;

		if (!write_note(outlet)) {
			if (outlet->note.len > 0)
				return;
			continue;
		}
		part = part < outlet->len ? part : outlet->len;
		done = write_some(outlet, outlet->ring + outlet->start, part);
		forget(outlet, done);
		if (done < part)
			return;
	}
}

static void on_writable(void *arg)
{
	struct outlet *outlet = arg;

	write_waiting(outlet);
	if (!outlet_waits(outlet) || outlet->failed)
		unwatch(outlet);
}

/* Has the loop call back once the reader takes more. */
static void watch_reader(struct outlet *outlet)
{
	if (outlet_waits(outlet) && outlet->loop && !outlet->watch && !outlet->failed)
		outlet->watch =
			loop_on_ready(outlet->loop, outlet->fd, LOOP_WRITE, on_writable, outlet);
}

void outlet_use(struct outlet *outlet, struct loop *loop)
{
	unwatch(outlet);
	outlet->loop = loop;
	watch_reader(outlet);
}

void outlet_put(struct outlet *outlet, const char *bytes, size_t len)
{
	size_t done = 0;

	if (outlet->failed || len == 0)
		return;
	write_waiting(outlet);
	if (!outlet_waits(outlet))
		done = write_some(outlet, bytes, len);
	if (done < len && !outlet->failed)
		keep(outlet, bytes + done, len - done);
	watch_reader(outlet);
}

static void drop_waiting(struct outlet *outlet)
{
	if (outlet->len > 0 && !outlet->failed)
		drop(outlet, outlet->len);
}

void outlet_flush(struct outlet *outlet, int64_t wait_ms)
{
	int64_t end = clock_mono_now().ms + wait_ms, left;

	while (outlet_waits(outlet) && !outlet->failed && (left = end - clock_mono_now().ms) > 0) {
		wait_for_reader(outlet, (int)left);
		write_waiting(outlet);
	}
	drop_waiting(outlet);
}

void outlet_drain(struct outlet *outlet, int64_t idle_ms)
{
	while (outlet_waits(outlet) && !outlet->failed) {
		size_t before = outlet->len + outlet->note.len;

		wait_for_reader(outlet, (int)idle_ms);
		write_waiting(outlet);
		if (outlet->len + outlet->note.len == before)
			break;
	}
	drop_waiting(outlet);
}
