/* The compile manifest as a file: see compile_manifest.h. */
#include "jobs/cache/manifest/compile_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/listing.h"
#include "jobs/store/store_json.h"

#define LOCK_SUFFIX ".json"

void compile_manifest_freep(struct compile_manifest **lock)
{
	struct compile_manifest *old = *lock;

	if (!old)
		return;
	for (size_t i = 0; i < old->count; i++) {
		free(old->graphs[i].key);
		free(old->graphs[i].path);
		free(old->graphs[i].proved_by);
	}
	free(old->graphs);
	free(old->name);
	free(old->run);
	free(old->image);
	json_decref(old->compiler);
	json_decref(old->ingredients);
	free(old);
	*lock = NULL;
}

static json_t *graph_json(const struct manifest_graph *graph)
{
	json_t *row = json_object();
	char at[UTC_TEXT];

	js_put(row, "key", js_text(graph->key, strlen(graph->key)));
	js_put(row, "path", js_text(graph->path, strlen(graph->path)));
	js_put(row, "size", json_integer((json_int_t)graph->size));
	js_put_str(row, graph->tagged ? "etag" : "sha256", graph->digest);
	if (graph->late)
		js_put(row, "late", json_true());
	if (graph->proved_by)
		js_put(row, "proved",
		       json_pack("{s:s, s:s}", "run", graph->proved_by, "at",
				 clock_utc_format(graph->proved_at, at)));
	return row;
}

static json_t *lock_json(const struct compile_manifest *lock)
{
	json_t *ret = json_object(), *graphs = json_array();
	char created[UTC_TEXT];

	js_put(ret, "v", json_integer(1));
	js_put_str(ret, "graph_key", lock->graph_key);
	js_put_str(ret, "name", lock->name);
	js_put_str(ret, "kind", lock->kind->name);
	js_put_str(ret, "created", clock_utc_format(lock->created, created));
	js_put_str(ret, "run", lock->run);
	js_put(ret, "compiler", json_incref(lock->compiler));
	js_put(ret, "ingredients", json_incref(lock->ingredients));
	js_put_str(ret, "image", lock->image);
	for (size_t i = 0; i < lock->count; i++)
		json_array_append_new(graphs, graph_json(&lock->graphs[i]));
	js_put(ret, "graphs", graphs);
	return ret;
}

bool compile_manifest_key_is_good(const char *graph_key)
{
	return strlen(graph_key) == SHA256_HEX - 1 &&
	       strspn(graph_key, "0123456789abcdef") == SHA256_HEX - 1;
}

char *compile_manifest_object_key(const char *graph_key)
{
	return mem_format(LOCK_PREFIX "%s" LOCK_SUFFIX, graph_key);
}

/* The graph key in the object name of a manifest; NULL for other names. */
static char *key_of_object(const char *object)
{
	AUTO(auto_free) char *key = NULL;
	size_t len = strlen(object), prefix = strlen(LOCK_PREFIX), suffix = strlen(LOCK_SUFFIX);

	if (len <= prefix + suffix || strncmp(object, LOCK_PREFIX, prefix) != 0 ||
	    strcmp(object + len - suffix, LOCK_SUFFIX) != 0)
		return NULL;
	key = mem_copy_n(object + prefix, len - prefix - suffix);
	return compile_manifest_key_is_good(key) ? TAKE(key) : NULL;
}

/* A string member without NUL bytes; NULL for anything else. */
static const char *text_member(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool digest_is_good(const char *digest, bool tagged)
{
	if (tagged)
		return digest[0] && strlen(digest) < STORE_TAG;
	return compile_manifest_key_is_good(digest);
}

/* Returns NULL if the graph is valid, else the fault. A path is accepted only if it is that of the
 * graph's own compiled object: a manifest may cause the deletion of the entries that it names. */
static const char *read_graph(const json_t *row, const struct compile_kind *kind,
			      struct manifest_graph *ret)
{
	const json_t *proved = json_object_get(row, "proved");
	const char *run = text_member(proved, "run"), *at = text_member(proved, "at");
	const char *key = text_member(row, "key"), *path = text_member(row, "path");
	const char *sha256 = text_member(row, "sha256"), *etag = text_member(row, "etag");
	const char *digest = sha256 ? sha256 : etag;
	int64_t size = js_int(row, "size", -1);
	struct entry_object object;
	struct utc proved_at = { 0 };

	if (!key || !path || !digest || size < 0)
		return "a graph in it lacks key, path, size or digest";
	if (!digest_is_good(digest, !sha256))
		return "an invalid digest in it";
	if (proved && (!run || !at || !clock_utc_parse(at, &proved_at)))
		return "a graph in it has no verifier";
	if (!kind->object(path, &object) || object.role != ROLE_COMPILED ||
	    object.graph.len != strlen(key) || memcmp(object.graph.text, key, object.graph.len))
		return "a path in it is not that of its graph";
	*ret = (struct manifest_graph){
		.key = mem_copy(key),
		.path = mem_copy(path),
		.size = (uint64_t)size,
		.tagged = !sha256,
		.late = js_bool(row, "late", false),
		.proved_by = proved ? mem_copy(run) : NULL,
		.proved_at = proved_at,
	};
	memcpy(ret->digest, digest, strlen(digest) + 1);
	return NULL;
}

static const char *read_graphs(const json_t *rows, struct compile_manifest *lock)
{
	const char *fault;

	if (!json_is_array(rows) || json_array_size(rows) == 0)
		return "no graph in it";
	if (json_array_size(rows) > TALLY_GRAPHS_MAX)
		return "too many graphs in it";
	lock->graphs = mem_zero(json_array_size(rows), sizeof *lock->graphs);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		fault = read_graph(json_array_get(rows, i), lock->kind, &lock->graphs[i]);
		if (fault)
			return fault;
		lock->count++;
	}
	return NULL;
}

