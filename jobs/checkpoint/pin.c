/* Pins of models: taken and written for a run, read and proved on its nodes. See pin.h. */
#include "jobs/checkpoint/pin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/pin_tree.h"
#include "jobs/store/store_json.h"

#define PIN_VERSION 1
#define PIN_MAX     ((size_t)256 << 20) /* enough for a million files */

void checkpoint_pin_release(struct ckpt_pin *pin)
{
	free(pin->url);
	free(pin->device);
	json_decref(pin->files);
	*pin = (struct ckpt_pin){ 0 };
}

static int refuse(const char *url, const char *why, const char *hint, struct err **err)
{
	err_set(err, EXIT_REFUSED, "the model '%s' cannot be used: %s", url, why);
	err_damage(err);
	return hint ? err_hint(err, "%s", hint) : -1;
}

/* ---- the object ---- */

static json_t *pin_body(const struct ckpt_pin *pin)
{
	json_t *body = json_object();

	js_put(body, "v", json_integer(PIN_VERSION));
	js_put_str(body, "url", pin->url);
	js_put_str(body, "kind", checkpoint_kind_name(pin->kind));
	js_put_str(body, "device", pin->device);
	if (pin->world_size > 0)
		js_put(body, "world_size", json_integer(pin->world_size));
	js_put(body, "files", json_incref(pin->files));
	return body;
}

static bool path_is_plain(const char *path)
{
	return !*path || store_key_fits(path, false);
}

static bool file_is_good(const json_t *file)
{
	const char *path = js_str(file, "path"), *ends = js_str(file, "ends");
	const char *sha256 = js_str(file, "sha256");

	return path && path_is_plain(path) && js_int(file, "size", -1) >= 0 &&
	       (!ends || strlen(ends) == SHA256_HEX - 1) &&
	       (!sha256 || strlen(sha256) == SHA256_HEX - 1);
}

/* Fills size and digest of a pin that has all else. Returns false if its files are not as they
 * should be. */
static bool pin_complete(struct ckpt_pin *pin)
{
	json_auto_t *body = NULL;
	const char *before = NULL;
	json_t *file;
	size_t i;

	if (json_array_size(pin->files) == 0)
		return false;
	pin->bytes = 0;
	json_array_foreach (pin->files, i, file) {
		const char *path = js_str(file, "path");

		if (!file_is_good(file) || (before && (!*before || strcmp(before, path) >= 0)))
			return false;
		pin->bytes += (uint64_t)js_int(file, "size", 0);
		before = path;
	}
	body = pin_body(pin);
	js_digest(body, pin->digest);
	return true;
}

static char *pin_key(const char *digest)
{
	return mem_format("pins/%s.json", digest);
}

int checkpoint_pin_put(const struct ckpt_pin *pin, struct store *workspace, struct err **err)
{
	AUTO(auto_free) char *key = pin_key(pin->digest);
	json_auto_t *body = pin_body(pin);

	return store_json_replace(workspace, key, NULL, body, err) < 0 ? -1 : 0;
}

static bool pin_read(const json_t *body, const char *digest, struct ckpt_pin *ret)
{
	const char *kind = js_str(body, "kind"), *url = js_str(body, "url");
	const char *device = js_str(body, "device");

	*ret = (struct ckpt_pin){ .kind = kind ? checkpoint_kind_find(kind) : NULL,
				  .url = mem_copy(url ? url : ""),
				  .device = device ? mem_copy(device) : NULL,
				  .world_size = js_int(body, "world_size", 0),
				  .files = json_incref(json_object_get(body, "files")) };
	return js_int(body, "v", 0) == PIN_VERSION && url && ret->kind && ret->kind->prove &&
	       pin_complete(ret) && strcmp(ret->digest, digest) == 0;
}

