/*
 * One of the two shared files, ~/.aws/config and ~/.aws/credentials, as botocore reads
 * them (Python's configparser, strict, without interpolation):
 *
 *   [default], [profile NAME], [sso-session NAME], [services NAME], where NAME may be
 *   quoted; in the credentials file each section is a profile by its bare name
 *   key = value or key : value; keys of the first level in any case
 *   lines that begin with # or ; are comments, there are none at the end of a line
 *   deeper lines go on with a value; after an empty one they are keys of their own
 *   ("s3 =", then "  addressing_style = path": the key "s3.addressing_style")
 *   [DEFAULT] holds for all sections; other sections are read and ignored
 *
 * A second section of the same name, or a key twice in one, is an error, as is a line that
 * is none of these; all are told with file and line, never with the line's text.
 */
#ifndef STK_AWS_PROFILE_H
#define STK_AWS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

enum profile_file_kind { PROFILE_CONFIG, PROFILE_CREDENTIALS };

struct profile_file;

/* What is not there, or is no regular file, reads as empty. EXIT_REFUSED, with the place,
 * if it cannot be read or parsed. */
int profile_read(const char *path, enum profile_file_kind kind, struct profile_file **ret,
		 struct err **err);
/* The same of a text, which is cut and wiped; `path` names it. */
int profile_parse(const char *path, char *text, enum profile_file_kind kind,
		  struct profile_file **ret, struct err **err);
void profile_freep(struct profile_file **file); /* for AUTO(); wipes */

/* `kind` is "profile", "sso-session" or "services". Borrowed; NULL: there is none. */
const char *profile_value(const struct profile_file *file, const char *kind, const char *name,
			  const char *key);
bool profile_has(const struct profile_file *file, const char *kind, const char *name);
/* The i-th profile's name; NULL behind the last. */
const char *profile_name(const struct profile_file *file, size_t i);

/* Wipe secret keys and tokens: what stays says that there are some. */
void profile_wipe_secrets(struct profile_file *file);

#endif