/* Returns NULL if the document is valid, else the fault. */
static const char *read_document(const json_t *document, const char *graph_key,
				 struct compile_manifest *lock)
{
	const char *own_key = text_member(document, "graph_key");
	const char *name = text_member(document, "name"), *run = text_member(document, "run");
	const char *kind = text_member(document, "kind"), *image = text_member(document, "image");
	const char *created = text_member(document, "created");
	char hex[SHA256_HEX];

	if (js_int(document, "v", 0) != 1)
		return "another version than 1";
	if (!own_key || strcmp(own_key, graph_key) != 0)
		return "the manifest of another graph key";
	lock->kind = kind ? compile_kind_find(kind) : NULL;
	if (!lock->kind)
		return "unknown compiler kind";
	if (!created || !clock_utc_parse(created, &lock->created))
		return "invalid date";
	if (!json_is_object(json_object_get(document, "ingredients")) ||
	    !json_is_object(json_object_get(document, "compiler")))
		return "no ingredients";
	memcpy(lock->graph_key, graph_key, SHA256_HEX);
	lock->name = mem_copy(name ? name : "");
	lock->run = mem_copy(run ? run : "");
	lock->image = image ? mem_copy(image) : NULL;
	lock->compiler = json_deep_copy(json_object_get(document, "compiler"));
	lock->ingredients = json_deep_copy(json_object_get(document, "ingredients"));
	graph_key_of(lock->ingredients, hex);
	if (strcmp(hex, graph_key) != 0)
		return "the ingredients do not give the graph key";
	graph_key_ingredients_hide_secrets(lock->ingredients);
	return read_graphs(json_object_get(document, "graphs"), lock);
}

int compile_manifest_file_get(struct store *store, const char *graph_key,
			      struct compile_manifest **ret, char ret_tag[STORE_TAG],
			      char **ret_damage, struct err **err)
{
	AUTO(auto_free) char *object = compile_manifest_object_key(graph_key);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(LOCK_BYTES_MAX);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = mem_zero(1, sizeof *lock);
	AUTO(err_freep) struct err *cause = NULL;
	json_auto_t *document = NULL;
	struct store_object there;
	const char *fault;
	int found = store_stat(store, object, &there, err);

	*ret_damage = NULL;
	if (found <= 0)
		return found;
	if (there.size > LOCK_BYTES_MAX) {
		*ret_damage = mem_copy("too large");
		return 0;
	}
	found = store_get(store, object, LOCK_BYTES_MAX, &text, ret_tag, err);
	if (found <= 0)
		return found;
	if (js_parse(text.text, text.len, "it", &document, &cause) < 0) {
		*ret_damage = mem_copy(cause->message);
		return 0;
	}
	fault = read_document(document, graph_key, lock);
	*ret_damage = fault ? mem_copy(fault) : compile_manifest_compiler_fault(lock);
	if (*ret_damage)
		return 0;
	*ret = TAKE(lock);
	return 1;
}

/* Makes the names of the folders between the cache and an entry durable, `folder` included. A row
 * of entries in one folder has it done once: `done` is the lowest folder of the entry before. */
static int sync_above(const char *folder, const char *entry, char **done, struct err **err)
{
	AUTO(auto_free) char *parent = fs_dirname(entry); /* fs_sync_tree() has synced it */
	AUTO(auto_free) char *up = fs_dirname(parent);

	if (*done && strcmp(up, *done) == 0)
		return 0;
	free(*done);
	*done = mem_copy(up);
	while (strlen(up) >= strlen(folder)) {
		char *below = up;

		if (fs_sync_dir(up, err) < 0)
			return -1;
		up = fs_dirname(below);
		free(below);
	}
	return 0;
}