int checkpoint_pin_get(struct store *workspace, const char *digest, struct ckpt_pin *ret,
		       struct err **err)
{
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };
	AUTO(auto_free) char *key = pin_key(digest);
	json_auto_t *body = NULL;
	int there = store_key_fits(key, false)
			    ? store_json_get(workspace, key, PIN_MAX, &body, NULL, err)
			    : 0;

	if (there < 0)
		return -1;
	if (there == 0 || !pin_read(body, digest, &pin)) {
		err_set(err, EXIT_REFUSED, "the list of a model's files, '%s/%s', is %s",
			store_url(workspace), key, there ? "damaged" : "not found");
		err_damage(err);
		return err_hint(err, "begin a new run, which makes it again");
	}
	*ret = pin;
	pin = (struct ckpt_pin){ 0 };
	return 0;
}

int checkpoint_pin_known(const char *url, const struct ckpt_kind *kind, const json_t *files,
			 struct ckpt_pin *ret, struct err **err)
{
	AUTO(checkpoint_pin_release)
	struct ckpt_pin pin = { .url = mem_copy(url),
				.kind = kind,
				.files = json_incref((json_t *)(uintptr_t)files) };

	if (!pin_complete(&pin))
		return refuse(url, "the list of its files is damaged", NULL, err);
	*ret = pin;
	pin = (struct ckpt_pin){ 0 };
	return 0;
}

/* ---- proof and digest of a model ---- */

/* Proves a model by its own files. Returns 0 with its kind, or -1. */
static int prove(const struct checkpoint_tree *tree, const char *url, const struct ckpt_kind *kind,
		 const char *hint, const struct ckpt_kind **ret_kind, struct err **err)
{
	const char *name = fs_basename(url);
	const struct checkpoint_check check = { .tree = tree, .name = name };
	struct ckpt ckpt = { .kind = kind_of(kind, &check), .name = mem_copy(name) };
	bool sound;

	if (!ckpt.kind->named(name, !tree->single, &ckpt.step))
		ckpt.step = -1;
	sound = candidate_sound(tree, &ckpt, NULL);
	if (!sound)
		refuse(url, ckpt.why, hint, err);
	*ret_kind = ckpt.kind;
	checkpoint_release(&ckpt);
	return sound ? 0 : -1;
}

static int not_found(const char *url, const char *hint, struct err **err)
{
	err_set(err, EXIT_REFUSED, "the model '%s' is not found", url);
	err_damage(err);
	return hint ? err_hint(err, "%s", hint) : -1;
}

static void take_mark(struct ckpt_pin *pin, struct ckpt_mark *mark)
{
	json_decref(pin->files);
	pin->files = json_incref(mark->files);
	pin->device = mark->device ? mem_copy(mark->device) : NULL;
	pin->world_size = mark->world_size;
}

static int take_folder(struct ckpt_pin *pin, const char *hint, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(auto_free) char *above = fs_dirname(pin->url);
	AUTO(auto_free) char *why = NULL;
	const struct ckpt_root root = { .path = above };
	int there = checkpoint_tree_read(pin->url, &tree, err);

	if (there <= 0)
		return there < 0 ? -1 : not_found(pin->url, hint, err);
	there = checkpoint_mark_read(&root, fs_basename(pin->url), &mark, err);
	if (there < 0)
		return -1;
	why = there ? mark_files_differ(&mark, &tree) : NULL;
	if (why)
		return refuse(pin->url, why, hint, err);
	if (prove(&tree, pin->url, pin->kind, hint, &pin->kind, err) < 0 ||
	    mark_files_of(&tree, &pin->files, err) < 0)
		return -1;
	if (there)
		take_mark(pin, &mark);
	return 0;
}

/* True if the URL names a bucket, and nothing in it. */
static bool is_bucket(const char *url)
{
	const char *bucket = strstr(url, "://");

	return bucket && !strchr(bucket + 3, '/');
}

