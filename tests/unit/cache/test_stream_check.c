/* Whole and damaged entries, as JAX wrote them with zlib and with zstandard. */
#include "tests/unit/cache/support.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <zlib.h>

#include "jobs/cache/verdict/stream_check.h"

static enum entry_state inspect(const char *dir, const void *bytes, size_t len,
				const char **ret_why)
{
	AUTO(auto_free) char *path = fs_join(dir, "x");
	enum entry_state state = ENTRY_STATES;
	int fd;

	write_file(dir, "x", bytes, len);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(stream_check_inspect(fd, &state, ret_why), 0);
	close(fd);
	assert_int_equal(state == ENTRY_DONE, *ret_why == NULL);
	return state;
}

static enum entry_state state_of(const char *dir, const void *bytes, size_t len)
{
	const char *why = NULL;

	return inspect(dir, bytes, len, &why);
}

static const char *why_of(const char *dir, const void *bytes, size_t len)
{
	const char *why = NULL;

	inspect(dir, bytes, len, &why);
	return why ? why : "nothing";
}

static void real_entries_are_whole(void **state)
{
	AUTO(sb_release) struct sb zlib = data_hex("entry_zlib.hex");
	AUTO(sb_release) struct sb zstd = data_hex("entry_zstd.hex");

	assert_int_equal(state_of(*state, zlib.text, zlib.len), ENTRY_DONE);
	assert_int_equal(state_of(*state, zstd.text, zstd.len), ENTRY_DONE);
}

/* Reads of a network file system, and those that a signal ends, bring what they have. */
static void an_entry_is_whole_however_short_the_reads_are(void **state)
{
	static const char *const names[] = { "entry_zlib.hex", "entry_zstd.hex" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(sb_release) struct sb whole = data_hex(names[i]);
		enum entry_state found = ENTRY_STATES;
		const char *why = NULL;
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
		for (size_t at = 0, piece = 1; at < whole.len; at += piece, piece *= 2) {
			if (piece > whole.len - at)
				piece = whole.len - at;
			assert_int_equal(send(ends[1], whole.text + at, piece, 0), piece);
		}
		close(ends[1]);
		assert_int_equal(stream_check_inspect(ends[0], &found, &why), 0);
		close(ends[0]);
		assert_int_equal(found, ENTRY_DONE);
	}
}

static void an_entry_cut_at_any_byte_is_not_whole(void **state)
{
	static const char *const names[] = { "entry_zlib.hex", "entry_zstd.hex" };

	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(sb_release) struct sb whole = data_hex(names[i]);

		for (size_t len = 1; len < whole.len; len += len < 32 ? 1 : 61)
			assert_int_equal(state_of(*state, whole.text, len), ENTRY_PARTIAL);
		assert_int_equal(state_of(*state, whole.text, whole.len - 1), ENTRY_PARTIAL);
	}
	assert_int_equal(state_of(*state, "", 0), ENTRY_EMPTY);
}

static void a_flipped_bit_in_a_zlib_entry_is_found(void **state)
{
	AUTO(sb_release) struct sb zlib = data_hex("entry_zlib.hex");

	for (size_t at = 0; at < zlib.len; at += 97) {
		zlib.text[at] = (char)(zlib.text[at] ^ 4);
		assert_int_equal(state_of(*state, zlib.text, zlib.len), ENTRY_PARTIAL);
		zlib.text[at] = (char)(zlib.text[at] ^ 4);
	}
}

static void bytes_behind_a_zlib_stream_do_no_harm(void **state)
{
	AUTO(sb_release) struct sb zlib = data_hex("entry_zlib.hex");

	sb_adds(&zlib, "junk");
	assert_int_equal(state_of(*state, zlib.text, zlib.len), ENTRY_DONE);
}

/* Returns a stream as Python's zlib makes it of `len` bytes, of which every `every`-th is chance;
 * yours to release. */
static struct sb stream_of(size_t len, size_t every)
{
	AUTO(auto_free) unsigned char *bytes = mem_zero(len, 1);
	uLongf room = compressBound(len);
	AUTO(auto_free) unsigned char *packed = mem_zero(room, 1);
	struct sb stream = SB_INIT;
	uint32_t chance = 1;

	for (size_t i = 0; i < len; i += every) {
		chance = chance * 1664525 + 1013904223;
		bytes[i] = (unsigned char)(chance >> 24);
	}
	assert_int_equal(compress2(packed, &room, bytes, len, 6), Z_OK);
	sb_add(&stream, (const char *)packed, room);
	return stream;
}

