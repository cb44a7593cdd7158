/* cache pull, cache push, cp: copies from one store to another, with their progress. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/args/cache_args.h"
#include "cmd/cmd.h"
#include "cmd/follow/attempt_of.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/cache_transfer.h"
#include "jobs/store/order.h"

/* A row on the terminal, redrawn in place; removed before anything else is printed. */
struct ticker {
	bool draws, shown;
	bool dry_run;
	const char *only; /* as in the options of the sync */
};

static void ticker_clear(struct ticker *ticker)
{
	if (ticker->shown)
		fputs("\r\033[K", stderr);
	ticker->shown = false;
}

static bool ticker_show(void *arg, const struct sync_sum *sum)
{
	struct ticker *ticker = arg;
	AUTO(auto_free) char *done = text_format_bytes(sum->bytes[SYNC_MOVED]);
	AUTO(auto_free) char *all = text_format_bytes(sum->to_move_bytes);

	if (!ticker->draws)
		return true;
	fprintf(stderr,
		"\r\033[K%" PRId64 " of %" PRId64 "%s objects, %s of %s; unchanged: %" PRId64,
		sum->objects[SYNC_MOVED], sum->to_move, sum->listed ? "" : "+", done, all,
		sum->objects[SYNC_SAME]);
	fflush(stderr);
	ticker->shown = true;
	return true;
}

static void print_object(void *arg, enum sync_fate fate, const char *key, uint64_t size,
			 const char *why)
{
	static const char *const actions[] = {
		[SYNC_SAME] = "unchanged",
		[SYNC_MOVED] = "moved",
		[SYNC_REFUSED] = "refused",
		[SYNC_FAILED] = "failed",
	};
	struct ticker *ticker = arg;
	const char *action = fate == SYNC_MOVED && ticker->dry_run ? "move" : actions[fate];

	if (fate == SYNC_SAME)
		return;
	if (out_is_json()) {
		json_auto_t *row = json_object();

		js_put_str(row, "action", action);
		js_put_str(row, "path", key);
		js_put(row, "size_bytes", json_integer((json_int_t)size));
		js_put_str(row, "why", why);
		out_json(row);
		return;
	}
	ticker_clear(ticker);
	if (fate != SYNC_MOVED) {
		out_warning("%s: '%s' %s", action, key, why);
	} else if (ticker->dry_run || out_is_verbose()) {
		AUTO(auto_free) char *bytes = text_format_bytes(size);

		out_line("%-8s %10s  %s", action, bytes, key);
	}
}

static void print_sum(const struct sync_sum *sum, bool dry_run)
{
	AUTO(auto_free) char *moved = text_format_bytes(sum->bytes[SYNC_MOVED]);
	AUTO(auto_free) char *same = text_format_bytes(sum->bytes[SYNC_SAME]);
	const int64_t *objects = sum->objects;

	if (out_is_json()) {
		json_auto_t *total = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "dry_run",
					       dry_run, "moved", (json_int_t)objects[SYNC_MOVED],
					       "moved_bytes", (json_int_t)sum->bytes[SYNC_MOVED],
					       "unchanged", (json_int_t)objects[SYNC_SAME],
					       "unchanged_bytes", (json_int_t)sum->bytes[SYNC_SAME],
					       "refused", (json_int_t)objects[SYNC_REFUSED],
					       "failed", (json_int_t)objects[SYNC_FAILED]);

		out_json(total);
	}
	out_line("%s: %" PRId64 " objects, %s; unchanged: %" PRId64 ", %s; refused: %" PRId64
		 "; failed: %" PRId64,
		 dry_run ? "to move" : "moved", objects[SYNC_MOVED], moved, objects[SYNC_SAME],
		 same, objects[SYNC_REFUSED], objects[SYNC_FAILED]);
	if (objects[SYNC_FAILED] > 0)
		out_hint(
			"another process is writing to it; run the same command again to continue");
}

/* Copies, and shows what is copied. Returns an exit code, or -1. `url` is what must be there and
 * arrive as a whole; NULL: a cache, which may be empty and hold names that cannot be files. */
static int copy_objects(struct store *from, struct store *to, struct sync_options options,
			const char *url, struct err **err)
{
	struct ticker ticker = { .draws = out_draws(),
				 .dry_run = options.dry_run,
				 .only = options.only };
	struct sync_sum sum;
	int64_t found = 0;
	int result;

	options.on_object = print_object;
	options.progress = ticker_show;
	options.arg = &ticker;
	out_bulk(true);
	result = sync_run(from, to, &options, &sum, err);
	ticker_clear(&ticker);
	/* Objects copied before the failure stay there. */
	if (result == 0 || sum.objects[SYNC_MOVED] > 0)
		print_sum(&sum, ticker.dry_run);
	if (result < 0)
		return -1;
	for (int fate = 0; fate < SYNC_FATES; fate++)
		found += sum.objects[fate];
	if (url && found == 0) {
		err_set(err, EXIT_REFUSED, "nothing is left at '%s'", url);
		return err_hint(err, "restore it from a copy, if there is one");
	}
	return sum.objects[SYNC_FAILED] > 0 || (url && sum.objects[SYNC_REFUSED] > 0) ? EXIT_REFUSED
										      : EXIT_DONE;
}

