/* Whether a file is whole by its own format: cut at every byte, hostile numbers,
 * bytes changed by chance. */
#include <sys/mman.h>

#include "tests/unit/checkpoint/trees.h"

#include "jobs/checkpoint/format.h"

/* The verdict on these bytes under this name; `why` is appended to. */
static int judge(const char *name, const void *bytes, size_t len, struct sb *why)
{
	AUTO(auto_close) int fd = memfd_create("judged", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	return format_prove(fd, len, name, why);
}

static int judge_sb(const char *name, const struct sb *bytes)
{
	AUTO(sb_release) struct sb why = SB_INIT;
	int verdict = judge(name, bytes->text, bytes->len, &why);

	/* A refusal has a reason, and nothing else has. */
	assert_int_equal(verdict<0, why.len> 0);
	return verdict;
}

static const struct sample {
	const char *name;
	struct sb (*make)(void);
	int verdict; /* of the whole file */
} samples[] = {
	{ "model.safetensors", safetensors_file, 1 },
	{ "model.pt", torch_file, 1 },
	{ "state.npz", npz_file, 1 },
	{ "__0_0.distcp", distcp_file, 1 },
	{ "without.ending", torch_file, 1 },
};

static void every_truncation_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(samples); i++) {
		AUTO(sb_release) struct sb whole = samples[i].make();

		assert_int_equal(judge_sb(samples[i].name, &whole), samples[i].verdict);
		for (size_t len = 0; len < whole.len; len++) {
			AUTO(sb_release) struct sb why = SB_INIT;
			/* A few bytes are nothing without a name that promises a format. */
			bool unknown = len < 4 && i == STK_LENGTH(samples) - 1;
			int verdict = judge(samples[i].name, whole.text, len, &why);

			if (verdict != -1 && !unknown &&
			    !(strstr(samples[i].name, ".distcp") && len < 4 && len > 0) &&
			    !(strstr(samples[i].name, ".distcp") && len > 0 &&
			      len % (whole.len / 3) == 0))
				fail_msg("%s cut to %zu of %zu bytes passes", samples[i].name, len,
					 whole.len);
		}
	}
}

static void bytes_behind_the_end_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(samples); i++) {
		AUTO(sb_release) struct sb whole = samples[i].make();

		sb_addc(&whole, 'x');
		assert_int_equal(judge_sb(samples[i].name, &whole), -1);
	}
}

static void an_npy_file_is_as_long_as_its_header_says(void **state)
{
	AUTO(sb_release) struct sb whole = npy_file(20);

	(void)state;
	assert_int_equal(judge_sb("a.npy", &whole), 1);
	for (size_t len = 0; len < whole.len; len++) {
		AUTO(sb_release) struct sb part = SB_INIT;

		sb_add(&part, whole.text, len);
		if (judge_sb("a.npy", &part) != -1 && len >= 128)
			fail_msg("cut to %zu bytes it passes", len);
	}
}

static void json_is_accepted_as_python_writes_it(void **state)
{
	static const struct {
		const char *text;
		int verdict;
	} table[] = {
		{ "{\"a\": NaN, \"b\": [Infinity, -Infinity], \"c\": 1e5}", 1 },
		{ "{\"a\": \"NaN \\\" Infinity\", \"n\": 123456789012345678901234567890}", 1 },
		{ "[1, 2]\n", 1 },
		{ "{\"a\": 1", -1 },
		{ "{\"a\": \"NaN", -1 },
		{ "{\"a\": Na", -1 },
		{ "", -1 },
		{ "{}{}", -1 },
		{ "\xff\xfe{}", -1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(table); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		sb_adds(&text, table[i].text);
		if (judge_sb("x.json", &text) != table[i].verdict)
			fail_msg("'%s' is judged wrong", table[i].text);
	}
}

/* A safetensors file with this header, its length as given, and `data` bytes. */
static int judge_header(uint64_t len, const char *header, size_t data)
{
	AUTO(sb_release) struct sb file = SB_INIT;

	add_le(&file, len, 8);
	sb_adds(&file, header);
	for (size_t i = 0; i < data; i++)
		sb_addc(&file, 'd');
	return judge_sb("x.safetensors", &file);
}

static void offsets_and_lengths_that_lie_are_found(void **state)
{
	static const char *const headers[] = {
		"[]",
		"7",
		"{\"w\":7}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8.0]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,0]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[-8,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[0,7]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[0,8]}}",
		"{\"w\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807,4],"
		"\"data_offsets\":[0,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],"
		"\"data_offsets\":[0,18446744073709551615]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],"
		"\"data_offsets\":[0,9223372036854775807]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[-8],\"data_offsets\":[0,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":\"8\",\"data_offsets\":[0,8]}}",
		"{\"w\":{\"shape\":[8],\"data_offsets\":[0,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
		"{\"v\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
		"\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
		"\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
	};
	static const char good[] =
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}";

	(void)state;
	assert_int_equal(judge_header(sizeof good - 1, good, 8), 1);
	for (size_t i = 0; i < STK_LENGTH(headers); i++)
		if (judge_header(strlen(headers[i]), headers[i], 8) != -1)
			fail_msg("'%s' passes", headers[i]);
	for (int bit = 0; bit < 64; bit++) {
		assert_int_equal(judge_header((uint64_t)1 << bit, good, 8), -1);
		assert_int_equal(judge_header(((uint64_t)1 << bit) - 1, good, 8), -1);
	}
	assert_int_equal(judge_header(UINT64_MAX, good, 8), -1);
	assert_int_equal(judge_header(UINT64_MAX - 7, good, 8), -1);
}

