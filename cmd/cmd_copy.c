/* cache pull, cache push, cp: copies from one store to another, with their progress. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

/* Copies, and shows what is copied. Returns an exit code, or -1; with `whole`, an object that is
 * refused is a failure. */
static int copy_objects(struct store *from, struct store *to, struct sync_options options,
			bool whole, struct err **err)
{
	struct ticker ticker = { .draws = out_draws(), .dry_run = options.dry_run };
	struct sync_sum sum;
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
	return sum.objects[SYNC_FAILED] > 0 || (whole && sum.objects[SYNC_REFUSED] > 0)
		       ? EXIT_REFUSED
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
	return copy_objects(from, to, options, false, err);
}

static int must_be_directory(const struct store *store, const char *named, const char *other,
			     struct err **err)
{
	if (store_directory(store))
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' is not a directory", named);
	return err_hint(err, "'stoker help %s' explains the other direction", other);
}

int cmd_cache_pull(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL, *to = NULL;

	if (cache_args_open(args->operands[0], &from, err) < 0 ||
	    store_open(args->operands[1], &to, err) < 0 ||
	    must_be_directory(to, args->operands[1], "cache push", err) < 0)
		return -1;
	return transfer_cache(args, from, to, err);
}

int cmd_cache_push(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL, *to = NULL;

	if (cache_args_open(args->operands[0], &from, err) < 0 ||
	    must_be_directory(from, args->operands[0], "cache pull", err) < 0 ||
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
	struct attempt_of of;
};

static void copied_release(struct copied *copied)
{
	attempt_of_release(&copied->of);
	journal_freep(&copied->journal);
}

/* Reads RUN:WHAT; the run is @last if only WHAT is given. */
static int find_copied(const struct args *args, struct copied *ret, struct err **err)
{
	static const char *const words[] = { "checkpoint", "outputs", "log" };
	const char *text = args->operands[0], *colon = strrchr(text, ':');
	AUTO(auto_free) char *run = mem_copy_n(text, colon ? (size_t)(colon - text) : 0);

	for (size_t i = 0; i < STK_LENGTH(words); i++)
		if (strcmp(colon ? colon + 1 : text, words[i]) == 0)
			ret->what = words[i];
	if (!ret->what) {
		err_set(err, EXIT_USAGE, "'%s' names nothing that can be copied", text);
		return err_hint(err, "write RUN:checkpoint, RUN:outputs or RUN:log");
	}
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &ret->journal, err) < 0 ||
	    journal_resolve(ret->journal, run[0] ? run : "@last", ret->run, err) < 0 ||
	    attempt_of_find(args, ret->journal, ret->run, &ret->of, err) < 0)
		return -1;
	return attempt_of_open(&ret->of, err);
}

/* True for a place that is one file: a checkpoint may be. */
static bool is_file(const char *url)
{
	struct stat st;

	return stat(url, &st) == 0 && S_ISREG(st.st_mode);
}

/* Copies what lies at `url` into the folder `dest`: what a folder or prefix holds, or one file. */
static int copy_url(const char *url, const char *dest, struct err **err)
{
	bool one = is_file(url);
	AUTO(auto_free) char *folder = one ? fs_dirname(url) : mem_copy(url);
	AUTO(store_freep) struct store *from = NULL, *to = NULL;
	struct sync_options options = { .only = one ? fs_basename(url) : NULL, .once = true };

	if (store_open(folder, &from, err) < 0 || store_open(dest, &to, err) < 0 ||
	    must_be_directory(to, dest, "cp", err) < 0)
		return -1;
	return copy_objects(from, to, options, true, err);
}

/* Copies the newest complete checkpoint, or the outputs of the newest attempt that left any. */
static int copy_made(const struct copied *copied, const char *dest, struct err **err)
{
	json_auto_t *status = NULL;
	AUTO(auto_free) char *folder = NULL;
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
	folder = is_checkpoint && !is_file(url) ? fs_join(dest, fs_basename(url)) : mem_copy(dest);
	out_note("%s of run %s: %s to %s", copied->what, copied->run, url, folder);
	return copy_url(url, folder, err);
}

/* Leaves out the agent's own lines of a log that comes in pieces. */
struct own_lines {
	FILE *file;
	struct sb start; /* of a line, while it may become a line of the agent */
	bool inside;     /* a line of the agent, or of the command, is being passed */
	bool own;
};

static void pass_byte(struct own_lines *lines, char byte)
{
	static const char prefix[] = AGENT_LINE;

	if (lines->inside) {
		if (!lines->own)
			fputc(byte, lines->file);
		lines->inside = byte != '\n';
		return;
	}
	sb_addc(&lines->start, byte);
	if (strncmp(lines->start.text, prefix, lines->start.len) == 0 && byte != '\n') {
		lines->inside = lines->own = lines->start.len == sizeof prefix - 1;
	} else {
		fwrite(lines->start.text, 1, lines->start.len, lines->file);
		lines->own = false;
		lines->inside = byte != '\n';
	}
	if (lines->inside || byte == '\n')
		sb_clear(&lines->start);
}

static int read_log(const struct attempt_of *of, int node, struct own_lines *lines,
		    struct err **err)
{
	uint64_t offset = 0;
	size_t got = LOG_CHUNK;

	while (got == LOG_CHUNK) {
		AUTO(sb_release) struct sb chunk = SB_INIT_MAX(LOG_CHUNK);

		if (of->engine->ops->logs(of->engine, of->job, of->prefix, node, &offset, LOG_CHUNK,
					  &chunk, err) < 0)
			return -1;
		got = chunk.len;
		for (size_t i = 0; i < got; i++)
			pass_byte(lines, chunk.text[i]);
	}
	fwrite(lines->start.text ? lines->start.text : "", 1, lines->start.len, lines->file);
	return 0;
}

static int copy_log(const struct attempt_of *of, int node, const char *dest, struct err **err)
{
	AUTO(auto_free)
	char *name = mem_format("%s-%lld-node-%d.log", flow_phase_names[of->phase],
				(long long)of->attempt, node);
	AUTO(auto_free) char *path = fs_join(dest, name);
	AUTO(sb_release) struct sb start = SB_INIT;
	struct own_lines lines = { .file = fopen(path, "we"), .start = start };
	int result;

	if (!lines.file)
		return fs_error(err, errno, "cannot write '%s'", path);
	result = read_log(of, node, &lines, err);
	start = lines.start;
	if (fclose(lines.file) != 0 && result == 0)
		result = fs_error(err, errno, "cannot write '%s'", path);
	if (result < 0)
		return -1;
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
	const char *dest = args->operands[1];

	if (find_copied(args, &copied, err) < 0)
		return -1;
	if (strcmp(copied.what, "log") != 0)
		return copy_made(&copied, dest, err);
	if (fs_mkdirs(dest, err) < 0)
		return -1;
	for (int64_t node = 0; node < copied.of.nodes; node++)
		if (copy_log(&copied.of, (int)node, dest, err) < 0)
			return -1;
	return EXIT_DONE;
}
