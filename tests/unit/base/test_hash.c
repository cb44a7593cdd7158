/* The promises of hash.h, by the vectors of FIPS 180-4 and NIST's examples. */
#include "jobs/base/hash.h"

#include <errno.h>

#include "tests/unit/base/unit.h"

#define EMPTY   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define MILLION "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void published_vectors_hold(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", EMPTY },
		{ "abc", ABC },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
		  "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	char hex[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		hash_sha256_hex(rows[i].text, strlen(rows[i].text), hex);
		assert_string_equal(hex, rows[i].want);
	}
}

static void pieces_of_any_size_make_the_same_digest(void **state)
{
	AUTO(auto_free) char *text = mem_alloc(1000000);
	char hex[SHA256_HEX];

	(void)state;
	memset(text, 'a', 1000000);
	for (size_t piece = 1; piece <= 1000000; piece = piece * 7 + 1) {
		struct sha256 *sha = hash_sha256_new();

		for (size_t at = 0; at < 1000000; at += piece)
			hash_sha256_add(sha, text + at,
					piece < 1000000 - at ? piece : 1000000 - at);
		hash_sha256_add(sha, NULL, 0);
		hash_sha256_end(sha, hex);
		assert_string_equal(hex, MILLION);
	}
}

static void a_digest_may_be_abandoned(void **state)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	struct sha256 *none = NULL;

	(void)state;
	hash_sha256_add(sha, "abc", 3);
	hash_sha256_freep(&none);
}

static void a_file_has_digest_and_size(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "f");
	AUTO(auto_free) char *text = mem_alloc(1000000);
	AUTO(err_freep) struct err *err = NULL;
	char hex[SHA256_HEX];
	uint64_t size = 42;

	memset(text, 'a', 1000000);
	fs_write_atomic(path, text, 1000000, 0600, &err);
	assert_no_error(err);
	assert_int_equal(hash_sha256_file(path, hex, &size, &err), 0);
	assert_string_equal(hex, MILLION);
	assert_int_equal(size, 1000000);
	fs_write_atomic(path, "", 0, 0600, &err);
	assert_int_equal(hash_sha256_file(path, hex, &size, &err), 0);
	assert_string_equal(hex, EMPTY);
	assert_int_equal(size, 0);
}

static void what_is_no_file_has_no_digest(void **state)
{
	AUTO(auto_free) char *fifo = fs_join(*state, "fifo");
	AUTO(auto_free) char *absent = fs_join(*state, "absent");
	const char *const paths[] = { *state, fifo, absent, "/dev/zero" };
	char hex[SHA256_HEX];
	uint64_t size;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < STK_LENGTH(paths); i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(hash_sha256_file(paths[i], hex, &size, &err), -1);
		assert_contains(err->message, paths[i]);
		assert_int_equal(err->code, EXIT_REFUSED);
	}
}

static void chance_differs_and_fills_every_byte(void **state)
{
	unsigned char a[32], b[32], seen[300] = { 0 };

	(void)state;
	hash_random_bytes(a, sizeof a);
	hash_random_bytes(b, sizeof b);
	assert_memory_not_equal(a, b, sizeof a);
	for (int turn = 0; turn < 64; turn++) {
		unsigned char bytes[300];

		hash_random_bytes(bytes, sizeof bytes);
		for (size_t i = 0; i < sizeof bytes; i++)
			seen[i] |= bytes[i];
	}
	for (size_t i = 0; i < sizeof seen; i++)
		assert_int_not_equal(seen[i], 0);
	hash_random_bytes(a, 0);
}

/* Test cases 1, 2, 3, 4, 6 and 7 of RFC 4231: keys shorter and longer than a block. */
static void hmac_agrees_with_its_published_vectors(void **state)
{
	static const struct {
		char key_byte;
		size_t key_len;
		const char *key, *text;
		char text_byte;
		size_t text_len;
		const char *want;
	} rows[] = {
		{ 0x0b, 20, NULL, "Hi There", 0, 8,
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ 0, 4, "Jefe", "what do ya want for nothing?", 0, 28,
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ (char)0xaa, 20, NULL, NULL, (char)0xdd, 50,
		  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
		{ 0, 25,
		  "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
		  "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
		  NULL, (char)0xcd, 50,
		  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ (char)0xaa, 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
		  0, 54, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ (char)0xaa, 131, NULL,
		  "This is a test using a larger than block-size key and a larger than block-size "
		  "data. The key needs to be hashed before being used by the HMAC algorithm.",
		  0, 152, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};
	AUTO(hash_hmac_freep) struct hmac *hmac = hash_hmac_new();
	char key[131], text[152], hex[SHA256_HEX];
	uint8_t mac[SHA256_BYTES];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		memset(key, rows[i].key_byte, sizeof key);
		memset(text, rows[i].text_byte, sizeof text);
		hash_hmac_key(hmac, rows[i].key ? rows[i].key : key, rows[i].key_len);
		for (int again = 0; again < 2; again++) {
			hash_hmac_sign(hmac, rows[i].text ? rows[i].text : text, rows[i].text_len,
				       mac);
			hash_hex_lower(mac, sizeof mac, hex);
			assert_string_equal(hex, rows[i].want);
		}
	}
}

static void one_digest_after_another_is_as_new(void **state)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	uint8_t digest[SHA256_BYTES];
	char hex[SHA256_HEX];

	(void)state;
	for (int i = 0; i < 3; i++) {
		hash_sha256_add(sha, "abc", 3);
		hash_sha256_next(sha, digest);
		hash_hex_lower(digest, sizeof digest, hex);
		assert_string_equal(hex, ABC);
	}
}

static void a_digest_is_also_told_in_base64_and_names_by_sha1(void **state)
{
	char base64[SHA256_BASE64], hex[SHA1_HEX];

	(void)state;
	hash_sha256_base64(EMPTY, base64);
	assert_string_equal(base64, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
	hash_sha1_hex("abc", 3, hex);
	assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_hold),
		cmocka_unit_test(pieces_of_any_size_make_the_same_digest),
		cmocka_unit_test(a_digest_may_be_abandoned),
		cmocka_unit_test(hmac_agrees_with_its_published_vectors),
		cmocka_unit_test(one_digest_after_another_is_as_new),
		cmocka_unit_test(a_digest_is_also_told_in_base64_and_names_by_sha1),
		test_in_scratch(a_file_has_digest_and_size),
		test_in_scratch(what_is_no_file_has_no_digest),
		cmocka_unit_test(chance_differs_and_fills_every_byte),
	};

	return cmocka_run_group_tests_name("base/hash", tests, NULL, NULL);
}
