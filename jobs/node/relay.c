/* Copies output and keeps foreign lines from posing as ours: see relay.h. */
#include "jobs/node/relay.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/order.h"

#define PREFIX_LEN (sizeof AGENT_LINE - 1)

void relay_init(struct relay *relay, int fd)
{
	*relay = (struct relay){ .fd = fd, .copy_fd = -1, .at_start = true, .out = SB_INIT };
}

void relay_release(struct relay *relay)
{
	sb_release(&relay->out);
}

/* 0, or errno. */
static int write_all(int fd, const char *at, size_t left)
{
	while (left > 0) {
		ssize_t done = write(fd, at, left);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		at += done;
		left -= (size_t)done;
	}
	return 0;
}

/* Write what has gathered. The reader may follow the log live, so nothing
 * waits for more. */
static void write_out(struct relay *relay)
{
	const struct sb *out = &relay->out;
	bool copied = relay->copy_fd >= 0;
	int fault = 0;

	if (out->len > 0)
		relay->mid_line = out->text[out->len - 1] != '\n';
	if (copied && !relay->failed)
		relay->failed = write_all(relay->copy_fd, out->text, out->len);
	if (!relay->deaf && (copied || !relay->failed))
		fault = write_all(relay->fd, out->text, out->len);
	relay->deaf |= fault != 0;
	if (!copied && !relay->failed)
		relay->failed = fault;
	sb_clear(&relay->out);
}

/* Bytes at the beginning of a line; how many of them are dealt with. */
static size_t pass_start(struct relay *relay, const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && relay->matched < PREFIX_LEN && bytes[i] == AGENT_LINE[relay->matched]) {
		relay->matched++;
		i++;
	}
	if (i == len && relay->matched < PREFIX_LEN)
		return i; /* undecided: held back */
	if (relay->matched == PREFIX_LEN)
		sb_addc(&relay->out, '\\');
	sb_add(&relay->out, AGENT_LINE, relay->matched);
	relay->matched = 0;
	relay->at_start = false;
	return i;
}

/* Bytes within a line, up to and with what ends it. */
static size_t pass_rest(struct relay *relay, const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && bytes[i] != '\n' && bytes[i] != '\r')
		i++;
	if (i < len) {
		i++;
		relay->at_start = true;
	}
	sb_add(&relay->out, bytes, i);
	return i;
}

void relay_pass(struct relay *relay, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t done = relay->at_start ? pass_start(relay, bytes, len)
					      : pass_rest(relay, bytes, len);

		bytes += done;
		len -= done;
	}
	write_out(relay);
}

void relay_flush(struct relay *relay)
{
	if (relay->matched > 0) {
		sb_add(&relay->out, AGENT_LINE, relay->matched);
		relay->matched = 0;
		relay->at_start = false;
	}
	write_out(relay);
}

void relay_say(struct relay *relay, const char *line)
{
	relay_flush(relay);
	if (relay->mid_line)
		sb_addc(&relay->out, '\n');
	sb_adds(&relay->out, line);
	sb_addc(&relay->out, '\n');
	write_out(relay);
	relay->at_start = true;
}
