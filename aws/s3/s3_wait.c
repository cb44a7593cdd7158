/* Waiting for operations on S3, and retries while another client was writing at the same moment.
 * See s3.h. */
#include <string.h>

#include "aws/s3/s3_request.h"
#include "jobs/base/process/cancel.h"

/* Conflicts end when the other writer does: retried for a quarter of a minute. */
#define CONFLICTS_MAX   10
#define CONFLICT_MS     50
#define CONFLICT_MS_MAX 8000

struct s3_wait {
	bool over;
	struct s3_outcome outcome;
};

static void on_end(void *arg, struct s3_outcome *outcome)
{
	struct s3_wait *wait = arg;

	wait->outcome = *outcome;
	outcome->err = NULL;
	wait->over = true;
}

/* Waits until the operation begun with on_end() as `done` and `wait` as `arg` is over; the time
 * without progress is limited by its size. Returns the result; for S3_FAILED the error is in
 * `err`. */
static enum s3_result wait_for(struct aws *aws, struct s3_operation *op, struct s3_wait *wait,
			       struct err **err)
{
	struct mono sign_of_life = clock_mono_now();
	uint64_t moved = 0;
	bool is_small;

	if (!op) /* the start has set the error */
		return S3_FAILED;
	is_small = op->is_small;
	while (!wait->over) {
		if (aws_wait_turn(aws, err) < 0) {
			s3_cancelp(&op);
			return S3_FAILED;
		}
		if (wait->over)
			break;
		if (op->moved - moved >= (is_small ? S3_SMALL_WAIT_BYTES : S3_WAIT_BYTES)) {
			moved = op->moved;
			sign_of_life = clock_mono_now();
		} else if (clock_mono_now().ms - sign_of_life.ms >
			   (is_small ? S3_SMALL_WAIT_MS : S3_WAIT_MS)) {
			s3_cancelp(&op);
			err_set(err, EXIT_UNREACHABLE, "S3 has not come to an end for %lld s",
				(long long)(is_small ? S3_SMALL_WAIT_MS : S3_WAIT_MS) / 1000);
			return S3_FAILED;
		}
	}
	if (wait->outcome.err)
		*err = TAKE(wait->outcome.err);
	return wait->outcome.result;
}

/* Like wait_for(), with the small limits of a caller that can do nothing else meanwhile. */
static enum s3_result wait_small(struct aws *aws, struct s3_operation *op, struct s3_wait *wait,
				 struct err **err)
{
	s3_operation_small(op);
	return wait_for(aws, op, wait, err);
}

static void copy_outcome(struct s3_outcome *ret, const struct s3_wait *wait)
{
	if (ret)
		*ret = wait->outcome;
}

static int absent_or_done(enum s3_result result, const struct s3_place *place, struct err **err)
{
	switch (result) {
	case S3_DONE:
		return 1;
	case S3_ABSENT:
		return 0;
	case S3_FAILED:
		return -1;
	case S3_TAKEN:
	case S3_CONFLICT:
		break;
	}
	return err_set(err, EXIT_UNREACHABLE, "'s3://%s/%s' changed while it was read",
		       place->bucket, place->key);
}

int s3_head(struct aws *aws, const struct s3_place *place, struct s3_outcome *ret, struct err **err)
{
	struct s3_wait wait = { 0 };
	struct s3_operation *op = s3_head_start(aws, place, on_end, &wait, err);
	enum s3_result result = wait_small(aws, op, &wait, err);

	copy_outcome(ret, &wait);
	return absent_or_done(result, place, err);
}

/* --- get --- */

struct gathering {
	struct sb *bytes;
	size_t before, max;
	bool too_large;
};

static bool gather(void *arg, const void *bytes, size_t len)
{
	struct gathering *g = arg;

	if (len > g->max - (g->bytes->len - g->before) || g->bytes->len + len > g->bytes->max) {
		g->too_large = true;
		return false;
	}
	sb_add(g->bytes, bytes, len);
	return true;
}

static void forget(struct gathering *g)
{
	g->bytes->len = g->before;
	if (g->bytes->cap)
		g->bytes->text[g->before] = '\0';
}

static void on_restart(void *arg)
{
	forget(arg);
}

int s3_get(struct aws *aws, const struct s3_place *place, uint64_t offset, uint64_t len, size_t max,
	   struct sb *bytes, struct s3_outcome *ret, struct err **err)
{
	struct gathering g = { bytes, bytes->len, max, false };
	struct s3_read read = {
		.offset = offset, .len = len, .sink = gather, .restart = on_restart, .sink_arg = &g
	};
	struct s3_wait wait = { 0 };
	struct s3_operation *op = s3_get_start(aws, place, &read, on_end, &wait, err);
	enum s3_result result = wait_small(aws, op, &wait, err);

