/* The uploader carries out its orders: see carry_out.h. */
#include "jobs/node/upload/carry_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/node/cache_sum.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/report.h"
#include "jobs/node/upload/output_relay.h"

/* Tries of what is refused otherwise, with pauses of twice the length each time: more than 6 s. */
#define TRIES    7
#define PAUSE_MS 100
/* Between two entries of the times of the log. */
#define DATED_MS 1000

const char *const carry_out_news[UPLOADER_NEWS] = {
	[UPLOADER_SUPERSEDED] = "superseded",
	[UPLOADER_DRAIN] = "drain",
	[UPLOADER_DRAINED] = "drained",
	[UPLOADER_PEER_FAILED] = "peer-failed",
	[UPLOADER_HEAD_ENDED] = "head-ended",
	[UPLOADER_LOOKED] = "looked",
	[UPLOADER_REPORTED] = "reported",
	[UPLOADER_REFUSED] = "refused",
	[UPLOADER_LOG_LOST] = "log-lost",
	[UPLOADER_FLAGGED] = "flagged",
	[UPLOADER_PEER] = "peer",
	[UPLOADER_SUM] = "sum",
	[UPLOADER_DONE] = "done",
};

json_t *carry_out_line(enum uploader_news news)
{
	return news_of(carry_out_news[news]);
}

void carry_out_release(struct carrier *carrier)
{
	log_series_release(&carrier->series);
	usage_file_release(&carrier->usage);
	auto_close(&carrier->log_fd);
	auto_close(&carrier->times_fd);
	carrier->log_fd = carrier->times_fd = -1;
	free(TAKE(carrier->progress));
}

/* ---- the report ---- */

static int put_report(const struct carrier *carrier, const char *text, struct err **err)
{
	for (int i = 0; report_put(&carrier->config, carrier->store, text, err) < 0; i++) {
		if (i + 1 == TRIES || !err_passes(*err) || !cancel_pause(PAUSE_MS << i))
			return -1;
		err_freep(err);
	}
	return 0;
}

static void do_report(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	const char *text = js_str(order, "text");
	AUTO(err_freep) struct err *why = NULL;
	bool there;
	json_t *line;

	(void)bytes, (void)len;
	if (!text) {
		carrier->report_due = carrier->report_new = true;
		return;
	}
	there = put_report(carrier, text, &why) == 0;
	line = carry_out_line(there ? UPLOADER_REPORTED : UPLOADER_REFUSED);
	js_put_str(line, "state", js_str(order, "state"));
	if (!there) {
		js_put_str(line, "why", why->message);
		js_put(line, "errno", json_integer(why->os_errno));
	}
	carrier->say(carrier->arg, line);
}

/* ---- the log of a directory ---- */

/* Returns 0, or errno. */
static int open_log(struct carrier *carrier)
{
	AUTO(auto_free) char *path = fs_join(carrier->config.dir, LOG_FILE);

	for (int i = 0; carrier->log_fd < 0; i++) {
		carrier->log_fd =
			open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (carrier->log_fd < 0 &&
		    (i + 1 == TRIES || !err_errno_passes(errno) || !cancel_pause(PAUSE_MS << i)))
			return errno ? errno : EIO;
	}
	return 0;
}

/* Writes down when the bytes that follow were written. It is for people only: what fails is left
 * out, and a reader passes over an entry that is cut short. */
