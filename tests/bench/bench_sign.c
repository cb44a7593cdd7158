/*
 * How many requests are signed in a second of a processor: `own` by sigv4_sign() with all
 * that belongs to it, `digests` only the digests that any signer must compute over the
 * same bytes. FILE holds a request a line (tests/aws/request_line.h); each is signed so
 * many times.
 */
#include "tests/bench/bench.h"

#include "tests/aws/request_line.h"

struct bench {
	struct request_line *lines;
	size_t count;
	struct sb *canonical; /* of each line */
	struct sigv4_keys *keys;
	struct sigv4_signed made;
};

static void load(const char *path, struct bench *bench)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0, cap = 0;
	ssize_t len;

	if (!file)
		give_up(path, NULL);
	while ((len = getline(&text, &size, file)) > 0) {
		struct err *err = NULL;

		if (bench->count == cap) {
			cap = cap ? cap * 2 : 64;
			bench->lines = mem_grow(bench->lines, cap, sizeof *bench->lines);
		}
		if (request_line_read(text, (size_t)len, &bench->lines[bench->count++], &err) < 0)
			give_up(path, err);
	}
	free(text);
	fclose(file);
}

/* Every request once, before the clock runs: the digest of all signatures. */
static void sign_all(struct bench *bench, char hex[SHA256_HEX])
{
	struct sha256 *sha = hash_sha256_new();

	bench->canonical = mem_zero(bench->count, sizeof *bench->canonical);
	for (size_t i = 0; i < bench->count; i++) {
		struct request_line *line = &bench->lines[i];

		sigv4_sign(bench->keys, &line->who, &line->request, line->at, &bench->made);
		hash_sha256_add(sha, bench->made.signature, SHA256_HEX - 1);
		bench->canonical[i] = SB_INIT;
		sb_add(&bench->canonical[i], bench->made.canonical.text, bench->made.canonical.len);
	}
	hash_sha256_end(sha, hex);
}

static void sign_own(struct bench *bench, long rounds)
{
	for (long round = 0; round < rounds; round++) {
		for (size_t i = 0; i < bench->count; i++) {
			struct request_line *line = &bench->lines[i];

			sigv4_sign(bench->keys, &line->who, &line->request, line->at, &bench->made);
		}
	}
}

static void digest_only(struct bench *bench, long rounds)
{
	struct sha256 *sha = hash_sha256_new();
	struct hmac *hmac = hash_hmac_new();
	uint8_t digest[SHA256_BYTES];
	char to_sign[140] = { 0 };

	hash_hmac_key(hmac, "key", 3);
	for (long round = 0; round < rounds; round++) {
		for (size_t i = 0; i < bench->count; i++) {
			hash_sha256_add(sha, bench->canonical[i].text, bench->canonical[i].len);
			hash_sha256_next(sha, digest);
			hash_hmac_sign(hmac, to_sign, sizeof to_sign, digest);
		}
	}
	hash_sha256_freep(&sha);
	hash_hmac_freep(&hmac);
}

int main(int argc, char **argv)
{
	struct bench bench = { .keys = sigv4_keys_new(), .made = SIGV4_SIGNED_INIT };
	char hex[SHA256_HEX];
	double begin;
	long rounds;

	if (argc != 4)
		give_up("usage: bench_sign own|digests FILE ROUNDS", NULL);
	load(argv[2], &bench);
	rounds = number_of(argv[3]);
	sign_all(&bench, hex);
	begin = cpu_seconds();
	if (strcmp(argv[1], "own") == 0)
		sign_own(&bench, rounds);
	else
		digest_only(&bench, rounds);
	printf("{\"seconds\": %.6f, \"signatures\": %zu, \"digest\": \"%s\"}\n",
	       cpu_seconds() - begin, bench.count * (size_t)rounds, hex);
	return 0;
}