/* --- caches --- */

static int transfer_cache(const struct args *args, struct store *from, struct store *to,
			  struct err **err)
{
	struct sync_options options = {
		.only = args->value[OPT_ONLY],
		.dry_run = args->given[OPT_DRY_RUN],
		.stage = cache_stage,
	};

	if (options.only && !store_key_fits(options.only, true)) {
		err_set(err, EXIT_USAGE, "--only cannot be '%s'", options.only);
		return err_hint(err, "write the beginning of a path in the cache, such as stoker/");
	}
	return copy_objects(from, to, options, NULL, err);
}

static int must_be_directory(const struct store *store, const char *named, const char *hint,
			     struct err **err)
{
	if (store_directory(store))
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' is not a directory", named);
	return err_hint(err, "%s", hint);
}

int cmd_cache_pull(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL, *to = NULL;

	if (cache_args_open(args->operands[0], &from, err) < 0 ||
	    store_open(args->operands[1], &to, err) < 0 ||
	    must_be_directory(to, args->operands[1],
			      "'stoker help cache push' explains the other direction", err) < 0)
		return -1;
	return transfer_cache(args, from, to, err);
}

int cmd_cache_push(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL, *to = NULL;

	if (cache_args_open(args->operands[0], &from, err) < 0 ||
	    must_be_directory(from, args->operands[0],
			      "'stoker help cache pull' explains the other direction", err) < 0 ||
	    store_open(args->operands[1], &to, err) < 0)
		return -1;
	return transfer_cache(args, from, to, err);
}

/* --- cp --- */

#define LOG_CHUNK ((size_t)1 << 20)

struct copied {
	const char *what; /* "checkpoint", "outputs" or "log" */
	char run[JOURNAL_RUN_MAX];
	struct journal *journal;
	struct store *to;
	struct attempt_of of;
};

static void copied_release(struct copied *copied)
{
	attempt_of_release(&copied->of);
	journal_freep(&copied->journal);
	store_freep(&copied->to);
}

/* Checkpoint and outputs are the newest of the run, whichever attempt made them. */
static int check_options(const struct args *args, const char *what, struct err **err)
{
	enum opt_id id = args->given[OPT_PHASE] ? OPT_PHASE : OPT_ATTEMPT;

	if (!args->given[id] || strcmp(what, "log") == 0)
		return 0;
	err_set(err, EXIT_USAGE, "--%s chooses a log, not %s", args_opt_rows[id].name, what);
	return err_hint(err, "omit --%s: the newest %s copied", args_opt_rows[id].name,
			strcmp(what, "outputs") == 0 ? "outputs are" : "checkpoint is");
}

/* Reads RUN:WHAT; the run is @last if only WHAT is given. */
static int find_copied(const struct args *args, struct copied *ret, struct err **err)
{
	static const char *const words[] = { "checkpoint", "outputs", "log" };
	const char *text = args->operands[0], *dest = args->operands[1],
		   *colon = strrchr(text, ':');
	AUTO(auto_free) char *run = mem_copy_n(text, colon ? (size_t)(colon - text) : 0);

	for (size_t i = 0; i < STK_LENGTH(words); i++)
		if (strcmp(colon ? colon + 1 : text, words[i]) == 0)
			ret->what = words[i];
	if (!ret->what) {
		err_set(err, EXIT_USAGE, "'%s' names nothing that can be copied", text);
		return err_hint(err, "write RUN:checkpoint, RUN:outputs or RUN:log");
	}
	if (check_options(args, ret->what, err) < 0 ||
	    attempt_of_ask(&ret->of, args, ret->run, err) < 0 ||
	    store_open(dest, &ret->to, err) < 0 ||
	    must_be_directory(ret->to, dest, "name a directory on this machine", err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &ret->journal, err) < 0 ||
	    journal_resolve(ret->journal, run[0] ? run : "@last", ret->run, err) < 0 ||
	    attempt_of_find(&ret->of, ret->journal, err) < 0)
		return -1;
	return attempt_of_open(&ret->of, err);
}

/* Copies what the folder or prefix `url` holds into `to`. */
static int copy_folder(const char *url, struct store *to, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL;

	if (store_open(url, &from, err) < 0)
		return -1;
	return copy_objects(from, to, (struct sync_options){ .once = true }, url, err);
}

/* Leaves out what only begins with the name. */
static enum sync_stage only_one(void *arg, const char *key)
{
	const struct ticker *ticker = arg;

	return strcmp(key, ticker->only) == 0 ? SYNC_AT_ONCE : SYNC_NOT;
}

