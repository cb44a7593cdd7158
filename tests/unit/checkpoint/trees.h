/*
 * What the unit tests of checkpoints share: files in the formats of the usual
 * writers, a checkpoint of each kind, and ways to damage them.
 */
#ifndef STK_TESTS_UNIT_CHECKPOINT_TREES_H
#define STK_TESTS_UNIT_CHECKPOINT_TREES_H

#include <fcntl.h>
#include <sys/stat.h>
#include <utime.h>

#include "tests/unit/base/unit.h"

#include "jobs/base/text/js.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"

#define CKPT_FOLDER(folder) (&(const struct ckpt_root){ .path = (folder) })

/* ---- files ---- */

static inline void put_bytes(const char *root, const char *path, const void *bytes, size_t len)
{
	AUTO(auto_free) char *whole = fs_join(root, path);
	AUTO(auto_free) char *folder = fs_dirname(whole);
	AUTO(err_freep) struct err *err = NULL;
	FILE *file;

	fs_mkdirs(folder, &err);
	assert_no_error(err);
	file = fopen(whole, "wbe");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

static inline void put_text(const char *root, const char *path, const char *text)
{
	put_bytes(root, path, text, strlen(text));
}

static inline struct sb get_bytes(const char *root, const char *path)
{
	AUTO(auto_free) char *whole = fs_join(root, path);
	struct err *err = NULL;
	struct sb bytes = SB_INIT;

	fs_read(whole, (size_t)1 << 26, &bytes, &err);
	assert_no_error(err);
	return bytes;
}

static inline void drop(const char *root, const char *path)
{
	AUTO(auto_free) char *whole = fs_join(root, path);
	struct err *err = NULL;

	fs_remove_tree(whole, &err);
	assert_no_error(err);
}

/* ---- formats ---- */

static inline void add_le(struct sb *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		sb_addc(out, (char)(i < 8 ? value >> 8 * i & 0xff : 0));
}

/* Two tensors, F32 [3,4] and I64 [2]: 64 bytes of data. */
static inline struct sb safetensors_file(void)
{
	static const char header[] =
		"{\"__metadata__\":{\"format\":\"pt\"},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]},"
		"\"n\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[48,64]}}  ";
	struct sb out = SB_INIT;

	add_le(&out, sizeof header - 1, 8);
	sb_add(&out, header, sizeof header - 1);
	for (int i = 0; i < 64; i++)
		sb_addc(&out, (char)i);
	return out;
}

/* F64 [rows]. */
static inline struct sb npy_file(unsigned rows)
{
	AUTO(auto_free)
	char *header =
		mem_format("{'descr': '<f8', 'fortran_order': False, 'shape': (%u,), }", rows);
	struct sb out = SB_INIT;
	size_t len = 118;

	sb_add(&out, "\x93NUMPY\1\0", 8);
	add_le(&out, len, 2);
	sb_adds(&out, header);
	while (out.len < 10 + len - 1)
		sb_addc(&out, ' ');
	sb_addc(&out, '\n');
	for (unsigned i = 0; i < rows * 8; i++)
		sb_addc(&out, (char)(i * 7));
	return out;
}

struct member {
	const char *name;
	struct sb bytes; /* borrowed */
};

/* Append a zip of stored members; `large` writes zip64 records, as torch.save does. */
static inline void add_zip(struct sb *out, const struct member *members, size_t count, bool large)
{
	AUTO(sb_release) struct sb directory = SB_INIT;
	size_t start = out->len, at;

	for (size_t i = 0; i < count; i++) {
		const struct member *m = &members[i];
		size_t offset = out->len - start;

		sb_add(out, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
		add_le(out, 0, 4);
		add_le(out, m->bytes.len, 4);
		add_le(out, m->bytes.len, 4);
		add_le(out, strlen(m->name), 2);
		add_le(out, 0, 2);
		sb_adds(out, m->name);
		sb_add(out, m->bytes.text, m->bytes.len);
		sb_add(&directory, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
		add_le(&directory, 0, 4);
		add_le(&directory, m->bytes.len, 4);
		add_le(&directory, m->bytes.len, 4);
		add_le(&directory, strlen(m->name), 2);
		add_le(&directory, 0, 12);
		add_le(&directory, offset, 4);
		sb_adds(&directory, m->name);
	}
	at = out->len - start;
	sb_add(out, directory.text, directory.len);
	if (large) {
		size_t record = out->len - start;

		sb_add(out, "PK\6\6", 4);
		add_le(out, 44, 8);
		add_le(out, 0, 12);
		add_le(out, count, 8);
		add_le(out, count, 8);
		add_le(out, directory.len, 8);
		add_le(out, at, 8);
		sb_add(out, "PK\6\7\0\0\0\0", 8);
		add_le(out, record, 8);
		add_le(out, 1, 4);
	}
	sb_add(out, "PK\5\6\0\0\0\0", 8);
	add_le(out, count, 2);
	add_le(out, count, 2);
	add_le(out, directory.len, 4);
	add_le(out, at, 4);
	add_le(out, 0, 2);
}

/* Adds a file as torch.save lays it out: the pickle and the storages behind it. */
static inline void add_torch(struct sb *out)
{
	char data[200];
	const struct member members[] = {
		{ "archive/data.pkl", { .text = (char *)"\x80\2}.", .len = 4 } },
		{ "archive/data/0", { .text = data, .len = sizeof data } },
		{ "archive/version", { .text = (char *)"3\n", .len = 2 } },
	};

	memset(data, 0x5a, sizeof data);
	add_zip(out, members, STK_LENGTH(members), true);
}

static inline struct sb torch_file(void)
{
	struct sb out = SB_INIT;

	add_torch(&out);
	return out;
}

static inline struct sb npz_file(void)
{
	AUTO(sb_release) struct sb a = npy_file(16);
	AUTO(sb_release) struct sb b = npy_file(3);
	const struct member members[] = { { "a.npy", a }, { "b.npy", b } };
	struct sb out = SB_INIT;

	add_zip(&out, members, STK_LENGTH(members), false);
	return out;
}

static inline struct sb distcp_file(void)
{
	struct sb out = SB_INIT;

	for (int i = 0; i < 3; i++)
		add_torch(&out);
	return out;
}

/* A pickle of protocol 4 in one frame, in which these words stand. */
static inline struct sb metadata_file(const char *words)
{
	struct sb out = SB_INIT;

	sb_add(&out, "\x80\4\x95", 3);
	add_le(&out, strlen(words) + 4, 8);
	sb_addc(&out, (char)0x8c);
	sb_addc(&out, (char)strlen(words));
	sb_adds(&out, words);
	sb_add(&out, "\x94.", 2);
	return out;
}

static inline void put_sb(const char *root, const char *path, struct sb bytes)
{
	put_bytes(root, path, bytes.text, bytes.len);
	sb_release(&bytes);
}

/* ---- a checkpoint of each kind ---- */

/* Makes a checkpoint as configs/quickstart/train.py leaves it. */
static inline void make_files(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);
	AUTO(sb_release) struct sb state = npz_file();
	AUTO(auto_free)
	char *meta = mem_format("{\"step\": %d, \"state_bytes\": %zu}", step, state.len);

	put_bytes(folder, "state.npz", state.text, state.len);
	put_text(folder, "meta.json", meta);
}

static inline void make_hf(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);
	AUTO(auto_free)
	char *state = mem_format("{\"global_step\": %d, \"total_flos\": 99999999999999999999, "
				 "\"log_history\": [{\"loss\": NaN}], \"x\": -Infinity}",
				 step);

	put_text(folder, "config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
	put_sb(folder, "model-00001-of-00002.safetensors", safetensors_file());
	put_sb(folder, "model-00002-of-00002.safetensors", safetensors_file());
	put_text(folder, "model.safetensors.index.json",
		 "{\"metadata\": {\"total_size\": 128}, \"weight_map\": {"
		 "\"a\": \"model-00001-of-00002.safetensors\","
		 "\"b\": \"model-00002-of-00002.safetensors\"}}");
	put_sb(folder, "optimizer.pt", torch_file());
	put_sb(folder, "scheduler.pt", torch_file());
	put_sb(folder, "training_args.bin", torch_file());
	put_sb(folder, "rng_state_0.pth", torch_file());
	put_sb(folder, "rng_state_1.pth", torch_file());
	put_text(folder, "trainer_state.json", state);
}

static inline void make_nxd(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);

	(void)step;
	put_text(folder, "checkpoint", "1");
	for (int tp = 0; tp < 2; tp++) {
		AUTO(auto_free)
		char *model = mem_format("model/dp_rank_00_tp_rank_%02d_pp_rank_00.pt", tp);
		AUTO(auto_free) char *zero = mem_format("%s.tensors/tensor_0.pt", model);
		AUTO(auto_free) char *one = mem_format("%s.tensors/tensor_1.pt", model);

		put_sb(folder, model, torch_file());
		put_sb(folder, zero, torch_file());
		put_sb(folder, one, torch_file());
		for (int dp = 0; dp < 2; dp++) {
			AUTO(auto_free)
			char *optim =
				mem_format("optim/dp_rank_%02d_tp_rank_%02d_pp_rank_00.pt", dp, tp);

			put_sb(folder, optim, torch_file());
		}
	}
	put_sb(folder, "scheduler.pt", torch_file());
	put_sb(folder, "user_content.pt", torch_file());
	put_text(folder, "done", "1");
}

static inline void make_dcp(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);

	(void)step;
	put_sb(folder, "__0_0.distcp", distcp_file());
	put_sb(folder, "__0_1.distcp", distcp_file());
	put_sb(folder, "__1_0.distcp", distcp_file());
	put_sb(folder, ".metadata",
	       metadata_file("x __0_0.distcp y __0_1.distcp z __1_0.distcp __0_0.distcp"));
}

