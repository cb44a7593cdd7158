/* Builds and writes the agent's report: see report.h. */
#include "jobs/node/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"

/* Enough for any report and the folder entry it needs. */
#define RESERVE_BYTES ((off_t)64 << 10)
/* Rounds for writers that meet: each loses at most twice, to one that reports at that time. */
#define ROUNDS 4

/* Failure classes of errors of the operating system. */
static const struct {
	int os_errno;
	const char *class;
} causes[] = {
	{ ENOSPC, "user-config" },     { EDQUOT, "user-config" },
	{ EFBIG, "user-config" },      { ENOENT, "user-config" },
	{ ENOTDIR, "user-config" },    { EISDIR, "user-config" },
	{ ELOOP, "user-config" },      { ENAMETOOLONG, "user-config" },
	{ E2BIG, "user-config" },      { EACCES, "quota-permission" },
	{ EPERM, "quota-permission" }, { EIO, "hardware-node" },
	{ EROFS, "hardware-node" },    { ESTALE, "hardware-node" },
	{ EAGAIN, "transient-infra" }, { ENOMEM, "transient-infra" },
	{ EMFILE, "transient-infra" }, { ENFILE, "transient-infra" },
};

static const char *class_of(const struct err *why)
{
	for (size_t i = 0; i < STK_LENGTH(causes); i++)
		if (causes[i].os_errno == why->os_errno)
			return causes[i].class;
	return "unknown";
}

/* Reserves space: a full disk must not swallow the news that it is full. A missing reserve is
 * no reason to stop. */
static void make_reserve(const char *path)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0)
		(void)!posix_fallocate(fd, 0, RESERVE_BYTES);
}

static char *reserve_of(const struct agent_config *config)
{
	return fs_join(config->dir, "reserve");
}

void report_init(struct report *report, const struct agent_config *config,
		 struct output_relay *relay)
{
	struct node_report *said = &report->said;
	char host[256] = "";
	struct proc_id id;

	*report = (struct report){ .config = config, .relay = relay };
	report->path = config->object_workspace ? fs_join(config->dir, REPORT_FILE) : NULL;
	report->reserve = reserve_of(config);
	make_reserve(report->reserve);
	gethostname(host, sizeof host - 1);
	MESSAGE_SET(said, v, 1);
	MESSAGE_SET_TEXT(said, run, config->run);
	MESSAGE_SET_TEXT(said, phase, config->phase);
	MESSAGE_SET(said, attempt, config->attempt);
	MESSAGE_SET(said, node, config->node);
	MESSAGE_SET_TEXT(said, job, config->job);
	MESSAGE_SET_TEXT(said, nonce, config->nonce);
	MESSAGE_SET_TEXT(said, token, config->token);
	MESSAGE_SET_TEXT(said, state, REPORT_STARTING);
	MESSAGE_SET_TEXT(said, host, host);
	if (proc_identify(getpid(), &id) == 0) {
		MESSAGE_MARK(said, agent);
		report_process(&said->agent, &id);
	}
}

void report_build(struct report *report, const char *program)
{
	const char *wanted = report->config->order->agent;
	AUTO(err_freep) struct err *unread = NULL;
	char hex[SHA256_HEX];
	uint64_t size;
	bool same;

	if (!wanted)
		return;
	same = hash_sha256_file(program, hex, &size, &unread) == 0 && strcmp(hex, wanted) == 0;
	MESSAGE_MARK(&report->said, build);
	MESSAGE_SET_TEXT(&report->said.build, version, STOKER_VERSION);
	MESSAGE_SET(&report->said.build, same, same);
}

void report_release(struct report *report)
{
	if (report->reserve)
		unlink(report->reserve);
	node_report_release(&report->said);
	free(report->path);
	free(report->reserve);
	*report = (struct report){ 0 };
}

void report_process(struct node_report_process *process, const struct proc_id *id)
{
	MESSAGE_SET(process, pid, id->pid);
	MESSAGE_SET(process, start, (int64_t)id->start_ticks);
	MESSAGE_SET_TEXT(process, boot, id->boot_id);
}

void report_error(struct report *report, const struct err *why, const char *class)
{
	AUTO(auto_free) char *message = err_format(why);
	struct node_report_error *error = &report->said.error;

	message_renew(node_report_message, &report->said, "error");
	MESSAGE_SET_TEXT(error, message, message);
	MESSAGE_SET_TEXT(error, hint, why->hint);
	MESSAGE_SET_TEXT(error, class, class ? class : class_of(why));
}

void report_resumed(struct report *report)
{
	const struct order *order = report->config->order;

	if (report->config->restart == 0)
		return;
	if (!order->resume_from)
		return;
	MESSAGE_MARK(&report->said, resumed);
	MESSAGE_SET_TEXT(&report->said.resumed, url, order->resume_from);
	MESSAGE_SET(&report->said.resumed, step, order->resume_step);
}

char *report_compose(struct report *report, const char *state)
{
	json_auto_t *body = NULL;

	MESSAGE_SET_TEXT(&report->said, state, state);
	body = message_encode(node_report_message, &report->said);
	return js_line(body);
}

