/* Reading the bytes of a spec and refusing bytes that are not text: see bytes.h. */
#include "jobs/spec/fields/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/text/text.h"

static const struct mark file_start = { .line = 1, .column = 1 };

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory";
	if (S_ISFIFO(mode))
		return "a pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

static int refuse(struct err **err, const char *path, const char *what, int os_errno)
{
	err_system(err, EXIT_SPEC, os_errno, "cannot read %s", what);
	err_at(err, path, 0, 0);
	switch (os_errno) {
	case ENOENT:
		return err_hint(err, "check the name, or write a starter spec: stoker init %s",
				path);
	case EACCES:
		return err_hint(err, "make the file readable: chmod u+r, or ask its owner");
	case EBADF:
		return err_hint(err,
				"stdin is closed: pipe the spec into the command, or name a file");
	case ELOOP:
		return err_hint(err, "name the file itself; the link points back to itself");
	default:
		return -1;
	}
}

static int refuse_kind(struct err **err, const char *path, const char *what, mode_t mode)
{
	err_set(err, EXIT_SPEC, "cannot read %s: is %s", what, kind_of(mode));
	err_at(err, path, 0, 0);
	if (S_ISDIR(mode))
		return err_hint(err, "name the YAML file inside the directory");
	return err_hint(err, "write the spec to a regular file, or pipe it into 'stoker … -'");
}

int bytes_read(struct reporter *reporter, const char *path, const char *what, struct sb *text,
	       struct err **err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	/* O_NONBLOCK: opening a pipe must not wait for a writer. */
	AUTO(auto_close)
	int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			  : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char block[65536];
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(err, path, what, errno);
	if (!S_ISREG(st.st_mode) && (!is_stdin || S_ISDIR(st.st_mode)))
		return refuse_kind(err, path, what, st.st_mode);
	/* Files of /proc report size 0 and may grow while read: count the bytes that arrive. */
	while (st.st_size <= (off_t)SPEC_BYTES_MAX && text->len <= SPEC_BYTES_MAX) {
		n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		sb_add(text, block, (size_t)n);
	}
	if (n < 0)
		return refuse(err, path, what, errno);
	if (st.st_size > (off_t)SPEC_BYTES_MAX || text->len > SPEC_BYTES_MAX) {
		problem_hint(
			problem_error(reporter, file_start, NULL, "the file is larger than 1 MiB"),
			"check that the file is a spec; move long lists into files of the source");
		return -1;
	}
	return 0;
}

struct mark bytes_mark(const char *text, size_t offset)
{
	struct mark at = { .line = 1, .column = 1 };

	for (size_t i = 0; i < offset; i++) {
		if (text[i] == '\n') {
			at.line++;
			at.column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			at.column++; /* not a continuation byte */
		}
	}
	return at;
}

char bytes_at(const char *text, size_t len, struct mark at)
{
	int line = 1, column = 1;

	for (size_t i = 0; i < len; i++) {
		if (line == at.line && column == at.column &&
		    ((unsigned char)text[i] & 0xc0) != 0x80)
			return text[i];
		if (text[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	return '\0';
}

static int bad_byte(struct reporter *reporter, const char *text, size_t len, size_t skip,
		    size_t offset)
{
	struct mark at = bytes_mark(text + skip, offset - skip);
	unsigned char byte = (unsigned char)text[offset];

	if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
		problem_hint(problem_error(reporter, file_start, NULL, "the file is UTF-16"),
			     "save it as UTF-8");
	} else if (byte == 0) {
		problem_hint(problem_error(reporter, at, NULL, "a NUL byte: not a text file"),
			     "check that the file is a spec, then remove the byte");
	} else if (byte < 0x80) {
		problem_hint(
			problem_error(reporter, at, NULL, "a control character (U+%04X)", byte),
			"remove the character; inside \"…\" write it as \\x%02x", byte);
	} else {
		problem_hint(problem_error(reporter, at, NULL, "byte 0x%02x is not UTF-8", byte),
			     "save the file as UTF-8 (iconv -f latin1 -t utf8 may do it)");
	}
	return -1;
}

int bytes_check(struct reporter *reporter, const char *text, size_t len, size_t *ret_skip)
{
	size_t skip = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	for (size_t i = skip; i < len;) {
		unsigned char byte = (unsigned char)text[i];
		uint32_t code;
		size_t n = 1;

		if (byte >= 0x80)
			n = text_utf8(text + i, len - i, &code);
		else if ((byte < ' ' && byte != '\n' && byte != '\r' && byte != '\t') ||
			 byte == 0x7f)
			n = 0;
		if (n == 0)
			return bad_byte(reporter, text, len, skip, i);
		i += n;
	}
	*ret_skip = skip;
	return 0;
}
