/* cache ls, verify, why, gc: inspection and care of a compile cache. */
#include <inttypes.h>
#include <string.h>

#include "cmd/args/cache_args.h"
#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "cmd/view/plan_text.h"
#include "cmd/view/retrain_view.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/gc.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/cache/verdict/listing.h"
#include "jobs/run/journal/journal.h"

static int print_listing_row(void *arg, json_t *row, struct err **err)
{
	json_auto_t *owned = row;
	AUTO(auto_free) char *size = NULL;

	(void)arg;
	(void)err;
	if (out_is_json()) {
		out_json(owned);
		return 0;
	}
	size = text_format_bytes((uint64_t)js_int(row, "size_bytes", 0));
	out_line("%-8s %10s  locks: %-3zu %s", js_str(row, "state"), size,
		 json_array_size(json_object_get(row, "locks")), js_str(row, "graph"));
	return 0;
}

#define PASSED_OVER_SHOWN 10

/* Reports only the first few names that are not keys: a bucket may hold anything, even names
 * chosen by an attacker. */
static void warn_of_passed_over(void *arg, const char *name, const char *why)
{
	if (++*(int64_t *)arg <= PASSED_OVER_SHOWN)
		out_warning("passed over '%s': it %s", name, why);
}

int cmd_cache_ls(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	int64_t passed_over = 0;

	out_bulk(true);
	if (cache_args_open(args->operands[0], &store, err) < 0)
		return -1;
	store_on_unsafe_name(store, warn_of_passed_over, &passed_over);
	if (cache_list(store, print_listing_row, NULL, err) < 0)
		return -1;
	if (passed_over > PASSED_OVER_SHOWN)
		out_warning("passed over %" PRId64 " names in all", passed_over);
	return EXIT_DONE;
}

static int print_fault(void *arg, json_t *row, struct err **err)
{
	json_auto_t *owned = row;
	const char *path = js_str(row, "path"), *what = js_str(row, "what");

	(void)arg;
	(void)err;
	if (out_is_json())
		out_json(owned);
	out_line("%-9s %s%s%s", js_str(row, "state"), path ? path : js_str(row, "lock"),
		 what ? ": " : "", what ? what : "");
	return 0;
}

/* True for a cache, false for a spec. An operand that does not exist counts as a spec only if its
 * name ends in .yaml or .yml. */
static bool names_a_cache(const char *operand)
{
	const char *dot = strrchr(fs_basename(operand), '.');
	bool is_spec = dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);

	return fs_is_dir(operand) || strncmp(operand, "dir:", 4) == 0 ||
	       strncmp(operand, "s3:", 3) == 0 || strstr(operand, "://") ||
	       (!is_spec && !fs_exists(operand));
}

/* Makes the plan of the spec on the command line, and the view of its cache. */
static int view_of_spec(const struct args *args, struct plan **ret_plan, struct cache_view *ret,
			struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	int code;

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	code = spec_args_plan(args, journal, &spec, ret_plan, err);
	if (code != 0)
		return code;
	image_plan_try((*ret_plan)->json);
	return cache_view_make((*ret_plan)->json, ret, err);
}

/* Prints remedies for the findings; `spec` NULL: the whole cache was checked. */
static void print_cures(const struct cache_check *check, const char *cache, const char *spec)
{
	if (check->missing + check->truncated + check->changed > 0 && spec)
		out_hint("'stoker run %s' compiles the missing and damaged graphs", spec);
	else if (check->missing + check->truncated + check->changed > 0)
		out_hint("run the spec again to compile them; if the spec is no longer run, remove "
			 "the compile manifest '%s/" LOCK_PREFIX
			 "<graph key>.json', with the key as 'stoker --json cache ls' shows it",
			 cache);
	if (check->damaged_locks > 0)
		out_hint("remove the damaged compile manifests named above from '%s'; the next run "
			 "of their spec precompiles and writes new ones",
			 cache);
	if (check->others_bad > 0)
		out_hint("remove the damaged entries that no compile manifest names; a compiler "
			 "does not replace them");
}

int cmd_cache_verify(const struct args *args, struct err **err)
{
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	AUTO(store_freep) struct store *store = NULL;
	struct cache_check_options options = { .deep = true };
	struct cache_check check;
	bool well;

	if (names_a_cache(args->operands[0])) {
		if (cache_args_open(args->operands[0], &store, err) < 0)
			return -1;
	} else {
		int code = view_of_spec(args, &plan, &view, err);

		if (code != 0)
			return code;
		if (view.verdict == CACHE_NONE) {
			err_set(err, EXIT_REFUSED,
				"'%s' has no cache, because nothing is compiled ahead",
				args->operands[0]);
			return err_hint(err, "name a cache directory, or a spec with compile.kind");
		}
		if (view.verdict == CACHE_UNKNOWN) {
			err_set(err, EXIT_REFUSED, "%s", view.reason);
			return view.hint ? err_hint(err, "%s", view.hint) : -1;
		}
		if (!view.lock) {
			err_set(err, EXIT_GATE, "no compile manifest to verify against: %s",
				view.reason);
			return err_hint(err, "'stoker run %s' precompiles and writes one",
					args->operands[0]);
		}
		options.only = view.lock->graph_key;
		if (store_open(js_str(js_path(plan->json, "compile"), "cache"), &store, err) < 0)
			return -1;
	}
	if (cache_check(store, &options, print_fault, NULL, &check, err) < 0)
		return -1;
	well = check.missing + check.truncated + check.changed + check.damaged_locks +
		       check.others_bad ==
	       0;
	if (out_is_json()) {
		json_auto_t *total = json_pack(
			"{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "complete", well, "locks",
			(json_int_t)check.locks, "graphs", (json_int_t)check.graphs, "ok",
			(json_int_t)check.ok, "missing", (json_int_t)check.missing, "truncated",
			(json_int_t)check.truncated, "changed", (json_int_t)check.changed, "others",
			(json_int_t)check.others, "behind", (json_int_t)check.behind);

		out_json(total);
	}
	if (check.behind > 0)
		out_line("outdated compile manifests: %" PRId64
			 "; other runs have verified their graphs again, and the next run updates "
			 "the manifests",
			 check.behind);
	out_line("%" PRId64 " of %" PRId64
		 " graphs match their compile manifests; manifests: %" PRId64
		 ", entries in no manifest: %" PRId64,
		 check.ok, check.graphs, check.locks, check.others);
	print_cures(&check, store_url(store), options.only ? args->operands[0] : NULL);
	return well ? EXIT_DONE : EXIT_GATE;
}

