/* Builds and writes the agent's report: see report.h. */
#include "jobs/node/report.h"

#include <errno.h>
#include <fcntl.h>
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

void report_init(struct report *report, const struct agent_config *config, struct store *store,
		 struct output_relay *relay)
{
	char host[256] = "";
	struct proc_id id;

	*report = (struct report){ .config = config, .store = store, .relay = relay };
	report->body = json_object();
	report->key = agent_config_node_key(config, REPORT_FILE);
	report->path = config->far ? fs_join(config->dir, REPORT_FILE) : NULL;
	report->reserve = fs_join(config->dir, "reserve");
	make_reserve(report->reserve);
	gethostname(host, sizeof host - 1);
	js_put(report->body, "v", json_integer(1));
	js_put_str(report->body, "run", config->run);
	js_put_str(report->body, "phase", config->phase);
	js_put(report->body, "attempt", json_integer(config->attempt));
	js_put(report->body, "node", json_integer(config->node));
	js_put_str(report->body, "job", config->job);
	js_put_str(report->body, "nonce", config->nonce);
	js_put_str(report->body, "token", config->token);
	js_put_str(report->body, "state", REPORT_STARTING);
	js_put_str(report->body, "host", host);
	if (proc_identify(getpid(), &id) == 0)
		report_process(report, "agent", &id);
}

void report_build(struct report *report, const char *program)
{
	const char *wanted = js_str(report->config->order, "agent");
	AUTO(err_freep) struct err *unread = NULL;
	char hex[SHA256_HEX];
	uint64_t size;
	bool same;

	if (!wanted)
		return;
	same = hash_sha256_file(program, hex, &size, &unread) == 0 && strcmp(hex, wanted) == 0;
	js_put(report->body, "build",
	       json_pack("{s:s, s:b}", "version", STOKER_VERSION, "same", same));
}

void report_release(struct report *report)
{
	if (report->reserve)
		unlink(report->reserve);
	json_decref(report->body);
	free(report->key);
	free(report->path);
	free(report->reserve);
	*report = (struct report){ 0 };
}

void report_process(struct report *report, const char *name, const struct proc_id *id)
{
	json_t *process = json_object();

	js_put(process, "pid", json_integer(id->pid));
	js_put(process, "start", json_integer((json_int_t)id->start_ticks));
	js_put_str(process, "boot", id->boot_id);
	js_put(report->body, name, process);
}

void report_error(struct report *report, const struct err *why, const char *class)
{
	AUTO(auto_free) char *message = err_format(why);
	json_t *error = json_object();

	js_put_str(error, "message", message);
	js_put_str(error, "hint", why->hint);
	js_put_str(error, "class", class ? class : class_of(why));
	js_put(report->body, "error", error);
}

static int put(const struct report *report, const char *text, struct err **err)
{
	if (report->path)
		return fs_write_atomic(report->path, text, strlen(text), 0600, err);
	return store_put(report->store, report->key, text, strlen(text), err);
}

void report_resumed(const struct report *report)
{
	const json_t *order = report->config->order;
	const char *url = js_str(order, "resume_from");
	json_t *resumed;

	if (report->config->restart == 0)
		return;
	js_put(report->body, "restart", json_integer(report->config->restart));
	if (!url)
		return;
	resumed = json_object();
	js_put_str(resumed, "url", url);
	js_put(resumed, "step", json_integer(js_int(order, "resume_step", 0)));
	js_put(report->body, "resumed", resumed);
}

int report_write(struct report *report, const char *state, struct err **err)
{
	AUTO(auto_free) char *text = NULL;
	AUTO(auto_free) char *line = NULL;
	AUTO(err_freep) struct err *first = NULL;

	js_put_str(report->body, "state", state);
	text = js_line(report->body);
	if (put(report, text, &first) < 0) {
		/* The error may be a lack of space; a second try harms nothing. */
		unlink(report->reserve);
		if (put(report, text, err) < 0)
			return err_wrap(err, "cannot write the report");
	}
	line = mem_format(AGENT_LINE "%s:: %s", report->config->nonce, text);
	output_relay_say(report->relay, line);
	return 0;
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
	json_auto_t *report = NULL;
	const char *token;
	int there = store_get(store, key, REPORT_MAX, &text, ret_tag, err);

	if (there <= 0)
		return there < 0 ? STANDS_UNREAD : STANDS_NONE;
	if (js_parse(text.text, text.len, key, &report, &ignored) < 0)
		return STANDS_OURS;
	token = js_str(report, "token");
	if (!json_object_get(report, "claimed") || strcmp(token ? token : "", config->token) == 0)
		return STANDS_OURS;
	return STANDS_OTHERS;
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
			return -1;
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

int report_bring(const struct agent_config *config, struct store *store, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(config->dir, REPORT_FILE);
	AUTO(auto_free) char *key = agent_config_node_key(config, REPORT_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	json_auto_t *report = NULL;
	int done;

	if (fs_read(path, REPORT_MAX, &text, err) < 0 ||
	    js_parse(text.text, text.len, path, &report, err) < 0)
		return err_wrap(err, "cannot bring the report to the workspace");
	if (json_object_get(report, "claimed"))
		done = store_put(store, key, text.text, text.len, err);
	else
		done = bring_humbly(config, store, key, &text, err);
	return done < 0 ? err_wrap(err, "cannot bring the report to the workspace") : done;
}
