/* Models that a run is given: what is pinned of them, what proves that they are still the same, and
 * which world size they fit. The store is a folder here; nothing in these functions knows that. */
#include "tests/unit/checkpoint/trees.h"

#include "jobs/checkpoint/pin.h"
#include "jobs/store/store.h"

#define HINT "correct it"

static struct ckpt_pin taken(const char *url, const char *kind)
{
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_pin pin = { 0 };

	checkpoint_pin_take(url, checkpoint_kind_find(kind), HINT, &pin, &err);
	assert_no_error(err);
	return pin;
}

static void assert_refused(const struct err *err, const char *part)
{
	assert_non_null(err);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_true(err->damage);
	assert_contains(err->message, part);
}

static void assert_not_taken(const char *url, const char *kind, const char *part)
{
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_pin pin = { 0 };

	assert_int_equal(checkpoint_pin_take(url, checkpoint_kind_find(kind), HINT, &pin, &err),
			 -1);
	assert_refused(err, part);
	assert_string_equal(err->hint, HINT);
}

/* Brings it into the folder "node"; its path, which the caller frees. */
static char *fetched(const char *dir, const struct ckpt_pin *pin)
{
	AUTO(auto_free) char *folder = fs_join(dir, "node");
	AUTO(err_freep) struct err *err = NULL;
	char *path = NULL;

	checkpoint_pin_fetch(pin, folder, &path, &err);
	assert_no_error(err);
	return path;
}

static void assert_not_fetched(const char *dir, const struct ckpt_pin *pin, const char *part)
{
	AUTO(auto_free) char *folder = fs_join(dir, "node");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = NULL;

	assert_int_equal(checkpoint_pin_fetch(pin, folder, &path, &err), -1);
	assert_refused(err, part);
}

static void flip(const char *root, const char *path, size_t at)
{
	struct sb bytes = get_bytes(root, path);

	assert_true(at < bytes.len);
	bytes.text[at] ^= 1;
	put_sb(root, path, bytes);
}

/* ---- models that are accepted ---- */

static void a_file_needs_no_step_in_its_name(void **state)
{
	static const struct {
		const char *name;
		struct sb (*make)(void);
	} rows[] = { { "final.pt", torch_file }, { "model.safetensors", safetensors_file } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *root = fs_join(*state, "models");
		AUTO(auto_free) char *path = fs_join(root, rows[i].name);
		AUTO(auto_free) char *far = mem_format("dir:%s", path);
		AUTO(checkpoint_pin_release) struct ckpt_pin near_pin = { 0 }, far_pin = { 0 };
		AUTO(auto_free) char *here = NULL, *brought = NULL;
		AUTO(sb_release) struct sb whole = rows[i].make();

		put_bytes(root, rows[i].name, whole.text, whole.len);
		near_pin = taken(path, "auto");
		far_pin = taken(far, "auto");
		assert_string_equal(checkpoint_kind_name(near_pin.kind), "files");
		assert_int_equal(near_pin.bytes, whole.len);
		assert_int_equal(near_pin.world_size, 0);
		here = fetched(*state, &near_pin);
		assert_string_equal(here, path); /* nothing is copied */
		brought = fetched(*state, &far_pin);
		assert_string_not_equal(brought, path);
		for (size_t len = 1; len < whole.len; len += 1 + whole.len / 50) {
			put_bytes(root, rows[i].name, whole.text, len);
			assert_not_taken(path, "auto", rows[i].name);
			assert_not_fetched(*state, &near_pin, rows[i].name);
		}
	}
}

static void a_folder_of_each_kind_is_recognised_and_proved(void **state)
{
	for (size_t i = 0; i < STK_LENGTH(makers); i++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, i);
		AUTO(auto_free) char *path = fs_join(root, makers[i].names[0]);
		AUTO(auto_free) char *far = mem_format("dir:%s", path);
		AUTO(checkpoint_pin_release) struct ckpt_pin near_pin = { 0 }, far_pin = { 0 };
		AUTO(auto_free) char *here = NULL, *brought = NULL;

		makers[i].make(root, makers[i].names[0], 10);
		near_pin = taken(path, "auto");
		far_pin = taken(far, "auto");
		assert_string_equal(checkpoint_kind_name(near_pin.kind), makers[i].kind);
		assert_string_equal(checkpoint_kind_name(far_pin.kind), makers[i].kind);
		assert_int_equal(near_pin.bytes, far_pin.bytes);
		here = fetched(root, &near_pin);
		brought = fetched(root, &far_pin);
		/* Fetched again, it is found where it was brought. */
		auto_free(&brought);
		brought = fetched(root, &far_pin);
	}
}