/* Writes to the file, or as the object where `path` is NULL. */
static int write_once(const char *path, struct store *store, const char *key, const char *text,
		      struct err **err)
{
	return path ? fs_write_atomic(path, text, strlen(text), 0600, err)
		    : store_put(store, key, text, strlen(text), err);
}

/* Gives up the reserve where the first try fails: the error may be a lack of space, and a second
 * try harms nothing. */
static int write_report(const char *reserve, const char *path, struct store *store, const char *key,
			const char *text, struct err **err)
{
	AUTO(err_freep) struct err *first = NULL;

	if (write_once(path, store, key, text, &first) == 0)
		return 0;
	unlink(reserve);
	if (write_once(path, store, key, text, err) < 0)
		return err_wrap(err, "cannot write the report");
	return 0;
}

int report_keep(const struct report *report, const char *text, struct err **err)
{
	return write_report(report->reserve, report->path, NULL, NULL, text, err);
}

void report_say(const struct report *report, const char *text)
{
	AUTO(auto_free) char *line = mem_format(AGENT_LINE "%s:: %s", report->config->nonce, text);

	output_relay_say(report->relay, line);
}

int report_put(const struct agent_config *config, struct store *store, const char *text,
	       struct err **err)
{
	AUTO(auto_free) char *key = agent_config_node_key(config, REPORT_FILE);
	AUTO(auto_free) char *reserve = reserve_of(config);

	return write_report(reserve, NULL, store, key, text, err);
}

/* Owner of the report in the workspace. */
enum standing {
	STANDS_UNREAD = -1, /* the report cannot be read */
	STANDS_NONE,
	STANDS_OURS,   /* or of a job that has the claim no more than ours */
	STANDS_OTHERS, /* the report of another job of the attempt, which has the claim by it */
};

static enum standing standing_report(const struct agent_config *config, struct store *store,
				     const char *key, char ret_tag[STORE_TAG], struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	int there = store_get(store, key, REPORT_MAX, &text, ret_tag, err);

	if (there <= 0)
		return there < 0 ? STANDS_UNREAD : STANDS_NONE;
	if (node_report_parse(text.text, text.len, &report, &ignored) < 0)
		return STANDS_OURS;
	if (!report.has_claimed || strcmp(report.token ? report.token : "", config->token) == 0)
		return STANDS_OURS;
	return STANDS_OTHERS;
}

/* Whoever may not list the bucket is not told that no report is there: it can be written all the
 * same, if none is. `err` has the refusal. */
static int bring_unread(struct store *store, const char *key, const struct sb *text,
			struct err **err)
{
	AUTO(err_freep) struct err *unwritten = NULL;

	if ((*err)->code != EXIT_REFUSED ||
	    store_put_if_absent(store, key, text->text, text->len, &unwritten) <= 0)
		return -1;
	err_freep(err);
	return 0;
}

/* Uploads the report of a job without the claim, unless another job of the attempt reports with the
 * claim. Returns 0 if it is there, 1 if the other's stands, -1 with an error. */
static int bring_humbly(const struct agent_config *config, struct store *store, const char *key,
			const struct sb *text, struct err **err)
{
	for (int i = 0; i < ROUNDS; i++) {
		char tag[STORE_TAG];
		enum standing standing = standing_report(config, store, key, tag, err);
		int done;

		if (standing == STANDS_UNREAD)
			return bring_unread(store, key, text, err);
		if (standing == STANDS_OTHERS)
			return 1;
		done = standing == STANDS_OURS
			       ? store_replace_if_same(store, key, tag, text->text, text->len, err)
			       : store_put_if_absent(store, key, text->text, text->len, err);
		if (done != 0)
			return done < 0 ? -1 : 0;
	}
	return err_set(err, EXIT_UNREACHABLE, "'%s' changes again and again", key);
}

/* Reads the report from the agent's file. */
static int read_own(const struct agent_config *config, struct sb *text, struct node_report *ret,
		    struct err **err)
{
	AUTO(auto_free) char *path = fs_join(config->dir, REPORT_FILE);

	return fs_read(path, REPORT_MAX, text, err) < 0 ||
			       node_report_parse(text->text, text->len, ret, err) < 0
		       ? -1
		       : 0;
}

bool report_is_last(const struct agent_config *config)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(node_report_release) struct node_report report = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;

	return read_own(config, &text, &report, &ignored) == 0 && report.has_claimed &&
	       node_report_is_final(&report);
}

int report_bring(const struct agent_config *config, struct store *store, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_node_key(config, REPORT_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(node_report_release) struct node_report report = { 0 };
	int done;

	if (read_own(config, &text, &report, err) < 0)
		return err_wrap(err, "cannot upload the report to the workspace");
	if (report.has_claimed)
		done = store_put(store, key, text.text, text.len, err);
	else
		done = bring_humbly(config, store, key, &text, err);
	return done < 0 ? err_wrap(err, "cannot upload the report to the workspace") : done;
}

void report_complain(const char *fmt, ...)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(1000);
	va_list args;

	va_start(args, fmt);
	sb_addv(&text, fmt, args);
	va_end(args);
	fprintf(stderr, "stoker-node: %s\n", text.text);
}