static inline void make_megatron(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);
	AUTO(auto_free) char *tracker = mem_format("%d", step);

	make_dcp(root, name, step);
	put_text(folder, "metadata.json",
		 "{\"sharded_backend\": \"torch_dist\", \"sharded_backend_version\": 1}");
	put_sb(folder, "common.pt", torch_file());
	put_text(root, "latest_checkpointed_iteration.txt", tracker);
}

static inline void make_megatron_ranks(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);
	AUTO(auto_free) char *tracker = mem_format("%d", step);

	for (int tp = 0; tp < 2; tp++)
		for (int pp = 0; pp < 2; pp++) {
			AUTO(auto_free)
			char *path = mem_format("mp_rank_%02d_%03d/model_optim_rng.pt", tp, pp);

			put_sb(folder, path, torch_file());
		}
	put_text(root, "latest_checkpointed_iteration.txt", tracker);
}

static inline void make_deepspeed(const char *root, const char *name, int step)
{
	AUTO(auto_free) char *folder = mem_format("%s/%s", root, name);

	(void)step;
	put_sb(folder, "mp_rank_00_model_states.pt", torch_file());
	for (int dp = 0; dp < 3; dp++) {
		AUTO(auto_free)
		char *path = mem_format("bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt", dp);

		put_sb(folder, path, torch_file());
	}
	put_text(root, "latest", name);
}

