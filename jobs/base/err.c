/* Errors as values: see err.h. */
#include "jobs/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

static STK_PRINTF(1, 0) char *format_v(const char *fmt, va_list args)
{
	struct sb text = SB_INIT;

	sb_addv(&text, fmt, args);
	return sb_take(&text);
}

/* Names in parentheses: err.h defines macros of the same names for the analyzer. */
int(err_set)(struct err **err, enum exit_code code, const char *fmt, ...)
{
	va_list args;

	/* A second error on top of the first would lose one of them. */
	if (*err)
		abort();
	*err = mem_zero(1, sizeof **err);
	(*err)->code = code;
	va_start(args, fmt);
	(*err)->message = format_v(fmt, args);
	va_end(args);
	return -1;
}

int(err_system)(struct err **err, enum exit_code code, int os_errno, const char *fmt, ...)
{
	AUTO(auto_free) char *what = NULL;
	va_list args;

	va_start(args, fmt);
	what = format_v(fmt, args);
	va_end(args);
	err_set(err, code, "%s: %s", what, strerror(os_errno));
	(*err)->os_errno = os_errno;
	return -1;
}

int(err_wrap)(struct err **err, const char *fmt, ...)
{
	AUTO(auto_free) char *context = NULL;
	char *joined;
	va_list args;

	va_start(args, fmt);
	context = format_v(fmt, args);
	va_end(args);
	joined = mem_format("%s: %s", context, (*err)->message);
	free((*err)->message);
	(*err)->message = joined;
	return -1;
}

int(err_hint)(struct err **err, const char *fmt, ...)
{
	char *hint;
	va_list args;

	/* The arguments may quote the hint that is replaced here. */
	va_start(args, fmt);
	hint = format_v(fmt, args);
	va_end(args);
	free((*err)->hint);
	(*err)->hint = hint;
	return -1;
}

int(err_at)(struct err **err, const char *file, int line, int column)
{
	free((*err)->file);
	(*err)->file = file ? mem_copy(file) : NULL;
	(*err)->line = line;
	(*err)->column = column;
	return -1;
}

int(err_field)(struct err **err, const char *field)
{
	free((*err)->field);
	(*err)->field = field ? mem_copy(field) : NULL;
	return -1;
}

int(err_code)(struct err **err, enum exit_code code)
{
	(*err)->code = code;
	return -1;
}

int(err_damage)(struct err **err)
{
	(*err)->damage = true;
	return -1;
}

int(err_again)(struct err **err, const struct err *from)
{
	err_set(err, from->code, "%s", from->message);
	if (from->hint)
		err_hint(err, "%s", from->hint);
	err_at(err, from->file, from->line, from->column);
	err_field(err, from->field);
	(*err)->os_errno = from->os_errno;
	(*err)->damage = from->damage;
	return -1;
}

void err_free(struct err *err)
{
	if (!err)
		return;
	free(err->message);
	free(err->hint);
	free(err->file);
	free(err->field);
	free(err);
}

void err_freep(struct err **err)
{
	err_free(*err);
	*err = NULL;
}

char *err_format(const struct err *err)
{
	struct sb text = SB_INIT;

	if (err->file) {
		sb_adds(&text, err->file);
		if (err->line > 0)
			sb_addf(&text, ":%d", err->line);
		if (err->line > 0 && err->column > 0)
			sb_addf(&text, ":%d", err->column);
		sb_adds(&text, ": ");
	}
	sb_adds(&text, err->message);
	return sb_take(&text);
}

bool err_passes(const struct err *why)
{
	return why->os_errno ? err_errno_passes(why->os_errno) : why->code == EXIT_UNREACHABLE;
}

bool err_errno_passes(int os_errno)
{
	switch (os_errno) {
	case EACCES: /* even for root: a file server that has lost its keys */
	case EPERM:
	case EAGAIN:
	case EBUSY:
	case ECONNREFUSED:
	case ECONNRESET:
	case EDQUOT:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EINTR:
	case EIO:
	case EMFILE:
	case EMLINK:
	case ENETDOWN:
	case ENETUNREACH:
	case ENFILE:
	case ENOBUFS:
	case ENOLCK:
	case ENOMEM:
	case ENOSPC:
	case ENOTCONN:
	case EREMOTEIO:
	case EROFS: /* while a file system is mounted again */
	case ESTALE:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

bool err_try_again(int *failures)
{
	return errno == EINTR || (err_errno_passes(errno) && ++*failures < ERR_FAILURES);
}