/* Copies a checkpoint: a folder beneath its own name, or one file. */
static int copy_checkpoint(const char *url, struct store *to, struct err **err)
{
	const char *name = fs_basename(url);
	AUTO(auto_free) char *above = fs_dirname(url);
	AUTO(auto_free) char *folder = fs_join(store_directory(to), name);
	AUTO(store_freep) struct store *from = NULL, *below = NULL;
	struct sync_options options = { .only = name, .stage = only_one, .once = true };
	struct store_object object;
	int is_file;

	if (store_open(above, &from, err) < 0)
		return -1;
	is_file = store_stat(from, name, &object, err);
	if (is_file > 0)
		return copy_objects(from, to, options, url, err);
	if (is_file < 0 || store_open(folder, &below, err) < 0)
		return -1;
	return copy_folder(url, below, err);
}

/* Copies the newest complete checkpoint, or the outputs of the newest attempt that left any. */
static int copy_made(const struct copied *copied, struct err **err)
{
	json_auto_t *status = NULL;
	bool is_checkpoint = strcmp(copied->what, "checkpoint") == 0;
	const char *url;

	if (cmd_run_view_whole(copied->journal, copied->run, &status, err) < 0)
		return -1;
	url = js_str(json_object_get(status, copied->what), "url");
	if (!url) {
		err_set(err, EXIT_REFUSED, "run %s has no %s", copied->run,
			is_checkpoint ? "complete checkpoint" : "outputs");
		return err_hint(err, "'stoker status %s' shows what it has made", copied->run);
	}
	out_note("%s of run %s: %s to %s", copied->what, copied->run, url,
		 store_directory(copied->to));
	return is_checkpoint ? copy_checkpoint(url, copied->to, err)
			     : copy_folder(url, copied->to, err);
}

/* Takes the agent's own lines out of a log that comes in pieces. */
struct log_filter {
	struct sb passed; /* not written yet */
	size_t matched;   /* bytes of AGENT_LINE with which the line has begun so far */
	bool inside;      /* a line of the agent, or of the command, is being passed */
	bool own;
};

static void filter_release(struct log_filter *filter)
{
	sb_release(&filter->passed);
}

static void pass_byte(struct log_filter *filter, char byte)
{
	static const char prefix[] = AGENT_LINE;

	if (!filter->inside && byte == prefix[filter->matched]) {
		filter->inside = filter->own = ++filter->matched == sizeof prefix - 1;
		return;
	}
	if (!filter->inside)
		sb_add(&filter->passed, prefix, filter->matched);
	if (!filter->own)
		sb_addc(&filter->passed, byte);
	filter->matched = 0;
	filter->inside = byte != '\n';
	filter->own &= filter->inside;
}

/* Writes the log of a node. Returns 0, -1 with an error, or the errno of a failed write. */
static int write_log(const struct attempt_of *of, int node, int fd, struct err **err)
{
	AUTO(filter_release) struct log_filter filter = { .passed = SB_INIT };
	uint64_t offset = 0;
	size_t got = LOG_CHUNK;
	int failed = 0;

	while (got == LOG_CHUNK && failed == 0) {
		AUTO(sb_release) struct sb chunk = SB_INIT_MAX(LOG_CHUNK);

		if (of->engine->ops->logs(of->engine, of->job, of->prefix, node, &offset, LOG_CHUNK,
					  &chunk, err) < 0)
			return -1;
		got = chunk.len;
		for (size_t i = 0; i < got; i++)
			pass_byte(&filter, chunk.text[i]);
		if (got < LOG_CHUNK && !filter.inside)
			sb_add(&filter.passed, AGENT_LINE, filter.matched);
		failed = fs_write_full(fd, filter.passed.text, filter.passed.len);
		sb_clear(&filter.passed);
	}
	return failed;
}

static int copy_log(const struct attempt_of *of, int node, const char *dest, struct err **err)
{
	AUTO(auto_free)
	char *name = mem_format("%s-%lld-node-%d.log", flow_phase_names[of->phase],
				(long long)of->attempt, node);
	AUTO(auto_free) char *path = fs_join(dest, name);
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int failed = fd < 0 ? errno : write_log(of, node, fd, err);

	if (failed < 0)
		return -1;
	if (failed == 0 && close(TAKE_FD(fd)) < 0)
		failed = errno;
	if (failed > 0)
		return fs_error(err, failed, "cannot write '%s'", path);
	if (out_is_json()) {
		json_auto_t *row =
			json_pack("{s:s, s:i, s:s}", "what", "log", "node", node, "path", path);

		out_json(row);
	}
	out_line("%s", path);
	return 0;
}

int cmd_cp(const struct args *args, struct err **err)
{
	AUTO(copied_release) struct copied copied = { 0 };
	const char *dest;

	if (find_copied(args, &copied, err) < 0)
		return -1;
	if (strcmp(copied.what, "log") != 0)
		return copy_made(&copied, err);
	dest = store_directory(copied.to);
	if (fs_mkdirs(dest, err) < 0)
		return -1;
	for (int64_t node = 0; node < copied.of.nodes; node++)
		if (copy_log(&copied.of, (int)node, dest, err) < 0)
			return -1;
	return EXIT_DONE;
}