/* The file that is written last is missing: no kind takes the folder for whole, wherever it
 * lies. */
static void a_partial_folder_is_refused_with_the_file(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "step_10");
	AUTO(auto_free) char *far = mem_format("dir:%s", path);

	make_nxd(*state, "step_10", 10);
	drop(path, "done");
	assert_not_taken(path, "auto", "'done' is missing");
	assert_not_taken(far, "auto", "'done' is missing");
	put_text(path, "done", "1");
	drop(path, "model/dp_rank_00_tp_rank_00_pp_rank_00.pt");
	assert_not_taken(path, "nxd", "ranks are missing");
}

static void what_is_absent_or_no_model_is_refused(void **state)
{
	AUTO(auto_free) char *nowhere = fs_join(*state, "nowhere.pt");
	AUTO(auto_free) char *empty = fs_join(*state, "empty");
	AUTO(auto_free) char *links = fs_join(*state, "links");
	AUTO(auto_free) char *link = fs_join(links, "away.pt");
	AUTO(auto_free) char *cut = fs_join(*state, "meta.tmp");

	assert_not_taken(nowhere, "auto", "not found");
	assert_not_taken("s3://bucket", "auto", "not found");
	assert_int_equal(mkdir(empty, 0700), 0);
	assert_not_taken(empty, "auto", "holds nothing");
	put_text(links, "config.json", "{}");
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_not_taken(links, "auto", "'away.pt' is a link");
	put_text(*state, "model/weights.pt.tmp", "x");
	auto_free(&cut);
	cut = fs_join(*state, "model");
	assert_not_taken(cut, "auto", "is still being written");
}

/* ---- the mark beside it ---- */

static void a_mark_tells_device_and_world_size_and_what_has_changed(void **state)
{
	const struct ckpt_owner owner = { "r1", "n", 3, "trn1.32xlarge", 64 };
	AUTO(auto_free) char *path = fs_join(*state, "step-00000010");
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(*state, "step-00000010", 10);
	checkpoint_prove(path, checkpoint_kind_find("auto"), &ckpt, &err);
	assert_no_error(err);
	checkpoint_mark(CKPT_FOLDER(*state), &ckpt, &owner, (struct utc){ 1 }, &err);
	assert_no_error(err);
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), ckpt.name, &mark, &err), 1);
	assert_string_equal(mark.device, "trn1.32xlarge");
	assert_int_equal(mark.world_size, 64);
	pin = taken(path, "auto");
	assert_string_equal(pin.device, "trn1.32xlarge");
	assert_int_equal(pin.world_size, 64);
	/* The file is as large as before, and sound by its format: only the mark knows. */
	flip(path, "state.npz", 200);
	assert_not_taken(path, "auto", "'state.npz' has changed since it was marked");
}

/* ---- the pin ---- */

static void a_pin_comes_back_from_the_workspace_or_is_refused(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "model.pt");
	AUTO(auto_free) char *workspace = fs_join(*state, "workspace");
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 }, back = { 0 }, none = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *key = NULL;
	AUTO(err_freep) struct err *err = NULL;

	put_sb(*state, "model.pt", torch_file());
	pin = taken(path, "auto");
	store_open(workspace, &store, &err);
	assert_no_error(err);
	for (int i = 0; i < 2; i++) {
		checkpoint_pin_put(&pin, store, &err);
		assert_no_error(err);
	}
	checkpoint_pin_get(store, pin.digest, &back, &err);
	assert_no_error(err);
	assert_string_equal(back.url, pin.url);
	assert_string_equal(back.digest, pin.digest);
	assert_true(json_equal(back.files, pin.files));

	key = mem_format("pins/%s.json", pin.digest);
	flip(workspace, key, 40);
	assert_int_equal(checkpoint_pin_get(store, pin.digest, &none, &err), -1);
	assert_refused(err, "is damaged");
	err_freep(&err);
	assert_int_equal(checkpoint_pin_get(store, "../../etc/passwd", &none, &err), -1);
	assert_refused(err, "not found");
}

