/*
 * The compressed entries of JAX's cache: is a file whole? The answer must be that of
 * the library that reads such a file, and the same however the bytes arrive. Every
 * byte of the input is the file's; where reads are cut follows from its digest.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/cache/kinds/jax.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/stream_check.h"

#define OUT_MAX ((size_t)64 << 20) /* what a few kB can unpack to */
#define NAME    "jit_f-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-cache"

struct verdict {
	enum entry_state state;
	const char *why;
};

static struct verdict inspect(int fd)
{
	struct verdict verdict = { ENTRY_STATES, "" };

	MUST(stream_check_inspect(fd, &verdict.state, &verdict.why) == 0);
	MUST(verdict.state == ENTRY_DONE || verdict.state == ENTRY_EMPTY ||
	     verdict.state == ENTRY_PARTIAL);
	MUST((verdict.state == ENTRY_DONE) == (verdict.why == NULL));
	return verdict;
}

static struct verdict inspect_file(const void *bytes, size_t len)
{
	AUTO(auto_close) int fd = memfd_create("entry", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
	return inspect(fd);
}

/* The bytes go in pieces: each read of such a socket gives one of them, however much was asked
 * for. */
static struct verdict inspect_pieces(const char *bytes, size_t len, const char *cuts)
{
	AUTO(auto_close) int in = -1;
	AUTO(auto_close) int out = -1;
	int ends[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	in = ends[0];
	out = ends[1];
	for (size_t at = 0, n = 0; at < len; n++) {
		size_t piece = (size_t)cuts[n % (SHA256_HEX - 1)] - '/';

		/* The last one takes the rest: a socket holds only so many. */
		if (n == 20 || piece > len - at)
			piece = len - at;
		MUST(send(out, bytes + at, piece, 0) == (ssize_t)piece);
		at += piece;
	}
	MUST(shutdown(out, SHUT_WR) == 0);
	return inspect(in);
}

/* True if zlib takes all of the bytes at once. */
static bool zlib_takes(const char *bytes, size_t len)
{
	static unsigned char *out;
	z_stream z = { 0 };
	int rc;

	if (!out)
		out = mem_alloc(OUT_MAX);
	MUST(inflateInit(&z) == Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)bytes;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = OUT_MAX;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return rc == Z_STREAM_END;
}

/* A directory that whoever started us removes with all that is temporary. */
static struct store *open_folder(void)
{
	const char *parent = getenv("TMPDIR");
	AUTO(auto_free) char *folder = fs_join(parent ? parent : "/tmp", "fuzz-entry-XXXXXX");
	AUTO(err_freep) struct err *err = NULL;
	struct store *store = NULL;

	MUST(mkdtemp(folder) && store_open(folder, &store, &err) == 0);
	return store;
}

/* Checks that a directory store says the same of the bytes as an entry of a cache. */
static void check_stored(const char *bytes, size_t len, struct verdict want)
{
	static struct store *store;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_close) int fd = -1;
	struct verdict verdict = { ENTRY_STATES, "" };
	struct content content;
	char hex[SHA256_HEX];

	if (!store)
		store = open_folder();
	path = fs_join(store_url(store), NAME);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	MUST(content_inspect(store, &jax_kind, NAME, &verdict.state, &verdict.why, &err) == 1);
	MUST(verdict.state == want.state && verdict.why == want.why);
	MUST(content_digest(store, NAME, &content, &err) == 1);
	hash_sha256_hex(bytes, len, hex);
	MUST(content.size == len && !content.tagged && strcmp(content.digest, hex) == 0);
	MUST(unlink(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct verdict whole = inspect_file(data, size), other;
	char cuts[SHA256_HEX];

	MUST((whole.state == ENTRY_EMPTY) == (size == 0));
	hash_sha256_hex(data, size, cuts);
	other = inspect_pieces(bytes, size, cuts);
	MUST(other.state == whole.state && other.why == whole.why);
	if (size > 0 && data[0] == 0x78)
		MUST((whole.state == ENTRY_DONE) == zlib_takes(bytes, size));
	if (size > 0) {
		/* A file that was cut says nothing that its whole would not say; and
		 * nothing behind the end of one that is whole changes it. */
		other = inspect_file(data, size - 1);
		MUST(other.state != ENTRY_DONE || whole.state == ENTRY_DONE);
	}
	check_stored(bytes, size, whole);
	return 0;
}
