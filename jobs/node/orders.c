/* Lines of JSON to a helper: see orders.h. */
#include "jobs/node/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/err.h"

#define QUEUE_MAX ((size_t)256 << 20) /* more is given up: nobody else bounds the small orders */
#define READ_SIZE ((size_t)64 << 10)

/* ---- the agent ---- */

void orders_init(struct orders *orders, struct loop *loop)
{
	*orders = (struct orders){ .loop = loop, .queue = SB_INIT_MAX(QUEUE_MAX) };
}

static void stop_watching(struct orders *orders)
{
	if (orders->watch)
		loop_remove(orders->loop, orders->watch);
	orders->watch = NULL;
}

void orders_release(struct orders *orders)
{
	stop_watching(orders);
	if (orders->queue.text)
		sb_release(&orders->queue);
	*orders = (struct orders){ 0 };
}

void orders_begin(struct orders *orders, const struct helper *helper)
{
	fcntl(helper->orders_fd, F_SETFL, O_NONBLOCK);
	orders->helper = helper;
	orders->sent = 0;
	orders->waits_for = clock_mono_now();
	orders_push(orders);
}

void orders_end(struct orders *orders)
{
	stop_watching(orders);
	orders->helper = NULL;
}

static void on_writable(void *arg)
{
	orders_push(arg);
}

void orders_push(struct orders *orders)
{
	int failures = 0;

	while (orders->helper && orders->sent < orders->queue.len) {
		ssize_t done = write(orders->helper->orders_fd, orders->queue.text + orders->sent,
				     orders->queue.len - orders->sent);

		if (done >= 0)
			orders->sent += (size_t)done;
		else if (errno == EAGAIN && !orders->watch && orders->loop)
			orders->watch = loop_on_ready(orders->loop, orders->helper->orders_fd,
						      LOOP_WRITE, on_writable, orders);
		if (done < 0 && (errno == EAGAIN || !err_try_again(&failures)))
			return; /* no reader: its end is told elsewhere */
	}
	stop_watching(orders);
}

json_t *orders_new(const char *kind)
{
	json_t *order = json_object();

	js_put_str(order, "order", kind);
	return order;
}

static void add(struct orders *orders, json_t *order, const char *bytes, size_t len)
{
	AUTO(auto_free) char *line = js_line(order);

	json_decref(order);
	if (orders->queue.len + strlen(line) + 1 + len > orders->queue.max)
		return;
	if (orders->queue.len == 0)
		orders->waits_for = clock_mono_now();
	sb_adds(&orders->queue, line);
	sb_addc(&orders->queue, '\n');
	sb_add(&orders->queue, bytes, len);
	orders_push(orders);
}

void orders_give(struct orders *orders, json_t *order)
{
	add(orders, order, "", 0);
}

void orders_give_bytes(struct orders *orders, const char *kind, const char *bytes, size_t len)
{
	json_t *order = orders_new(kind);

	js_put(order, "bytes", json_integer((json_int_t)len));
	js_put(order, "at", json_integer(clock_utc_now().ms));
	add(orders, order, bytes, len);
}

void orders_done(struct orders *orders, size_t bytes)
{
	if (bytes > orders->sent)
		bytes = orders->sent;
	sb_drop(&orders->queue, bytes);
	orders->sent -= bytes;
	orders->waits_for = clock_mono_now();
}

int64_t orders_wait_ms(const struct orders *orders)
{
	return orders->queue.len > 0 ? clock_mono_now().ms - orders->waits_for.ms : 0;
}

/* ---- the helper ---- */

/* Forgets what is taken: no bytes of it are borrowed any more. */
static void tidy(struct orders_reader *reader)
{
	sb_drop(&reader->text, reader->at);
	reader->at = 0;
}

void orders_read(struct orders_reader *reader, int64_t wait_ms)
{
	struct pollfd orders = { .fd = reader->fd, .events = POLLIN };
	char buffer[READ_SIZE];
	ssize_t len;
	int ready;

	tidy(reader);
	ready = poll(&orders, 1, (int)wait_ms);
	/* A helper that cannot wait would turn without a pause. */
	if (ready < 0 && !err_try_again(&reader->failures))
		reader->over = true;
	if (ready >= 0)
		reader->failures = 0;
	if (ready <= 0)
		return;
	len = read(reader->fd, buffer, sizeof buffer);
	if (len > 0)
		sb_add(&reader->text, buffer, (size_t)len);
	reader->over = len == 0 || (len < 0 && !err_errno_passes(errno));
}

json_t *orders_take(struct orders_reader *reader, const char **ret_bytes, size_t *ret_len)
{
	for (;;) {
		const char *line = reader->text.text + reader->at;
		size_t left = reader->text.len - reader->at, len, bytes;
		const char *end = memchr(line, '\n', left);
		AUTO(err_freep) struct err *ignored = NULL;
		json_t *order = NULL;

		if (!end)
			return NULL;
		len = (size_t)(end - line) + 1;
		(void)!js_parse(line, len - 1, "an order", &order, &ignored);
		bytes = (size_t)js_int(order, "bytes", 0);
		if (left - len < bytes) {
			json_decref(order);
			return NULL;
		}
		reader->at += len + bytes;
		reader->taken += len + bytes;
		*ret_bytes = end + 1;
		*ret_len = bytes;
		if (order)
			return order;
	}
}

json_t *orders_wait(struct orders_reader *reader, int64_t wait_ms)
{
	const char *bytes;
	size_t len;
	json_t *order = orders_take(reader, &bytes, &len);

	if (order)
		return order;
	orders_read(reader, wait_ms);
	return orders_take(reader, &bytes, &len);
}

size_t orders_taken(struct orders_reader *reader)
{
	size_t taken = reader->taken;

	reader->taken = 0;
	return taken;
}
