/* cache pull, cache push: copies missing entries from one compile cache to another. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/args/cache_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/cache_transfer.h"

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
		js_put(row, "size", json_integer((json_int_t)size));
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
					       "bytes", (json_int_t)sum->bytes[SYNC_MOVED],
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

static int transfer_cache(const struct args *args, struct store *from, struct store *to,
			  struct err **err)
{
	struct ticker ticker = { .draws = out_draws(), .dry_run = args->given[OPT_DRY_RUN] };
	struct sync_options options = {
		.only = args->value[OPT_ONLY],
		.dry_run = ticker.dry_run,
		.stage = cache_stage,
		.on_object = print_object,
		.progress = ticker_show,
		.arg = &ticker,
	};
	struct sync_sum sum;
	int result;

	if (options.only && !store_key_fits(options.only, true)) {
		err_set(err, EXIT_USAGE, "--only cannot be '%s'", options.only);
		return err_hint(err, "write the beginning of a path in the cache, such as stoker/");
	}
	out_bulk(true);
	result = sync_run(from, to, &options, &sum, err);
	ticker_clear(&ticker);
	/* Objects copied before the failure stay there. */
	if (result == 0 || sum.objects[SYNC_MOVED] > 0)
		print_sum(&sum, ticker.dry_run);
	if (result < 0)
		return -1;
	return sum.objects[SYNC_FAILED] > 0 ? EXIT_REFUSED : EXIT_DONE;
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
