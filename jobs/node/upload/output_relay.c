/* Copies output and keeps foreign lines from posing as ours: see output_relay.h. */
#include "jobs/node/upload/output_relay.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/err.h"
#include "jobs/store/order.h"

#define PREFIX_LEN (sizeof AGENT_LINE - 1)
#define OUTPUT_MAX ((size_t)1 << 20) /* bytes that the reader has not taken yet */
#define NOTES_MAX  200               /* in a second */
#define NOTES_WAIT 5000              /* ms after which notes that nobody takes are no use */

void output_relay_init(struct output_relay *relay, int fd, int file_fd, struct orders *orders,
		       struct loop *loop)
{
	const struct outlet_rules rules = {
		.room = file_fd >= 0 || orders ? OUTPUT_MAX : 0,
		.by = "stoker-node",
		.has = "the log in the workspace has these lines",
	};

	*relay = (struct output_relay){
		.file_fd = file_fd, .orders = orders, .at_start = true, .out = SB_INIT
	};
	outlet_init(&relay->outlet, fd, &rules, loop);
}

void output_relay_release(struct output_relay *relay)
{
	outlet_release(&relay->outlet);
	sb_release(&relay->out);
}

int output_relay_write(int fd, const char *bytes, size_t len)
{
	const char *at = bytes;
	size_t left = len;
	int failures = 0;

	while (left > 0) {
		ssize_t done = write(fd, at, left);

		if (done >= 0) {
			at += done;
			left -= (size_t)done;
			failures = 0;
		} else if (!err_try_again(&failures)) {
			return errno;
		}
	}
	return 0;
}

void output_relay_note(struct output_relay *relay, struct orders *notes)
{
	relay->notes = notes;
}

/* Tells the length of the log file. Of a flood only some, and none while the reader hangs: the next
 * note tells the rest. */
static void note_length(struct output_relay *relay)
{
	int fd = relay->file_fd >= 0 ? relay->file_fd : relay->outlet.fd;
	struct mono now = clock_mono_now();
	struct stat st;
	json_t *order;

	if (now.ms - relay->noted_at.ms >= 1000) {
		relay->noted_at = now;
		relay->noted = 0;
	}
	if (relay->noted++ >= NOTES_MAX || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (orders_wait_ms(relay->notes) >= NOTES_WAIT) {
		relay->withheld = true;
		return;
	}
	order = orders_new("grown");
	js_put(order, "size", json_integer((json_int_t)st.st_size));
	js_put(order, "at", json_integer(clock_utc_now().ms));
	if (relay->withheld)
		js_put(order, "late", json_true());
	relay->withheld = false;
	orders_give(relay->notes, order);
}

/* Writes what has gathered. The reader may follow the log live, so nothing waits for more. */
static void write_out(struct output_relay *relay)
{
	const struct sb *out = &relay->out;

	if (out->len > 0)
		relay->mid_line = out->text[out->len - 1] != '\n';
	if (relay->orders && !relay->failed && out->len > 0)
		orders_give_bytes(relay->orders, "log", out->text, out->len);
	if (relay->file_fd >= 0 && !relay->failed)
		relay->failed = output_relay_write(relay->file_fd, out->text, out->len);
	if (relay->outlet.fd >= 0 && (relay->file_fd >= 0 || relay->orders || !relay->failed))
		outlet_put(&relay->outlet, out->text, out->len);
	if (relay->file_fd < 0 && !relay->orders && !relay->failed)
		relay->failed = relay->outlet.failed;
	if (relay->notes && out->len > 0)
		note_length(relay);
	sb_clear(&relay->out);
}

/* Handles bytes at the beginning of a line. Returns how many of them are dealt with. */
static size_t pass_start(struct output_relay *relay, const char *bytes, size_t len)
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

/* Handles bytes within a line, up to and with its end. Returns how many of them are dealt with. */
static size_t pass_rest(struct output_relay *relay, const char *bytes, size_t len)
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

void output_relay_pass(struct output_relay *relay, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t done = relay->at_start ? pass_start(relay, bytes, len)
					      : pass_rest(relay, bytes, len);

		bytes += done;
		len -= done;
	}
	write_out(relay);
}

void output_relay_flush(struct output_relay *relay)
{
	if (relay->matched > 0) {
		sb_add(&relay->out, AGENT_LINE, relay->matched);
		relay->matched = 0;
		relay->at_start = false;
	}
	write_out(relay);
}

void output_relay_say(struct output_relay *relay, const char *line)
{
	output_relay_flush(relay);
	if (relay->mid_line)
		sb_addc(&relay->out, '\n');
	sb_adds(&relay->out, line);
	sb_addc(&relay->out, '\n');
	write_out(relay);
	relay->at_start = true;
}