int compile_manifest_file_sync(struct store *store, const struct compile_manifest *lock,
			       const struct cache_pause *pause, struct err **err)
{
	const char *folder = store_directory(store);
	AUTO(auto_free) char *done = NULL;

	for (size_t i = 0; folder && i < lock->count; i++) {
		AUTO(auto_free) char *path = fs_join(folder, lock->graphs[i].path);
		AUTO(auto_free)
		char *entry = lock->kind->prefix ? fs_dirname(path) : mem_copy(path);

		if (pause_call(pause, err) < 0 || fs_sync_tree(entry, err) < 0 ||
		    sync_above(folder, entry, &done, err) < 0)
			return -1;
	}
	return 0;
}

int compile_manifest_file_replace(struct store *store, const struct compile_manifest *lock,
				  const char *tag, struct err **err)
{
	json_auto_t *document = lock_json(lock);
	AUTO(auto_free) char *object = compile_manifest_object_key(lock->graph_key);

	return store_json_replace(store, object, tag, document, err);
}

int compile_manifest_tag(struct store *store, const char *graph_key, char ret_tag[STORE_TAG],
			 struct err **err)
{
	AUTO(auto_free) char *object = compile_manifest_object_key(graph_key);
	struct store_object there;
	int found = store_stat(store, object, &there, err);

	if (found > 0)
		memcpy(ret_tag, there.tag, sizeof there.tag);
	return found < 0 ? err_wrap(err, "cannot look for the compile manifest") : found;
}

int compile_manifest_load(struct store *store, const char *graph_key, struct compile_manifest **ret,
			  char **ret_damage, struct err **err)
{
	char tag[STORE_TAG];
	int found;

	*ret_damage = NULL;
	if (!compile_manifest_key_is_good(graph_key))
		return err_set(err, EXIT_DEFECT, "invalid graph key '%s'", graph_key);
	found = compile_manifest_file_get(store, graph_key, ret, tag, ret_damage, err);
	return found < 0 ? err_wrap(err, "cannot read the compile manifest") : found;
}

void compile_manifest_set_clear(struct compile_manifest_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		compile_manifest_freep(&set->locks[i]);
	free(set->locks);
	json_decref(set->damaged);
	*set = (struct compile_manifest_set){ 0 };
}

static void add_damaged(json_t *damaged, const char *object, const char *what)
{
	json_t *row = json_object();

	js_put_str(row, "lock", object);
	js_put_str(row, "what", what);
	json_array_append_new(damaged, row);
}

/* Collects the objects below LOCK_PREFIX except claims; names only, so that the listing stays
 * short. */
static int collect(void *arg, const struct store_object *object, struct err **err)
{
	json_t *names = arg;

	(void)err;
	if (key_claim_is(object->key))
		return 0;
	if (json_array_size(names) == LOCKS_MAX)
		return 1;
	json_array_append_new(names, js_text(object->key, strlen(object->key)));
	return 0;
}

int compile_manifest_set_load(struct store *store, struct compile_manifest_set *ret,
			      struct err **err)
{
	AUTO(compile_manifest_set_clear)
	struct compile_manifest_set set = { .damaged = json_array() };
	json_auto_t *names = json_array();

	if (store_list(store, LOCK_PREFIX, collect, names, err) < 0)
		return err_wrap(err, "cannot list the compile manifests");
	set.locks = mem_zero(json_array_size(names), sizeof(struct compile_manifest *));
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *object = json_string_value(json_array_get(names, i));
		AUTO(auto_free) char *key = key_of_object(object);
		AUTO(auto_free) char *damage = NULL;
		int found;

		if (!key) {
			add_damaged(set.damaged, object, "not the name of a compile manifest");
			continue;
		}
		found = compile_manifest_load(store, key, &set.locks[set.count], &damage, err);
		if (found < 0)
			return -1;
		if (damage)
			add_damaged(set.damaged, object, damage);
		set.count += found > 0;
	}
	*ret = set;
	set = (struct compile_manifest_set){ 0 };
	return 0;
}

int compile_manifest_find_nearest(struct store *store, const char *name, const json_t *ingredients,
				  struct compile_manifest **ret, struct err **err)
{
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	const char *rules = js_str(ingredients, KEY_RULES);
	size_t best = 0, best_changes = 0;
	int best_same = 0;

	if (compile_manifest_set_load(store, &set, err) < 0)
		return -1;
	for (size_t i = 0; i < set.count; i++) {
		const struct compile_manifest *lock = set.locks[i];
		json_auto_t *diff = graph_key_ingredients_diff(lock->ingredients, ingredients);
		size_t changes = json_array_size(diff);
		int same = 2 * (strcmp(lock->name, name) == 0) +
			   (!rules || js_is(lock->ingredients, KEY_RULES, rules));
		bool better = i == 0 || same > best_same;

		if (!better && same == best_same)
			better = changes < best_changes ||
				 (changes == best_changes &&
				  lock->created.ms > set.locks[best]->created.ms);
		if (!better)
			continue;
		best = i;
		best_same = same;
		best_changes = changes;
	}
	if (set.count == 0)
		return 0;
	*ret = TAKE(set.locks[best]);
	return 1;
}