static void date_log(struct carrier *carrier)
{
	struct mono now = clock_mono_now();
	AUTO(auto_free) char *path = NULL, *entry = NULL;
	struct stat st;

	if (carrier->dated_at.ms > 0 && now.ms - carrier->dated_at.ms < DATED_MS)
		return;
	carrier->dated_at = now;
	if (carrier->times_fd < 0) {
		path = fs_join(carrier->config.dir, TIMES_FILE);
		carrier->times_fd =
			open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (carrier->times_fd < 0 || fstat(carrier->log_fd, &st) < 0)
		return;
	entry = mem_format("%lld %lld\n", (long long)st.st_size, (long long)clock_utc_now().ms);
	(void)!write(carrier->times_fd, entry, strlen(entry));
}

/* The number of the start is known with the claim, and the command starts after it. */
static void read_log(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	struct log_growth growth = { { js_int(order, "at", 0) }, false, bytes, len };
	struct stat st;

	if (carrier->claimed && fstat(carrier->log_fd, &st) == 0)
		log_series_grow(&carrier->series, &carrier->config, (uint64_t)st.st_size, &growth);
}

static void do_log(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	int failed;
	json_t *line;

	if (carrier->log_lost)
		return;
	failed = open_log(carrier);
	if (!failed) {
		date_log(carrier);
		failed = output_relay_write(carrier->log_fd, bytes, len);
	}
	if (!failed) {
		read_log(carrier, order, bytes, len);
		return;
	}
	carrier->log_lost = true;
	line = carry_out_line(UPLOADER_LOG_LOST);
	js_put(line, "errno", json_integer(failed));
	carrier->say(carrier->arg, line);
}

/* If the workspace is not a directory, the agent itself writes the log. */
static void do_grown(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	struct log_growth growth = { .at = { js_int(order, "at", 0) },
				     .late = js_bool(order, "late", false) };

	(void)bytes, (void)len;
	if (carrier->claimed)
		log_series_grow(&carrier->series, &carrier->config,
				(uint64_t)js_int(order, "size", 0), &growth);
}

/* A log that cannot be synced is as a power cut leaves it. */
static void do_sync(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	(void)order, (void)bytes, (void)len;
	if (open_log(carrier) == 0)
		(void)!fsync(carrier->log_fd);
}

/* ---- the other nodes ---- */

static void do_flag(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	const char *name = js_str(order, "name");
	json_t *body = json_object_get(order, "body"), *line;

	(void)bytes, (void)len;
	if (!name || !body)
		return;
	line = carry_out_line(UPLOADER_FLAGGED);
	js_put_str(line, "name", name);
	js_put(line, "set",
	       json_boolean(node_flag_set(&carrier->config, carrier->store, name,
					  json_deep_copy(body))));
	carrier->say(carrier->arg, line);
}

void carry_out_progress(struct carrier *carrier)
{
	AUTO(auto_free) char *key = agent_config_node_key(&carrier->config, PROGRESS_FILE);
	const char *text = carrier->progress;
	AUTO(err_freep) struct err *ignored = NULL;

	if (text && store_put(carrier->store, key, text, strlen(text), &ignored) == 0)
		free(TAKE(carrier->progress));
}

static void do_progress(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	const char *text = js_str(order, "text");

	(void)bytes, (void)len;
	if (!text)
		return;
	free(carrier->progress);
	carrier->progress = mem_copy(text);
	carry_out_progress(carrier);
}

/* If a power cut loses it, it is published again, or in the report. */
static void do_pace(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	AUTO(auto_free) char *path = fs_join(carrier->config.dir, PACE_FILE);
	const char *text = js_str(order, "text");
	AUTO(err_freep) struct err *ignored = NULL;

	(void)bytes, (void)len;
	if (text)
		(void)!fs_write_passing(path, text, strlen(text), 0600, &ignored);
}

/* ---- the rest ---- */

static void do_sum(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	const char *path = js_str(order, "path");
	json_t *line = carry_out_line(UPLOADER_SUM);

	(void)bytes, (void)len;
	js_put(line, "for", json_integer(js_int(order, "for", 0)));
	js_put(line, "sum", json_integer((json_int_t)(path ? cache_sum(path) : 0)));
	carrier->say(carrier->arg, line);
}

static void do_usage(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	(void)bytes, (void)len;
	if (carrier->claimed)
		usage_file_add(&carrier->usage, &carrier->config,
			       (struct utc){ js_int(order, "at", 0) }, js_int(order, "step", -1),
			       json_object_get(order, "values"));
}

static void do_claimed(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	(void)bytes, (void)len;
	carrier->claimed = true;
	carrier->config.restart = js_int(order, "restart", carrier->config.restart);
}

static void do_look(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	(void)order, (void)bytes, (void)len;
	carrier->look_due = true;
}

static void do_last(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	(void)order, (void)bytes, (void)len;
	carrier->last = true;
}

static const struct {
	const char *name;
	void (*fn)(struct carrier *carrier, const json_t *order, const char *bytes, size_t len);
} rows[] = {
	{ "claimed", do_claimed },   { "report", do_report }, { "log", do_log },
	{ "grown", do_grown },       { "sync", do_sync },     { "flag", do_flag },
	{ "progress", do_progress }, { "pace", do_pace },     { "sum", do_sum },
	{ "usage", do_usage },       { "look", do_look },     { "last", do_last },
};

void carry_out(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (js_is(order, "order", rows[i].name))
			rows[i].fn(carrier, order, bytes, len);
}

void carry_out_log(struct carrier *carrier, const json_t *order, const char *bytes, size_t len)
{
	if (js_is(order, "order", "log"))
		do_log(carrier, order, bytes, len);
}
