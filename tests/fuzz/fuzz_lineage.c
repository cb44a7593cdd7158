/*
 * Entries and pointers of promoted models, which lie where others may write. The input is a body,
 * which gets its sum as the writer would give it, since no fuzzer hits a digest; as it came it is
 * read too, as an entry and as a pointer.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/base/text/text.h"
#include "jobs/model/model_internal.h"
#include "jobs/model/model_version.h"

/* Files that an entry names lie in its version, and nowhere else. */
static int check_named(void *arg, const struct model_named *named, struct err **err)
{
	const char *run = arg;
	AUTO(auto_free) char *folder = mem_format(MODEL_VERSIONS "%s/", run);

	(void)err;
	MUST(store_key_fits(named->key, false) && text_starts(named->key, folder));
	MUST(model_is_digest(named->sha256));
	if (named->is_model) {
		AUTO(auto_free) char *model = model_files_prefix(run);

		MUST(text_starts(named->key, model));
	}
	return 0;
}

static void check_error(const struct err *err)
{
	MUST(err && err->code == EXIT_REFUSED && err->hint);
	for (const char *at = err->message; *at; at++)
		MUST((unsigned char)*at >= ' ' && *at != 0x7f);
}

static void read_entry(const char *text, size_t len, int64_t generation)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(model_entry_release) struct model_entry alien = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *other = NULL;
	const json_t *run;
	size_t i;

	if (model_entry_parse(text, len, "it", generation, NULL, &entry, &err) < 0) {
		check_error(err);
		return;
	}
	MUST(entry.generation == generation && model_is_digest(entry.digest));
	MUST(text_run_id_valid(js_str(entry.body, "run")));
	MUST((generation > 1) == (js_str(entry.body, "before") != NULL));
	MUST(model_version_each(json_object_get(entry.body, "version"), check_named,
				(void *)(uintptr_t)js_str(entry.body, "run"), &err) == 0);
	json_array_foreach (json_object_get(entry.body, "removed"), i, run)
		MUST(text_run_id_valid(json_string_value(run)));
	MUST(model_entry_parse(text, len, "it", generation, "\n", &alien, &other) < 0);
}

static void read_pointer(const char *text, size_t len)
{
	AUTO(err_freep) struct err *err = NULL;
	struct model_pointer pointer = { 0 };

	if (model_pointer_parse(text, len, "it", NULL, &pointer, &err) < 0)
		check_error(err);
	else
		MUST(pointer.generation > 0 && model_is_digest(pointer.digest) &&
		     (!pointer.seen[0] ||
		      (model_is_digest(pointer.seen) && text_run_id_valid(pointer.run))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *copy = span_copy((struct span){ (const char *)data, size });
	AUTO(auto_free) char *sealed = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = NULL;
	int64_t generation;

	read_entry(copy, size, 1);
	read_pointer(copy, size);
	if (js_parse(copy, size, "it", &body, &err) < 0)
		return 0;
	if (!json_is_object(body)) {
		json_decref(body);
		return 0;
	}
	json_object_del(body, "sum");
	generation = js_int(body, "generation", 1);
	sealed = model_seal(body);
	read_entry(sealed, strlen(sealed), generation);
	read_pointer(sealed, strlen(sealed));
	return 0;
}