static void new_types_of_numbers_are_not_taken_for_damage(void **state)
{
	static const char header[] =
		"{\"w\":{\"dtype\":\"F6_NEW\",\"shape\":[8],\"data_offsets\":[0,6]}}";

	(void)state;
	assert_int_equal(judge_header(sizeof header - 1, header, 6), 1);
}

static void a_pickle_of_frames_is_followed_to_its_end(void **state)
{
	AUTO(sb_release) struct sb whole = metadata_file("__0_0.distcp");

	(void)state;
	assert_int_equal(judge_sb(".metadata", &whole), 0);
	for (size_t len = 0; len < whole.len; len++) {
		AUTO(sb_release) struct sb part = SB_INIT;

		sb_add(&part, whole.text, len);
		assert_int_equal(judge_sb(".metadata", &part), -1);
	}
	whole.text[9] = (char)0xff; /* a frame of 2^56 bytes */
	assert_int_equal(judge_sb(".metadata", &whole), -1);
}

static void hdf5_ends_where_its_superblock_says(void **state)
{
	AUTO(sb_release) struct sb file = SB_INIT;

	(void)state;
	sb_add(&file, "\x89HDF\r\n\x1a\n\2\10\10\0", 12);
	add_le(&file, 0, 8);
	add_le(&file, UINT64_MAX, 8);
	add_le(&file, 64, 8);
	while (file.len < 64)
		sb_addc(&file, 'h');
	assert_int_equal(judge_sb("model.h5", &file), 1);
	file.len = 63;
	assert_int_equal(judge_sb("model.h5", &file), -1);
	file.len = 20;
	assert_int_equal(judge_sb("model.h5", &file), -1);
}

static void what_was_written_before_zip_is_left_open(void **state)
{
	AUTO(sb_release) struct sb legacy = SB_INIT;
	AUTO(sb_release) struct sb garbage = SB_INIT;

	(void)state;
	sb_add(&legacy, "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
	assert_int_equal(judge_sb("model.pt", &legacy), 0);
	assert_int_equal(judge_sb("pytorch_model.bin", &legacy), 0);
	sb_adds(&garbage, "not what torch.save writes");
	assert_int_equal(judge_sb("model.pt", &garbage), -1);
	assert_int_equal(judge_sb("numbers.bin", &garbage), 0);
}

/* SplitMix64: the same numbers in every run. */
static uint64_t chance(uint64_t *seed)
{
	uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void change(struct sb *bytes, uint64_t *seed)
{
	static const unsigned char extremes[] = { 0x00, 0xff, 0x7f, 0x80, 0x01 };
	unsigned count = 1 + (unsigned)(chance(seed) % 8);

	while (count-- > 0 && bytes->len > 0) {
		/* Headers and ends are where the numbers are. */
		size_t at = (size_t)(chance(seed) % bytes->len);

		if (chance(seed) % 4 == 0)
			at = bytes->len - 1 - at % (bytes->len < 80 ? bytes->len : 80);
		switch (chance(seed) % 4) {
		case 0:
			bytes->text[at] = (char)chance(seed);
			break;
		case 1:
			bytes->text[at] = (char)extremes[chance(seed) % sizeof extremes];
			break;
		case 2:
			bytes->text[at] ^= (char)(1 << chance(seed) % 8);
			break;
		default:
			bytes->len = at + 1;
			break;
		}
	}
}

static void nothing_breaks_on_bytes_changed_by_chance(void **state)
{
	static const char *const names[] = { "a.safetensors",  "a.pt",      "a.npz",
					     "a.npy",          "a.json",    "a.distcp",
					     "a.h5",           ".metadata", "a.pkl",
					     "manifest.ocdbt", "a" };
	uint64_t seed = 20261121;
	size_t refused = 0, rounds = 20000;

	(void)state;
	for (size_t i = 0; i < rounds; i++) {
		AUTO(sb_release)
		struct sb bytes = samples[chance(&seed) % STK_LENGTH(samples)].make();

		change(&bytes, &seed);
		refused += judge_sb(names[chance(&seed) % STK_LENGTH(names)], &bytes) < 0;
	}
	assert_true(refused > rounds / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_truncation_is_found),
		cmocka_unit_test(bytes_behind_the_end_are_found),
		cmocka_unit_test(an_npy_file_is_as_long_as_its_header_says),
		cmocka_unit_test(json_is_accepted_as_python_writes_it),
		cmocka_unit_test(offsets_and_lengths_that_lie_are_found),
		cmocka_unit_test(new_types_of_numbers_are_not_taken_for_damage),
		cmocka_unit_test(a_pickle_of_frames_is_followed_to_its_end),
		cmocka_unit_test(hdf5_ends_where_its_superblock_says),
		cmocka_unit_test(what_was_written_before_zip_is_left_open),
		cmocka_unit_test(nothing_breaks_on_bytes_changed_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