	copy_outcome(ret, &wait);
	if (g.too_large) {
		forget(&g);
		err_freep(err);
		return err_set(err, EXIT_REFUSED, "'s3://%s/%s' is larger than %zu bytes",
			       place->bucket, place->key, max);
	}
	if (result == S3_DONE && offset == 0 && len == 0 &&
	    !s3_checksum_bytes(&wait.outcome.checksum, bytes->text + g.before,
			       bytes->len - g.before)) {
		forget(&g);
		return err_set(err, EXIT_UNREACHABLE,
			       "the received data of 's3://%s/%s' does not have its checksum %s",
			       place->bucket, place->key, wait.outcome.checksum.value);
	}
	if (result != S3_DONE)
		forget(&g);
	return absent_or_done(result, place, err);
}

/* --- put and upload --- */

typedef struct s3_operation *(*write_fn)(struct aws *aws, const struct s3_place *place,
					 const struct s3_body *body, s3_done_fn done, void *arg,
					 struct err **err);

/* Sleeps for half to all of a delay that doubles. */
static void pause_doubled(int doublings)
{
	int64_t ms = CONFLICT_MS;
	uint16_t chance;

	while (doublings-- > 0 && ms < CONFLICT_MS_MAX)
		ms *= 2;
	hash_random_bytes(&chance, sizeof chance);
	ms = ms / 2 + ms * chance / (2 * UINT16_MAX);
	(void)cancel_pause(ms);
}

static int crowded(const struct s3_place *place, struct err **err)
{
	err_set(err, EXIT_UNREACHABLE,
		"cannot write 's3://%s/%s': S3 reports each time that another process is writing "
		"it",
		place->bucket, place->key);
	return err_hint(err, "try again when no other process writes there");
}

static int write_object(struct aws *aws, const struct s3_place *place, const struct s3_body *what,
			write_fn start, struct s3_outcome *ret, struct err **err)
{
	struct s3_body body = *what;
	char nonce[S3_NONCE];

	hash_random_hex((S3_NONCE - 1) / 2, nonce);
	body.nonce = nonce;
	for (int attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
		struct s3_wait wait = { 0 };
		struct s3_operation *op;
		enum s3_result result;

		if (attempt > 0)
			pause_doubled(attempt - 1);
		body.again = attempt > 0;
		op = start(aws, place, &body, on_end, &wait, err);
		result = body.len <= S3_SMALL_BYTES ? wait_small(aws, op, &wait, err)
						    : wait_for(aws, op, &wait, err);
		copy_outcome(ret, &wait);
		switch (result) {
		case S3_DONE:
			return 1;
		case S3_TAKEN:
		case S3_ABSENT:
			return 0;
		case S3_FAILED:
			return -1;
		case S3_CONFLICT:
			break;
		}
	}
	return crowded(place, err);
}

int s3_put(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	   struct s3_outcome *ret, struct err **err)
{
	return write_object(aws, place, body, s3_put_start, ret, err);
}

int s3_upload(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
	      struct s3_outcome *ret, struct err **err)
{
	return write_object(aws, place, body, s3_upload_start, ret, err);
}

int s3_download(struct aws *aws, const struct s3_place *place, int fd, struct s3_outcome *ret,
		struct err **err)
{
	struct s3_wait wait = { 0 };
	struct s3_operation *op = s3_download_start(aws, place, NULL, fd, on_end, &wait, err);
	enum s3_result result = wait_for(aws, op, &wait, err);

	copy_outcome(ret, &wait);
	return absent_or_done(result, place, err);
}

int s3_copy(struct aws *aws, const struct s3_source *from, const struct s3_place *to,
	    uint64_t whole_max, struct s3_outcome *ret, struct err **err)
{
	for (int attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
		struct s3_wait wait = { 0 };
		struct s3_operation *op;
		enum s3_result result;

		if (attempt > 0)
			pause_doubled(attempt - 1);
		op = s3_copy_start(aws, from, to, whole_max, on_end, &wait, err);
		result = wait_for(aws, op, &wait, err);
		copy_outcome(ret, &wait);
		if (result != S3_CONFLICT)
			return result == S3_DONE ? 1 : result == S3_FAILED ? -1 : 0;
	}
	return crowded(to, err);
}

int s3_delete(struct aws *aws, const struct s3_place *place, struct err **err)
{
	struct s3_wait wait = { 0 };
	struct s3_operation *op = s3_delete_start(aws, place, on_end, &wait, err);
	enum s3_result result = wait_small(aws, op, &wait, err);

	return result == S3_ABSENT || absent_or_done(result, place, err) >= 0 ? 0 : -1;
}