/* Small and large on either side of the file: whichever way it is read. */
static void streams_of_any_size_are_proved_by_their_checksum(void **state)
{
	static const struct {
		size_t len, every;
	} shapes[] = { { 1, 1 },           { 5000, 3 },      { 60000, 1 },
		       { 300000, 1 },      { 1 << 20, 400 }, { (1 << 20) + 1, 400 },
		       { 8 << 20, 100000 } };

	for (size_t i = 0; i < STK_LENGTH(shapes); i++) {
		AUTO(sb_release) struct sb stream = stream_of(shapes[i].len, shapes[i].every);
		char *last = &stream.text[stream.len - 1];

		assert_int_equal(state_of(*state, stream.text, stream.len), ENTRY_DONE);
		assert_int_equal(state_of(*state, stream.text, stream.len - 1), ENTRY_PARTIAL);
		*last = (char)(*last ^ 1);
		assert_int_equal(state_of(*state, stream.text, stream.len), ENTRY_PARTIAL);
		*last = (char)(*last ^ 1);
		sb_adds(&stream, "junk");
		assert_int_equal(state_of(*state, stream.text, stream.len), ENTRY_DONE);
	}
}

static void a_cut_is_told_from_damage(void **state)
{
	AUTO(sb_release) struct sb stream = stream_of(5000, 3);

	assert_string_equal(why_of(*state, stream.text, stream.len / 2), "cut off before its end");
	stream.text[stream.len - 1] ^= 1;
	assert_string_equal(why_of(*state, stream.text, stream.len), "damaged bytes");
}

static void what_is_no_stream_is_damaged(void **state)
{
	static const char zeros[70000];

	assert_int_equal(state_of(*state, "hello", 5), ENTRY_PARTIAL);
	assert_int_equal(state_of(*state, zeros, sizeof zeros), ENTRY_PARTIAL);
	assert_int_equal(state_of(*state, "\x28\xb5\x2f\xfd", 4), ENTRY_PARTIAL);
	assert_int_equal(state_of(*state, "\x28\xb5\x2f\xfd\x20\x01\x07\x00\x00", 9),
			 ENTRY_PARTIAL);
}

/* A frame of one raw block: longer than the reader's buffer, and with the
 * optional checksum. */
static void long_zstd_blocks_are_followed_to_the_checksum(void **state)
{
	AUTO(sb_release) struct sb frame = SB_INIT;
	const unsigned size = 100000, head = size << 3 | 1;
	const char block[3] = { (char)(head & 255), (char)(head >> 8 & 255), (char)(head >> 16) };

	sb_add(&frame, "\x28\xb5\x2f\xfd\x04\x58", 6);
	sb_add(&frame, block, 3);
	for (unsigned i = 0; i < size; i++)
		sb_addc(&frame, 'x');
	assert_int_equal(state_of(*state, frame.text, frame.len), ENTRY_PARTIAL);
	sb_add(&frame, "sum!", 4);
	assert_int_equal(state_of(*state, frame.text, frame.len), ENTRY_DONE);
	assert_int_equal(state_of(*state, frame.text, frame.len - 1), ENTRY_PARTIAL);
}

/* A block of type 1 says how often one byte is repeated: its size is no length. */
static void repeated_bytes_in_a_zstd_frame_take_one_byte(void **state)
{
	static const char frame[] = "\x28\xb5\x2f\xfd\x00\x58\x43\x1f\x00x";

	assert_int_equal(state_of(*state, frame, sizeof frame - 1), ENTRY_DONE);
	assert_int_equal(state_of(*state, frame, sizeof frame - 2), ENTRY_PARTIAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(real_entries_are_whole),
		test_in_scratch(an_entry_is_whole_however_short_the_reads_are),
		test_in_scratch(an_entry_cut_at_any_byte_is_not_whole),
		test_in_scratch(a_flipped_bit_in_a_zlib_entry_is_found),
		test_in_scratch(bytes_behind_a_zlib_stream_do_no_harm),
		test_in_scratch(streams_of_any_size_are_proved_by_their_checksum),
		test_in_scratch(a_cut_is_told_from_damage),
		test_in_scratch(what_is_no_stream_is_damaged),
		test_in_scratch(long_zstd_blocks_are_followed_to_the_checksum),
		test_in_scratch(repeated_bytes_in_a_zstd_frame_take_one_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