int cmd_cache_why(const struct args *args, struct err **err)
{
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	json_auto_t *stages = NULL;
	int code = view_of_spec(args, &plan, &view, err);

	if (code != 0)
		return code;
	if (retrain_view_caches(plan->json, &stages, err) < 0)
		return -1;
	if (out_is_json()) {
		json_auto_t *object = plan_cache_json(plan->json, &view);

		json_object_update(object, stages);
		out_json(object);
	}
	if (view.verdict == CACHE_UNKNOWN)
		out_line("%s", view.reason);
	else
		out_line("%s: %s", flow_cache_state_names[view.verdict], view.reason);
	if (view.hint)
		out_hint("%s", view.hint);
	plan_text_print_changes(view.changed, SIZE_MAX);
	retrain_view_print_caches(stages);
	return EXIT_DONE;
}

/* --- gc --- */

#define GC_AGE "1d"

static int gc_age(const struct args *args, const char **ret_text, int64_t *ret, struct err **err)
{
	*ret_text = args->given[OPT_OLDER_THAN] ? args->value[OPT_OLDER_THAN] : GC_AGE;
	if (!text_duration(*ret_text, ret)) {
		err_set(err, EXIT_USAGE, "--older-than needs an age, not '%s'", *ret_text);
		return err_hint(err, "write, for instance, --older-than 30d");
	}
	if (*ret < GC_AGE_LEAST) {
		err_set(err, EXIT_USAGE,
			"--older-than %s is less than a day: a run may not have named such young "
			"graphs in its compile manifest yet",
			*ret_text);
		return err_hint(err, "give a day or more, or omit --older-than");
	}
	return 0;
}

static int print_old(void *arg, json_t *row, struct err **err)
{
	json_auto_t *owned = row;
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)js_int(row, "size_bytes", 0));
	const char *why = js_str(row, "why");

	(void)arg;
	(void)err;
	if (out_is_json())
		out_json(owned);
	out_line("%-8s %-8s %10s  %.10s  %s%s%s", js_str(row, "action"), js_str(row, "state"), size,
		 js_str(row, "modified"), js_str(row, "graph"), why ? ": " : "", why ? why : "");
	return 0;
}

static void print_gc_sum(const struct gc_sum *sum, bool removed, const char *age, int64_t age_ms)
{
	AUTO(auto_free) char *size = text_format_bytes(sum->bytes);
	const int64_t *graphs = sum->graphs;

	if (out_is_json()) {
		json_auto_t *total = json_pack(
			"{s:b, s:I, s:I, s:f, s:I, s:{s:I, s:I, s:I, s:I}}", "removed", removed,
			"graphs", (json_int_t)graphs[GC_GOES], "size_bytes", (json_int_t)sum->bytes,
			"older_than", (double)age_ms / 1000, "locks", (json_int_t)sum->locks,
			"kept", "named", (json_int_t)graphs[GC_NAMED], "young",
			(json_int_t)graphs[GC_YOUNG], "compiling", (json_int_t)graphs[GC_COMPILING],
			"unknown", (json_int_t)graphs[GC_UNKNOWN]);

		out_json(total);
	}
	out_line("graphs that %s: %" PRId64 ", %s; that stay: %" PRId64 " in %" PRId64
		 " compile manifests, %" PRId64 " younger than %s, %" PRId64
		 " being compiled, %" PRId64 " with entries of no known form",
		 removed ? "are gone" : "may go", graphs[GC_GOES], size, graphs[GC_NAMED],
		 sum->locks, graphs[GC_YOUNG], age, graphs[GC_COMPILING], graphs[GC_UNKNOWN]);
	if (sum->folders_left)
		out_warning("some folders and their files could not be removed");
	if (!removed && graphs[GC_GOES] > 0 && sum->locks == 0)
		out_warning("no compile manifest found: graphs are judged by their age alone");
	if (!removed && graphs[GC_GOES] > 0)
		out_note("nothing was changed; --delete removes the graphs");
}

int cmd_cache_gc(const struct args *args, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	struct gc_options options = { .now = clock_utc_now(), .remove = args->given[OPT_DELETE] };
	struct gc_sum sum;
	const char *age;
	int done;

	if (gc_age(args, &age, &options.older_ms, err) < 0 ||
	    cache_args_open(args->operands[0], &store, err) < 0)
		return -1;
	done = cache_gc(store, &options, print_old, NULL, &sum, err);
	/* Entries removed before the failure are gone all the same. */
	if (done == 0 || sum.graphs[GC_GOES] > 0)
		print_gc_sum(&sum, options.remove, age, options.older_ms);
	return done < 0 ? -1 : EXIT_DONE;
}
