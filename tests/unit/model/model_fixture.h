/* A model folder over a store whose calls can fail, runs with checkpoints, and their promotion as a
 * driver makes it. */
#ifndef TEST_MODEL_MODEL_FIXTURE_H
#define TEST_MODEL_MODEL_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/model/model_internal.h"
#include "jobs/model/model_version.h"
#include "tests/unit/run/faulty_store.h"

struct fixture {
	char scratch[64];
	char *folder, *runs;
	struct faulty_store *faulty;
	struct model *model;
};

static inline void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static inline struct model *over(struct store *store)
{
	struct model *model = mem_zero(1, sizeof *model);

	model->store = store;
	model->name = mem_copy("m5");
	return model;
}

static inline void begin(struct fixture *f)
{
	/* The place is in memory, if there is such a place: each write is synced. */
	strcpy(f->scratch, "/dev/shm/stoker-test-XXXXXX");
	if (!mkdtemp(f->scratch)) {
		strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
		assert_non_null(mkdtemp(f->scratch));
	}
	f->folder = fs_join(f->scratch, "models");
	f->runs = fs_join(f->scratch, "runs");
	f->faulty = faulty_new(f->folder);
	f->model = over(&f->faulty->base);
}

static inline void end(struct fixture *f)
{
	struct err *err = NULL;

	model_freep(&f->model);
	must(fs_remove_tree(f->scratch, &err), err);
	free(f->folder);
	free(f->runs);
}

static inline int setup(void **state)
{
	*state = mem_zero(1, sizeof(struct fixture));
	begin(*state);
	return 0;
}

static inline int teardown(void **state)
{
	end(*state);
	free(*state);
	return 0;
}

static inline char *path_of(const struct fixture *f, const char *key)
{
	return fs_join(f->folder, key);
}

static inline void write_file(const char *folder, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(dir, &err), err);
	must(fs_write_atomic(path, text, strlen(text), 0600, &err), err);
}

/* The checkpoint of a run: a folder of two files. */
static inline char *checkpoint(const struct fixture *f, const char *run)
{
	AUTO(auto_free) char *text = mem_format("weights of %s", run);
	char *folder = mem_format("%s/%s/step-7", f->runs, run);

	write_file(folder, "weights.bin", text);
	write_file(folder, "deep/index.json", "{}");
	return folder;
}

static inline json_t *described(const char *run)
{
	AUTO(auto_free) char *text = mem_format("weights of %s", run);
	char sha256[SHA256_HEX];

	hash_sha256_hex(text, strlen(text), sha256);
	return json_pack("[{s:s, s:i}, {s:s, s:I, s:s}]", "path", "deep/index.json", "size", 2,
			 "path", "weights.bin", "size", (json_int_t)strlen(text), "sha256", sha256);
}

struct promotion {
	const char *run, *nonce;
	const char *list; /* the cumulative list of its data; NULL: none */
	int64_t generation, keep;
	char before[SHA256_HEX];
};

static inline int keep_list(struct model *model, const char *url, const struct promotion *p,
			    json_t *version, struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(url);
	AUTO(auto_free) char *list = fs_join(folder, "list.jsonl");
	json_t *seen = NULL;

	write_file(folder, "list.jsonl", p->list);
	if (model_keep_object(model, p->run, list, NULL, &seen, err) < 0)
		return -1;
	js_put(version, "data", json_pack("{s:o}", "seen", seen));
	return 0;
}

/* All steps of a promotion, once. */
static inline int promote_once(struct model *model, const char *url, const struct promotion *p,
			       struct model_entry *ret, struct err **err)
{
	json_auto_t *version = json_object(), *files = described(p->run);
	const struct model_source source = {
		.run = p->run, .attempt = 1, .url = url, .files = files
	};
	struct model_draft draft = { .generation = p->generation,
				     .before = p->before,
				     .nonce = p->nonce,
				     .run = p->run,
				     .keep = p->keep,
				     .version = version };
	json_t *brought = NULL, *journal = NULL;
	int fate;

