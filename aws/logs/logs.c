/* Reading one log stream, and the rate limit of all requests: see logs.h. */
#include "aws/logs/logs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aws/logs/logs_internal.h"
#include "jobs/base/clock.h"
#include "jobs/base/process/loop.h"

/* At most TURNS requests in TURN_MS, all clients together. */
#define TURNS   5
#define TURN_MS 1000

static struct {
	pthread_mutex_t lock;
	int64_t taken[TURNS]; /* times of the last requests, a ring */
	size_t next;
} rate = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct logs_cursor {
	char *group, *stream;
	struct logs_position position;
	char *token;     /* NULL: by time */
	int64_t from_ms; /* start time of the current query: a token counts from there */
	int64_t skip;    /* events at that time that were handed out before */
};

int logs_open(int page, struct logs **ret, struct err **err)
{
	AUTO(logs_freep) struct logs *logs = mem_zero(1, sizeof *logs);

	logs->page = page;
	if (aws_open(&logs->aws, err) < 0)
		return -1;
	*ret = TAKE(logs);
	return 0;
}

void logs_freep(struct logs **logs)
{
	if (*logs)
		aws_freep(&(*logs)->aws);
	free(*logs);
	*logs = NULL;
}

/* ---- asking ---------------------------------------------------------------------- */

/* Takes the next turn and returns how many ms to wait for it. */
static int64_t take_turn(void)
{
	int64_t now = clock_mono_now().ms, turn;

	pthread_mutex_lock(&rate.lock);
	turn = rate.taken[rate.next] ? rate.taken[rate.next] + TURN_MS : now;
	if (turn < now)
		turn = now;
	rate.taken[rate.next] = turn;
	rate.next = (rate.next + 1) % TURNS;
	pthread_mutex_unlock(&rate.lock);
	return turn - now;
}

static int await_turn(struct err **err)
{
	int64_t wait = take_turn();

	return wait > 0 ? loop_pause(wait, err) : 0;
}

int logs_call(struct logs *logs, enum aws_operation operation, const json_t *body, json_t **ret,
	      char ret_code[96], struct err **err)
{
	struct aws_call call = { .operation = operation, .body_fd = -1, .json = body };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	int outcome;

	if (await_turn(err) < 0)
		return -1;
	outcome = aws_perform(logs->aws, &call, &reply, err);
	if (ret_code)
		snprintf(ret_code, 96, "%s", reply.code);
	if (outcome < 0 && strcmp(reply.code, "ResourceNotFoundException") == 0) {
		err_freep(err);
		return 0;
	}
	if (outcome < 0)
		return -1;
	*ret = TAKE(reply.json);
	return 1;
}

uint64_t logs_digest(const char *id)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (; *id; id++)
		sum = (sum ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
	return sum ? sum : 1;
}

void logs_hand_out(struct logs_position *position, const json_t *event, const char *stream,
		   logs_fn fn, void *arg)
{
	const json_t *message = json_object_get(event, "message");
	const char *text = json_string_value(message), *id = js_str(event, "eventId");
	const struct logs_event row = { .at_ms = js_int(event, "timestamp", 0),
					.stream = stream,
					.message = text ? text : "",
					.len = json_string_length(message),
					.id = id ? logs_digest(id) : 0 };

	if (row.at_ms > position->at_ms)
		*position = (struct logs_position){ row.at_ms, 1 };
	else if (row.at_ms == position->at_ms)
		position->count++;
	fn(arg, &row);
}

/* ---- one stream ------------------------------------------------------------------ */

/* Goes on by time from the position; the events handed out there arrive again and are skipped. */
static void go_by_time(struct logs_cursor *cursor)
{
	free(TAKE(cursor->token));
	cursor->from_ms = cursor->position.at_ms;
	cursor->skip = cursor->position.count;
}

struct logs_cursor *logs_cursor_new(const char *group, const char *stream)
{
	struct logs_cursor *cursor = mem_zero(1, sizeof *cursor);

	cursor->group = mem_copy(group);
	cursor->stream = mem_copy(stream);
	return cursor;
}

void logs_cursor_freep(struct logs_cursor **cursor)
{
	if (*cursor) {
		free((*cursor)->group);
		free((*cursor)->stream);
		free((*cursor)->token);
	}
	free(*cursor);
	*cursor = NULL;
}

static json_t *page_request(const struct logs *logs, const struct logs_cursor *cursor)
{
	json_t *body = json_pack("{s:s, s:s, s:b}", "logGroupName", cursor->group, "logStreamName",
				 cursor->stream, "startFromHead", 1);

	if (logs->page > 0)
		js_put(body, "limit", json_integer(logs->page));
	if (cursor->token)
		js_put_str(body, "nextToken", cursor->token);
	if (cursor->from_ms > 0)
		js_put(body, "startTime", json_integer(cursor->from_ms));
	return body;
}

static void hand_out_page(struct logs_cursor *cursor, const json_t *events, logs_fn fn, void *arg)
{
	const json_t *event;
	size_t i;

	json_array_foreach (events, i, event) {
		if (cursor->skip > 0 && js_int(event, "timestamp", 0) == cursor->from_ms) {
			cursor->skip--;
			continue;
		}
		/* After that millisecond nothing is skipped any more. */
		cursor->skip = 0;
		logs_hand_out(&cursor->position, event, cursor->stream, fn, arg);
	}
}

int logs_read(struct logs *logs, struct logs_cursor *cursor, logs_fn fn, void *arg,
	      enum logs_state *ret, struct err **err)
{
	json_auto_t *body = page_request(logs, cursor), *reply = NULL;
	char code[96];
	const char *token;
	int outcome = logs_call(logs, AWS_GET_LOG_EVENTS, body, &reply, code, err);

	*ret = LOGS_NOT_YET;
	if (outcome < 0 && cursor->token && strcmp(code, "InvalidParameterException") == 0) {
		/* The token is a day old; without one the next page is asked for by time. */
		err_freep(err);
		go_by_time(cursor);
		*ret = LOGS_MORE;
		return 0;
	}
	if (outcome <= 0)
		return outcome;
	hand_out_page(cursor, json_object_get(reply, "events"), fn, arg);
	token = js_str(reply, "nextForwardToken");
	/* The same token again means the end; a page before that may be empty. */
	*ret = token && (!cursor->token || strcmp(token, cursor->token) != 0) ? LOGS_MORE
									      : LOGS_NO_MORE;
	if (token && *ret == LOGS_MORE) {
		free(cursor->token);
		cursor->token = mem_copy(token);
	}
	return 0;
}
