/*
 * Reader of the two shared files, ~/.aws/config and ~/.aws/credentials, as botocore reads them
 * (Python's configparser, strict, without interpolation):
 *
 *   [default], [profile NAME], [sso-session NAME], [services NAME], where NAME may be
 *   quoted; in the credentials file each section is a profile by its bare name
 *   key = value or key : value; keys of the first level in any case
 *   lines that begin with # or ; are comments, there are none at the end of a line
 *   deeper lines continue a value; after an empty one they are keys of their own
 *   ("s3 =", then "  addressing_style = path": the key "s3.addressing_style")
 *   [DEFAULT] holds for all sections; other sections are read and ignored
 *
 * A second section of the same name, a key that stands twice in one section, or any other kind of
 * line is an error. Errors name file and line, never the line's text.
 */
#ifndef STK_AWS_CREDENTIALS_PROFILE_H
#define STK_AWS_CREDENTIALS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

enum profile_file_kind { PROFILE_CONFIG, PROFILE_CREDENTIALS };

struct profile_file;

/* Reads a file. A file that is absent or not a regular file counts as empty. EXIT_REFUSED, with
 * file and line, if it cannot be read or parsed. */
int profile_read(const char *path, enum profile_file_kind kind, struct profile_file **ret,
		 struct err **err);
/* Parses a text, which is modified and wiped; `path` names it in errors. */
int profile_parse(const char *path, char *text, enum profile_file_kind kind,
		  struct profile_file **ret, struct err **err);
void profile_freep(struct profile_file **file); /* for AUTO(); wipes */

/* `kind` is "profile", "sso-session" or "services". The result is borrowed; NULL if absent. */
const char *profile_value(const struct profile_file *file, const char *kind, const char *name,
			  const char *key);
bool profile_has(const struct profile_file *file, const char *kind, const char *name);
/* Returns the i-th profile's name; NULL past the last. */
const char *profile_name(const struct profile_file *file, size_t i);

/* Wipes secret keys and tokens; that they are present can still be seen. */
void profile_wipe_secrets(struct profile_file *file);

#endif
