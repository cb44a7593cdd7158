/*
 * What the unit tests of the cache share: captured data, a cache folder with
 * entries that are as JAX writes them, and books filled from log text.
 */
#ifndef STK_TESTS_UNIT_CACHE_SUPPORT_H
#define STK_TESTS_UNIT_CACHE_SUPPORT_H

#include "tests/unit/base/unit.h"

#include "jobs/base/fs/fs.h"
#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/store/store.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define KEY_F "jit_f-" HEX_A
#define KEY_G "jit_g-" HEX_B
#define KEY_H "jit_h-" HEX_C

#define HIT(name, key)     "Persistent compilation cache hit for '" name "' with key '" key "'\n"
#define MISS(name, key)    "PERSISTENT COMPILATION CACHE MISS for '" name "' with key '" key "'\n"
#define WRITING(name, key) "Writing " name " to persistent compilation cache with key '" key "'\n"
#define FINISHED(name, s)  "Finished XLA compilation of jit(" name ") in " s " sec\n"
#define READ_ERROR(name, why)                                                                      \
	"UserWarning: Error reading persistent compilation cache entry for '" name "': " why "\n"
#define WRITE_ERROR(name, why)                                                                     \
	"UserWarning: Error writing persistent compilation cache entry for '" name "': " why "\n"

/* A file of this folder; yours to release. */
static inline struct sb data(const char *name)
{
	AUTO(auto_free) char *path = fs_join(TEST_DATA, name);
	struct err *err = NULL;
	struct sb text = SB_INIT;

	fs_read(path, (size_t)1 << 20, &text, &err);
	assert_no_error(err);
	return text;
}

static inline int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The bytes of a file of hex digits; yours to release. */
static inline struct sb data_hex(const char *name)
{
	AUTO(sb_release) struct sb text = data(name);
	struct sb bytes = SB_INIT;

	for (size_t i = 0; i + 1 < text.len; i++) {
		int high = hex_digit(text.text[i]), low = hex_digit(text.text[i + 1]);

		if (high < 0)
			continue; /* the end of a line */
		sb_addc(&bytes, (char)(high << 4 | low));
		i++;
	}
	return bytes;
}

static inline const struct compile_kind *jax(void)
{
	return compile_kind_find("jax");
}

static inline void scan_text(struct graph_tally *tally, int node, const char *text)
{
	graph_tally_scan(tally, jax(), node, text, strlen(text));
}

static inline struct graph_tally *graph_tally_of(const char *text)
{
	struct graph_tally *tally = graph_tally_new();

	scan_text(tally, 0, text);
	return tally;
}

static inline struct graph_tally *graph_tally_of_file(const char *name)
{
	AUTO(sb_release) struct sb text = data(name);
	struct graph_tally *tally = graph_tally_new();

	graph_tally_scan(tally, jax(), 0, text.text, text.len);
	return tally;
}

static inline struct store *open_cache(const char *dir)
{
	struct store *store = NULL;
	struct err *err = NULL;

	store_open(dir, &store, &err);
	assert_no_error(err);
	return store;
}

static inline void write_file(const char *dir, const char *name, const void *bytes, size_t len)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(auto_free) char *folder = fs_dirname(path);
	struct err *err = NULL;

	fs_mkdirs(folder, &err);
	assert_no_error(err);
	fs_write_atomic(path, bytes, len, 0600, &err);
	assert_no_error(err);
}

static inline void write_text(const char *dir, const char *name, const char *text)
{
	write_file(dir, name, text, strlen(text));
}

static inline char *entry_path(const char *dir, const char *key)
{
	return mem_format("%s/%s-cache", dir, key);
}

/* A whole entry; `salt` makes its content different: bytes behind the end of
 * the stream, which JAX ignores. */
static inline void write_entry(const char *dir, const char *key, const char *salt)
{
	AUTO(sb_release) struct sb bytes = data_hex("entry_zlib.hex");
	AUTO(auto_free) char *name = mem_format("%s-cache", key);

	sb_adds(&bytes, salt);
	write_file(dir, name, bytes.text, bytes.len);
}

static inline void cut_entry(const char *dir, const char *key, long size)
{
	AUTO(auto_free) char *path = entry_path(dir, key);

	assert_int_equal(truncate(path, size), 0);
}

static inline void remove_entry(const char *dir, const char *key)
{
	AUTO(auto_free) char *path = entry_path(dir, key);

	assert_int_equal(unlink(path), 0);
}

/* Takes over what listings, checks and gc tell, into a JSON array. */
static inline int keep_row(void *arg, json_t *row, struct err **err)
{
	(void)err;
	json_array_append_new(arg, row);
	return 0;
}

/* Writes the manifest of a run whose job, with this log, is proved. */
static inline void manifest_by(const struct lock_facts *facts, const char *log,
			       char ret_key[SHA256_HEX])
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(log);
	AUTO(compile_manifest_freep) struct compile_manifest *manifest = NULL;
	struct err *err = NULL;

	compile_manifest_write(facts, tally, &manifest, NULL, &err);
	assert_no_error(err);
	memcpy(ret_key, manifest->graph_key, SHA256_HEX);
}

/* The same, of a run of these ingredients. */
static inline void manifest_graphs(struct store *store, const char *name, int batch_size,
				   const char *log)
{
	json_auto_t *compiler = json_pack("{ss}", "jax", "0.10.2");
	json_auto_t *ingredients = json_pack("{si}", "batch_size", batch_size);
	struct lock_facts facts = { .kind = jax(),
				    .store = store,
				    .name = name,
				    .run = "run1",
				    .compiler = compiler,
				    .ingredients = ingredients };
	char graph_key[SHA256_HEX];

	manifest_by(&facts, log, graph_key);
}

static inline bool has_entry(const char *dir, const char *key)
{
	AUTO(auto_free) char *path = entry_path(dir, key);

	return fs_exists(path);
}

#endif
