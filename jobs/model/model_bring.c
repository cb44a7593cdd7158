/* Bringing a model, its manifests and its evidence into the folder of their version: see model.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/model/model_internal.h"
#include "jobs/store/store_copy.h"

#define FILES_MAX ((size_t)200 * 1000)

/* A file of the source, as it is listed there. */
struct model_file {
	char *path; /* relative to the model; "" if it is one file. Owned */
	uint64_t size;
	char tag[STORE_TAG];
};

/* A call of model_bring(). */
struct model_bringing {
	struct model *model;
	const struct model_source *source;
	struct store *from;
	char *name; /* of the model in `from` */
	char *to;   /* key of the model in the folder */
	bool single;
	struct model_file *files; /* sorted by path */
	size_t count;
	json_t *described; /* owned: {path: its row in source->files} */
	uint64_t done, total;
	model_progress_fn fn;
	void *arg;
};

static void bringing_release(struct model_bringing *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->files[i].path);
	free(b->files);
	free(b->name);
	free(b->to);
	json_decref(b->described);
	store_freep(&b->from);
}

static bool on_moved(void *arg, uint64_t bytes)
{
	struct model_bringing *b = arg;

	b->done += bytes;
	return !b->fn || b->fn(b->arg, b->done < b->total ? b->done : b->total, b->total);
}

/* ---- the source ---- */

static int add_file(struct model_bringing *b, const char *path, const struct store_object *object,
		    struct err **err)
{
	struct model_file *file;

	if (b->count == FILES_MAX)
		return err_set(err, EXIT_REFUSED, "'%s' has more than %zu files", b->source->url,
			       FILES_MAX);
	b->files = mem_room(b->files, b->count, sizeof *b->files);
	file = &b->files[b->count++];
	file->path = mem_copy(path);
	file->size = object->size;
	memcpy(file->tag, object->tag, sizeof file->tag);
	b->total += object->size;
	return 0;
}

static int on_listed(void *arg, const struct store_object *object, struct err **err)
{
	struct model_bringing *b = arg;
	const char *path = object->key + strlen(b->name) + 1;

	/* Files of ours beside those of the script, such as a sync's manifest, are not listed. */
	return add_file(b, path, object, err);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_file *)a)->path, ((const struct model_file *)b)->path);
}

static int find_source(struct model_bringing *b, struct err **err)
{
	AUTO(auto_free) char *above = fs_dirname(b->source->url);
	AUTO(auto_free) char *prefix = NULL;
	struct store_object object;
	int there;

	b->name = mem_copy(fs_basename(b->source->url));
	if (!store_key_fits(b->name, false))
		return err_set(err, EXIT_REFUSED, "'%s' cannot be the name of a model",
			       b->source->url);
	if (store_open(above, &b->from, err) < 0)
		return -1;
	there = store_stat(b->from, b->name, &object, err);
	if (there < 0)
		return -1;
	b->single = there > 0;
	prefix = mem_format("%s/", b->name);
	if (b->single ? add_file(b, "", &object, err) < 0
		      : store_list(b->from, prefix, on_listed, b, err) < 0)
		return -1;
	if (b->count == 0) {
		err_set(err, EXIT_REFUSED, "nothing is left of the model at '%s'", b->source->url);
		return err_hint(err, "restore it from a copy, or promote another run");
	}
	qsort(b->files, b->count, sizeof *b->files, by_path);
	return 0;
}

static int differs(const struct model_bringing *b, const char *path, const char *why,
		   struct err **err)
{
	err_set(err, EXIT_GATE, "the model at '%s' differs from what the run wrote: %s%s%s",
		b->source->url, *path ? path : b->name, *why ? " " : "", why);
	return err_hint(err, "restore it from a copy, or promote another run");
}

/* Compares what is listed with what the run's records say. */
static int check_source(struct model_bringing *b, struct err **err)
{
	size_t found = 0, i;
	json_t *row;

	b->described = json_object();
	json_array_foreach (b->source->files, i, row)
		if (js_str(row, "path"))
			json_object_set(b->described, js_str(row, "path"), row);
	for (i = 0; b->source->files && i < b->count; i++) {
		const struct model_file *file = &b->files[i];
		const json_t *want = json_object_get(b->described, file->path);
		const char *tag = js_str(want, "tag");

		if (!want)
			return differs(b, file->path, "was not there", err);
		if ((uint64_t)js_int(want, "size", -1) != file->size)
			return differs(b, file->path, "has another size", err);
		if (tag && strcmp(tag, file->tag) != 0)
			return differs(b, file->path, "was written again", err);
		found++;
	}
	if (found != json_object_size(b->described))
		return differs(b, "a file", "is missing", err);
	return 0;
}

/* ---- copying ---- */

static int copy_one(struct model_bringing *b, const struct model_file *file, json_t *files,
		    struct err **err)
{
	const char *slash = b->single ? "" : "/";
	AUTO(auto_free) char *from = mem_format("%s%s%s", b->name, slash, file->path);
	AUTO(auto_free) char *key = mem_format("%s%s%s", b->to, slash, file->path);
	const char *want = js_str(json_object_get(b->described, file->path), "sha256");
	struct store_object object = { .key = from, .size = file->size };
	char sha256[SHA256_HEX];
	uint64_t before = b->done;
	int copied;