	if (model_bring(model, &source, NULL, NULL, &brought, err) < 0)
		return -1;
	js_put(version, "model", brought);
	if (model_keep_bytes(model, p->run, "journal", ".jsonl", "{}\n", 3, &journal, err) < 0)
		return -1;
	js_put(version, "journal", journal);
	if (p->list && keep_list(model, url, p, version, err) < 0)
		return -1;
	fate = model_commit(model, &draft, ret, err);
	if (fate < 0)
		return -1;
	if (model_remove_old(model, ret, err) < 0) {
		model_entry_release(ret);
		return -1;
	}
	return fate;
}

/* Repeated as a driver repeats it; `ret_tries` may be NULL. */
static inline int promote(struct fixture *f, const struct promotion *p, int *ret_tries)
{
	AUTO(auto_free) char *url = checkpoint(f, p->run);
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	int fate = -1, tries = 0;

	for (; fate < 0 && tries < 4; tries++) {
		struct err *err = NULL;

		fate = promote_once(f->model, url, p, &entry, &err);
		if (fate < 0 && tries == 3)
			fail_msg("%s", err->message);
		err_freep(&err);
	}
	if (ret_tries)
		*ret_tries = tries;
	return fate;
}

static inline void head_of(struct model *model, int64_t generation, char digest[SHA256_HEX])
{
	AUTO(model_entry_release) struct model_entry head = { 0 };
	struct err *err = NULL;

	must(model_head(model, false, &head, &err), err);
	assert_int_equal(head.generation, generation);
	memcpy(digest, head.digest, SHA256_HEX);
}

/* ---- verification ---- */

struct told {
	char *objects; /* joined by blanks */
};

static inline void on_difference(void *arg, const char *object, const char *why)
{
	struct told *told = arg;
	char *joined = mem_format("%s%s%s", told->objects ? told->objects : "",
				  told->objects ? " " : "", object);

	assert_true(strlen(why) > 0);
	free(told->objects);
	told->objects = joined;
}

static inline void on_unchecked(void *arg, const char *object, const char *why)
{
	(void)arg;
	(void)why;
	assert_string_equal(object, MODEL_POINTER);
}

/* Returns the differences; NULL: none. The caller frees them. */
static inline char *differences(struct model *model, const char *head)
{
	struct told told = { NULL };
	const struct model_verification how = { on_difference, on_unchecked, &told, head };
	struct model_verified sum;
	struct err *err = NULL;

	must(model_verify(model, &how, &sum, &err), err);
	assert_int_equal(sum.differences > 0, told.objects != NULL);
	return told.objects;
}

static inline void assert_whole(struct model *model)
{
	AUTO(auto_free) char *found = differences(model, NULL);

	if (found)
		fail_msg("differs: %s", found);
}

/* The chain has so many entries, the pointer is on the last one, all is as written. */
static inline void assert_chain(struct fixture *f, int64_t generation)
{
	struct model_pointer pointer = { 0 };
	char digest[SHA256_HEX];
	struct err *err = NULL;

	head_of(f->model, generation, digest);
	must(model_pointer_read(f->model, &pointer, &err), err);
	assert_int_equal(pointer.generation, generation);
	assert_string_equal(pointer.digest, digest);
	assert_whole(f->model);
}

static inline void promote_some(struct fixture *f, int count, int64_t keep)
{
	struct promotion p = { .keep = keep };

	for (int i = 1; i <= count; i++) {
		AUTO(auto_free) char *run = mem_format("run-%d", i);
		AUTO(auto_free) char *nonce = mem_format("nonce-%d", i);

		p.run = run;
		p.nonce = nonce;
		p.generation = i;
		assert_int_equal(promote(f, &p, NULL), MODEL_PROMOTED);
		head_of(f->model, i, p.before);
	}
}

#endif