static void what_differs_from_the_pin_is_refused_with_the_file(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "model");
	AUTO(auto_free) char *far = mem_format("dir:%s", path);
	AUTO(checkpoint_pin_release) struct ckpt_pin near_pin = { 0 }, far_pin = { 0 };
	AUTO(auto_free) char *bytes = mem_zero(1, 100000);
	AUTO(auto_free) char *brought = NULL;

	put_sb(path, "a.safetensors", safetensors_file());
	put_bytes(path, "b.bin", bytes, 100000);
	near_pin = taken(path, "auto");
	far_pin = taken(far, "auto");
	brought = fetched(*state, &far_pin);
	put_text(path, "c.bin", "more");
	assert_not_fetched(*state, &near_pin, "3 files, not 2");
	drop(path, "c.bin");
	flip(path, "b.bin", 3);
	assert_not_fetched(*state, &near_pin, "'b.bin' has changed");
	/* The copy that was brought before is what was pinned, whatever has become of the place. */
	auto_free(&brought);
	brought = fetched(*state, &far_pin);
	drop(*state, "node");
	assert_not_fetched(*state, &far_pin, "'b.bin' has changed");
	drop(path, "b.bin");
	assert_not_fetched(*state, &near_pin, "'b.bin' is missing");
	assert_not_fetched(*state, &far_pin, "'b.bin' is missing");
}

/* A promoted version is pinned by the sums of its files: each byte counts. */
static void a_known_sum_proves_every_byte(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "model");
	AUTO(auto_free) char *bytes = mem_zero(1, 100000);
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 }, bad = { 0 };
	json_auto_t *files = NULL, *twisted = NULL;
	AUTO(auto_free) char *here = NULL;
	AUTO(err_freep) struct err *err = NULL;

	put_sb(path, "a.safetensors", safetensors_file());
	put_bytes(path, "b.bin", bytes, 100000);
	checkpoint_pin_sums(path, &files, &err);
	assert_no_error(err);
	checkpoint_pin_known(path, checkpoint_kind_find("files"), files, &pin, &err);
	assert_no_error(err);
	here = fetched(*state, &pin);
	flip(path, "b.bin", 50000);
	assert_not_fetched(*state, &pin, "'b.bin' has changed");

	twisted = json_deep_copy(files);
	js_put_str(json_array_get(twisted, 0), "path", "../a");
	assert_int_equal(
		checkpoint_pin_known(path, checkpoint_kind_find("files"), twisted, &bad, &err), -1);
	assert_refused(err, "damaged");
}

/* ---- the world size ---- */

static bool fits(const struct ckpt_pin *pin, int64_t world_size)
{
	AUTO(err_freep) struct err *err = NULL;
	int fits = checkpoint_pin_fits(pin, world_size, &err);

	if (fits < 0) {
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_contains(err->hint, "parent.reshard");
	}
	return fits == 0;
}

static void kinds_that_depend_on_the_world_size_refuse_another(void **state)
{
	/* trees.h: dp 2 x tp 2 of nxd; tp 2 x pp 2 of Megatron; dp 3 of DeepSpeed. */
	static const struct {
		void (*make)(const char *root, const char *name, int step);
		const char *name;
		int64_t fits[2], not [2]; /* 0: none */
	} rows[] = {
		{ make_nxd, "step_10", { 4 }, { 8, 2 } },
		{ make_megatron_ranks, "iter_0000010", { 4, 16 }, { 6, 2 } },
		{ make_deepspeed, "global_step10", { 3 }, { 6, 1 } },
		{ make_megatron, "iter_0000020", { 7 }, { 0 } },
		{ make_dcp, "step-30", { 7, 1 }, { 0 } },
		{ make_hf, "checkpoint-10", { 9, 3 }, { 0 } },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = fs_join(*state, rows[i].name);
		AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };

		rows[i].make(*state, rows[i].name, i == 3 ? 20 : 10);
		pin = taken(path, "auto");
		assert_true(fits(&pin, 0)); /* not known: only the command can tell */
		for (size_t k = 0; k < 2; k++) {
			if (rows[i].fits[k] && !fits(&pin, rows[i].fits[k]))
				fail_msg("%s refuses %d", rows[i].name, (int)rows[i].fits[k]);
			if (rows[i].not [k] && fits(&pin, rows[i].not [k]))
				fail_msg("%s takes %d", rows[i].name, (int)rows[i].not [k]);
		}
		pin.world_size = 5; /* what a mark says is more than names tell */
		assert_true(fits(&pin, 5));
		assert_int_equal(fits(&pin, 10), i >= 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_file_needs_no_step_in_its_name),
		test_in_scratch(a_folder_of_each_kind_is_recognised_and_proved),
		test_in_scratch(a_partial_folder_is_refused_with_the_file),
		test_in_scratch(what_is_absent_or_no_model_is_refused),
		test_in_scratch(a_mark_tells_device_and_world_size_and_what_has_changed),
		test_in_scratch(a_pin_comes_back_from_the_workspace_or_is_refused),
		test_in_scratch(what_differs_from_the_pin_is_refused_with_the_file),
		test_in_scratch(a_known_sum_proves_every_byte),
		test_in_scratch(kinds_that_depend_on_the_world_size_refuse_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