	memcpy(object.tag, file->tag, sizeof object.tag);
	copied = store_copy(b->from, &object, b->model->store, key, want, on_moved, b, sha256, err);
	if (copied == 0)
		return differs(b, file->path, "changed while it was copied", err);
	/* A copy that S3 made in parts has the bytes of its source, whose tag is known. */
	if (copied > 0 && !sha256[0] && want && !store_directory(b->model->store) &&
	    !store_directory(b->from))
		memcpy(sha256, want, SHA256_HEX);
	else if (copied > 0 && !sha256[0])
		copied = store_sha256(b->model->store, key, on_moved, b, sha256, NULL, err);
	if (copied <= 0)
		return copied < 0 ? err_wrap(err, "cannot copy the model")
				  : differs(b, file->path, "is gone from its copy", err);
	if (want && strcmp(want, sha256) != 0)
		return differs(b, file->path, "has another SHA-256", err);
	b->done = before + file->size;
	json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "path", file->path, "size",
					       (json_int_t)file->size, "sha256", sha256));
	return 0;
}

int model_bring(struct model *model, const struct model_source *source, model_progress_fn fn,
		void *arg, json_t **ret, struct err **err)
{
	AUTO(bringing_release)
	struct model_bringing b = { .model = model, .source = source, .fn = fn, .arg = arg };
	AUTO(auto_free) char *prefix = model_files_prefix(source->run);
	json_auto_t *files = json_array();

	if (find_source(&b, err) < 0 || check_source(&b, err) < 0)
		return -1;
	b.to = mem_format("%s%" PRId64 "/%s", prefix, source->attempt, b.name);
	for (size_t i = 0; i < b.count; i++)
		if (copy_one(&b, &b.files[i], files, err) < 0)
			return -1;
	*ret = json_object();
	js_put_str(*ret, "path", b.to);
	js_put(*ret, "attempt", json_integer(source->attempt));
	if (b.single)
		js_put(*ret, "single", json_true());
	js_put(*ret, "bytes", json_integer((json_int_t)b.total));
	js_put(*ret, "files", json_incref(files));
	return 0;
}

/* ---- manifests and evidence ---- */

static json_t *kept_file(const char *key, uint64_t size, const char *sha256)
{
	return json_pack("{s:s, s:I, s:s}", "file", key, "size", (json_int_t)size, "sha256",
			 sha256);
}

int model_keep_bytes(struct model *model, const char *run, const char *what, const char *ending,
		     const void *bytes, size_t len, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(sb_release) struct sb there = SB_INIT_MAX(len + 1);
	char sha256[SHA256_HEX];
	int written;

	hash_sha256_hex(bytes, len, sha256);
	key = mem_format(MODEL_VERSIONS "%s/evidence/%s-%.16s%s", run, what, sha256, ending);
	written = store_put_if_absent(model->store, key, bytes, len, err);
	if (written < 0)
		return -1;
	if (written == 0) {
		if (store_get(model->store, key, len, &there, NULL, err) < 0)
			return -1;
		/* The object's name is the digest of the bytes, so anything else there is
		 * damage. */
		if ((there.len != len || memcmp(there.text, bytes, len) != 0) &&
		    store_put(model->store, key, bytes, len, err) < 0)
			return -1;
	}
	*ret = kept_file(key, len, sha256);
	return 0;
}

int model_keep_object(struct model *model, const char *run, const char *url, const char *want,
		      json_t **ret, struct err **err)
{
	AUTO(store_freep) struct store *from = NULL;
	AUTO(auto_free) char *above = fs_dirname(url);
	AUTO(auto_free) char *key = NULL;
	struct store_object object;
	const char *name = fs_basename(url);
	char sha256[SHA256_HEX], copied[SHA256_HEX];
	uint64_t size;
	int there;

	if (store_open(above, &from, err) < 0)
		return -1;
	there = store_sha256(from, name, NULL, NULL, sha256, &size, err);
	if (there > 0)
		there = store_stat(from, name, &object, err);
	if (there < 0)
		return -1;
	if (there == 0 || (want && strcmp(want, sha256) != 0)) {
		err_set(err, EXIT_GATE, "'%s' %s", url,
			there == 0 ? "is gone" : "is not what the run was given");
		return err_hint(err, "restore it from a copy, or promote another run");
	}
	key = model_list_key(run, sha256);
	there = store_copy(from, &object, model->store, key, sha256, NULL, NULL, copied, err);
	if (there > 0 && !copied[0])
		there = store_sha256(model->store, key, NULL, NULL, copied, NULL, err);
	if (there < 0)
		return -1;
	if (there == 0 || strcmp(copied, sha256) != 0)
		return err_set(err, EXIT_REFUSED, "'%s' changed while it was copied", url);
	*ret = kept_file(key, size, sha256);
	return 0;
}