static int take_store(struct ckpt_pin *pin, const char *hint, struct err **err)
{
	AUTO(pin_tree_release) struct pin_tree far = { .tree = TREE_INIT };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *above = fs_dirname(pin->url);
	AUTO(auto_free) char *why = NULL;
	struct ckpt_root root = { .path = "" };
	int there;

	if (is_bucket(pin->url))
		return not_found(pin->url, hint, err);
	if (store_open(above, &store, err) < 0)
		return -1;
	root.store = store;
	there = pin_tree_list(&far, &root, fs_basename(pin->url), err);
	if (there <= 0)
		return there < 0 ? -1 : not_found(pin->url, hint, err);
	there = checkpoint_mark_read(&root, fs_basename(pin->url), &mark, err);
	if (there < 0 || (there > 0 && checkpoint_mark_holds(&mark, &why, err) < 0))
		return -1;
	if (why)
		return refuse(pin->url, why, hint, err);
	if (prove(&far.tree, pin->url, pin->kind, hint, &pin->kind, err) < 0) {
		if (far.why) { /* not a fault of the model */
			err_freep(err);
			*err = TAKE(far.why);
		}
		return -1;
	}
	pin->files = json_incref(far.files);
	if (there)
		take_mark(pin, &mark);
	return 0;
}

int checkpoint_pin_take(const char *url, const struct ckpt_kind *kind, const char *hint,
			struct ckpt_pin *ret, struct err **err)
{
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { .kind = kind };
	size_t len = strlen(url);
	int done;

	while (len > 1 && url[len - 1] == '/')
		len--;
	pin.url = mem_copy_n(url, len);
	if (url[0] == '/') {
		char *real = realpath(pin.url, NULL);

		if (!real && (errno == ENOENT || errno == ENOTDIR))
			return not_found(pin.url, hint, err);
		if (!real)
			return fs_error(err, errno, "cannot read '%s'", pin.url);
		free(pin.url);
		pin.url = real;
		done = take_folder(&pin, hint, err);
	} else {
		done = take_store(&pin, hint, err);
	}
	if (done < 0)
		return -1;
	if (!pin_complete(&pin))
		return refuse(pin.url, "a file in it has a name that no object can have", hint,
			      err);
	*ret = pin;
	pin = (struct ckpt_pin){ 0 };
	return 0;
}

/* ---- models on a node ---- */

/* Compares all bytes of the files of which the pin has the sum. */
static char *sums_differ(const struct ckpt_pin *pin, const struct checkpoint_tree *tree,
			 struct err **err)
{
	json_t *file;
	size_t i;

	json_array_foreach (pin->files, i, file) {
		const char *path = js_str(file, "path"), *sha256 = js_str(file, "sha256");
		const struct checkpoint_tree_file *now = checkpoint_tree_find(tree, path);
		AUTO(auto_close) int fd = sha256 && now ? checkpoint_tree_open(tree, now) : -1;
		char hex[SHA256_HEX];

		if (!sha256)
			continue;
		if (fd < 0 || hash_sha256_range(fd, 0, now->size, hex, err) < 0)
			return mem_format("'%s' cannot be read",
					  *path ? path : fs_basename(pin->url));
		if (strcmp(hex, sha256) != 0)
			return mem_format("'%s' has changed", *path ? path : fs_basename(pin->url));
	}
	return NULL;
}

/* The pin as a mark, which has the files and where they are. All is borrowed. */
static struct ckpt_mark as_mark(const struct ckpt_pin *pin, struct store *store)
{
	return (struct ckpt_mark){ .name = (char *)(uintptr_t)fs_basename(pin->url),
				   .url = pin->url,
				   .root = (char *)(uintptr_t) "",
				   .store = store,
				   .kind = pin->kind,
				   .step = -1,
				   .files = pin->files };
}