static inline int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : 0;
}

/* Step 10, 20 or 30 of what orbax-checkpoint 0.12.8 wrote: a CheckpointManager with
 * StandardSave of {"w": float32 [3,4], "b": float32 [4], "step": int}. */
static inline void make_orbax(const char *root, const char *name, int step)
{
	AUTO(sb_release) struct sb text = get_bytes(TEST_DATA, "orbax-0.12.8.hex");
	AUTO(auto_free) char *prefix = mem_format("%d/", step);
	char *save = text.text, *line;

	while ((line = strsep(&save, "\n")) && *line) {
		char *path = strsep(&line, " ");
		AUTO(sb_release) struct sb bytes = SB_INIT;
		AUTO(auto_free) char *to = NULL;

		if (strncmp(path, prefix, strlen(prefix)) != 0)
			continue;
		for (; line[0] && line[1]; line += 2)
			sb_addc(&bytes, (char)(hex_value(line[0]) << 4 | hex_value(line[1])));
		to = mem_format("%s/%s", name, path + strlen(prefix));
		put_bytes(root, to, bytes.text, bytes.len);
	}
}

static const struct maker {
	const char *kind, *names[3]; /* of steps 10, 20, 30 */
	void (*make)(const char *root, const char *name, int step);
} makers[] = {
	{ "files", { "step-00000010", "step-00000020", "step-00000030" }, make_files },
	{ "hf", { "checkpoint-10", "checkpoint-20", "checkpoint-30" }, make_hf },
	{ "nxd", { "step_10", "step_20", "step_30" }, make_nxd },
	{ "dcp", { "step-10", "step-20", "step-30" }, make_dcp },
	{ "orbax", { "10", "20", "30" }, make_orbax },
	{ "megatron", { "iter_0000010", "iter_0000020", "iter_0000030" }, make_megatron },
	{ "megatron", { "iter_0000010", "iter_0000020", "iter_0000030" }, make_megatron_ranks },
	{ "deepspeed", { "global_step10", "global_step20", "global_step30" }, make_deepspeed },
};

static inline void make_all(const struct maker *maker, const char *root, int count)
{
	for (int i = 0; i < count; i++)
		maker->make(root, maker->names[i], 10 * (i + 1));
}

/* ---- looking ---- */

static inline struct ckpt_list found_in(const char *root, const char *kind)
{
	struct ckpt_list list = { 0 };
	struct err *err = NULL;

	checkpoint_find(root, checkpoint_kind_find(kind), &list, &err);
	assert_no_error(err);
	return list;
}

/* The newest complete one has this name (NULL: there is none). */
static inline void assert_newest(const char *root, const char *kind, const char *name)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, kind);

	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].complete) {
			if (!name)
				fail_msg("'%s' is taken for complete", list.items[i].path);
			assert_string_equal(list.items[i].name, name);
			return;
		}
	if (name)
		fail_msg("'%s' is not complete: %s", name, list.count ? list.items[0].why : "none");
}

/* Checks that the checkpoint is not complete, and that the reason says `part`. */
static inline void assert_partial(const char *root, const char *kind, const char *name,
				  const char *part)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, kind);

	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.items[i].name, name) == 0) {
			if (list.items[i].complete)
				fail_msg("'%s' is taken for complete", path);
			assert_contains(list.items[i].why, part);
			return;
		}
	fail_msg("'%s' is no candidate", path);
}

#endif