static int download(const struct ckpt_pin *pin, const char *folder, struct err **err)
{
	AUTO(auto_free) char *above = fs_dirname(pin->url);
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *why = NULL;
	struct ckpt_mark mark;
	int there;

	if (store_open(above, &store, err) < 0)
		return -1;
	mark = as_mark(pin, store);
	there = checkpoint_fetch(&mark, folder, &why, err);
	if (there == 0)
		return refuse(pin->url, why, "restore it, or choose another model", err);
	return there < 0 ? -1 : 0;
}

static int prove_here(const struct ckpt_pin *pin, const char *path, struct err **err)
{
	static const char hint[] = "restore it, or choose another model";
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	const struct ckpt_mark mark = as_mark(pin, NULL);
	AUTO(auto_free) char *why = NULL;
	const struct ckpt_kind *kind;
	int there = checkpoint_tree_read(path, &tree, err);

	if (there <= 0)
		return there < 0 ? -1 : not_found(pin->url, hint, err);
	why = mark_files_differ(&mark, &tree);
	if (!why)
		why = sums_differ(pin, &tree, err);
	if (why) {
		err_freep(err);
		return refuse(pin->url, why, hint, err);
	}
	return prove(&tree, pin->url, pin->kind, hint, &kind, err);
}

int checkpoint_pin_fetch(const struct ckpt_pin *pin, const char *folder, char **ret_path,
			 struct err **err)
{
	bool here = pin->url[0] == '/';
	AUTO(auto_free)
	char *path = here ? mem_copy(pin->url) : fs_join(folder, fs_basename(pin->url));

	if ((!here && download(pin, folder, err) < 0) || prove_here(pin, path, err) < 0)
		return -1;
	*ret_path = TAKE(path);
	return 0;
}

int checkpoint_pin_sums(const char *path, json_t **ret, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	json_auto_t *files = json_array();
	int there = checkpoint_tree_read(path, &tree, err);

	if (there <= 0)
		return there < 0 ? -1 : not_found(path, NULL, err);
	for (size_t i = 0; i < tree.count; i++) {
		AUTO(auto_close) int fd = checkpoint_tree_open(&tree, &tree.files[i]);
		json_t *one = json_object();
		char hex[SHA256_HEX];

		json_array_append_new(files, one);
		if (fd < 0)
			return fs_error(err, errno, "cannot read '%s/%s'", path,
					tree.files[i].path);
		if (hash_sha256_range(fd, 0, tree.files[i].size, hex, err) < 0)
			return -1;
		js_put_str(one, "path", tree.files[i].path);
		js_put(one, "size", json_integer((json_int_t)tree.files[i].size));
		js_put_str(one, "sha256", hex);
	}
	*ret = TAKE(files);
	return 0;
}

/* ---- the world size ---- */

int checkpoint_pin_fits(const struct ckpt_pin *pin, int64_t world_size, struct err **err)
{
	AUTO(pin_tree_release) struct pin_tree named = { .tree = TREE_INIT };
	struct checkpoint_check check = { .tree = &named.tree, .name = fs_basename(pin->url) };
	const char *kind = checkpoint_kind_name(pin->kind);
	int64_t ranks = pin->world_size;
	bool exact = true;

	if (!pin->kind->ranks || world_size <= 0)
		return 0;
	if (ranks == 0) {
		pin_tree_name(&named, pin->files);
		ranks = pin->kind->ranks(&check, &exact);
	}
	if (ranks == 0 || (exact ? ranks == world_size : world_size % ranks == 0))
		return 0;
	if (exact)
		err_set(err, EXIT_REFUSED,
			"the model '%s' was saved by %" PRId64
			" processes, and this training has %" PRId64
			": files of kind '%s' depend on that number",
			pin->url, ranks, world_size, kind);
	else
		err_set(err, EXIT_REFUSED,
			"the model '%s' is of %" PRId64
			" ranks in parallel, which do not divide the %" PRId64
			" processes of this training: files of kind '%s' depend on that number",
			pin->url, ranks, world_size, kind);
	return err_hint(err, "train with as many processes, or set parent.reshard: true if the "
			     "command loads such files with another number");
}
