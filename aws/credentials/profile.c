/* The shared config and credentials files: see profile.h. */
#include "aws/credentials/profile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/secret.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/shell_words.h"
#include "jobs/base/text/text.h"

#define FILE_MAX ((size_t)1 << 20)

struct setting {
	char *key, *value; /* owned, wiped */
};

struct section {
	char *header;      /* as it stands in the file */
	char *kind, *name; /* owned; kind "": a section that is never looked up */
	struct setting *settings;
	size_t count;
};

struct profile_file {
	char *path;
	struct section *sections;
	size_t count;
};

/* State of the parser. */
struct profile_reader {
	struct profile_file *file;
	enum profile_file_kind kind;
	struct section *section; /* NULL before the first */
	struct setting *setting; /* the setting that deeper lines continue, or NULL */
	bool nested;             /* deeper lines are keys of their own */
	char *outer;             /* "s3" */
	size_t indent;           /* indentation of the last key or header */
	int line;
};

static void section_release(struct section *section)
{
	for (size_t i = 0; i < section->count; i++) {
		free(section->settings[i].key);
		secret_freep(&section->settings[i].value);
	}
	free(section->settings);
	free(section->header);
	free(section->kind);
	free(section->name);
}

void profile_freep(struct profile_file **file)
{
	if (!*file)
		return;
	for (size_t i = 0; i < (*file)->count; i++)
		section_release(&(*file)->sections[i]);
	free((*file)->sections);
	free((*file)->path);
	free(*file);
	*file = NULL;
}

static struct section *find_section(const struct profile_file *file, const char *kind,
				    const char *name)
{
	for (size_t i = 0; i < file->count; i++)
		if (strcmp(file->sections[i].kind, kind) == 0 &&
		    strcmp(file->sections[i].name, name) == 0)
			return &file->sections[i];
	return NULL;
}

static struct setting *find_setting(const struct section *section, const char *key)
{
	for (size_t i = 0; section && i < section->count; i++)
		if (strcmp(section->settings[i].key, key) == 0)
			return &section->settings[i];
	return NULL;
}

/* Sets an error about the line being read. */
static int wrong(const struct profile_reader *reader, struct err **err, const char *what)
{
	err_set(err, EXIT_REFUSED, "%s", what);
	err_hint(err, "correct this line of the shared AWS %s file",
		 reader->kind == PROFILE_CONFIG ? "config" : "credentials");
	return err_at(err, reader->file->path, reader->line, 0);
}

/* Sets kind and name of a section from its header. */
static void name_section(const struct profile_reader *reader, struct section *section)
{
	AUTO(auto_strv) char **words = NULL;
	size_t count = 0;

	if (reader->kind == PROFILE_CREDENTIALS || strcmp(section->header, "default") == 0) {
		section->kind = mem_copy("profile");
		section->name = mem_copy(section->header);
		return;
	}
	words = shell_words(section->header, &count);
	/* The kind must come first, without a quote. */
	if (words && count == 2 && text_starts(section->header, words[0]) &&
	    (strcmp(words[0], "profile") == 0 || strcmp(words[0], "sso-session") == 0 ||
	     strcmp(words[0], "services") == 0)) {
		section->kind = mem_copy(words[0]);
		section->name = mem_copy(words[1]);
		return;
	}
	section->kind = mem_copy("");
	section->name = mem_copy(section->header);
}

static int read_header(struct profile_reader *reader, const char *text, struct err **err)
{
	struct profile_file *file = reader->file;
	struct section made = { 0 }, *old;
	const char *end = strchr(text, ']');

	if (!end || end == text + 1)
		return wrong(reader, err, "the header of a section does not end with ']'");
	made.header = mem_copy_n(text + 1, (size_t)(end - text - 1));
	for (size_t i = 0; i < file->count; i++) {
		if (strcmp(file->sections[i].header, made.header) != 0)
			continue;
		section_release(&made);
		return wrong(reader, err, "the section stands in the file twice");
	}
	name_section(reader, &made);
	/* If the same profile has two headers, [default] and [profile default], the later wins. */
	old = find_section(file, made.kind, made.name);
	if (old) {
		free(old->kind);
		old->kind = mem_copy("");
	}
	file->sections = mem_grow(file->sections, file->count + 1, sizeof *file->sections);
	file->sections[file->count] = made;
	reader->section = &file->sections[file->count++];
	reader->setting = NULL;
	return 0;
}

/* Returns the length without blanks at the end. */
static size_t trimmed(const char *text, size_t len)
{
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	return len;
}

static const char *skip_blanks(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static int add_setting(struct profile_reader *reader, char *key, const char *value,
		       struct err **err)
{
	struct section *section = reader->section;
	struct setting *old = find_setting(section, key);

	if (old && !reader->nested) {
		free(key);
		return wrong(reader, err, "the key stands in its section twice");
	}
	if (old) { /* for nested keys the last one wins, as in botocore */
		free(key);
		secret_freep(&old->value);
		old->value = mem_copy(value);
		return 0;
	}
	section->settings =
		mem_grow(section->settings, section->count + 1, sizeof *section->settings);
	section->settings[section->count] = (struct setting){ key, mem_copy(value) };
	reader->setting = &section->settings[section->count++];
	return 0;
}

/* Reads "key = value". `outer` NULL: a key of the first level, for which ':' separates too and
 * case does not count. */
static int read_setting(struct profile_reader *reader, const char *text, const char *outer,
			struct err **err)
{
	size_t len = strcspn(text, outer ? "=" : "=:");
	size_t key_len = trimmed(text, len);
	AUTO(auto_free) char *name = NULL;

	if (!text[len])
		return wrong(reader, err, "the line is neither [a section] nor 'key = value'");
	if (key_len == 0)
		return wrong(reader, err, "no key before the '='");
	name = mem_copy_n(text, key_len);
	if (outer)
		return add_setting(reader, mem_format("%s.%s", outer, name),
				   skip_blanks(text + len + 1), err);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return add_setting(reader, TAKE(name), skip_blanks(text + len + 1), err);
}

/* Reads a line that is indented deeper than the key above it. */
static int read_deeper(struct profile_reader *reader, const char *text, struct err **err)
{
	struct setting *setting = reader->setting;
	char *longer;

	if (reader->nested)
		return read_setting(reader, text, reader->outer, err);
	longer = mem_format("%s\n%s", setting->value, text);
	secret_freep(&setting->value);
	setting->value = longer;
	return 0;
}

/* Reads a line; `text` has no blanks at either end and is not empty. */
static int read_line(struct profile_reader *reader, const char *text, size_t indent,
		     struct err **err)
{
	const struct setting *setting;

	if (reader->setting && indent > reader->indent)
		return read_deeper(reader, text, err);
	reader->indent = indent;
	reader->nested = false;
	if (*text == '[')
		return read_header(reader, text, err);
	if (!reader->section)
		return wrong(reader, err, "no [section] above the line");
	if (read_setting(reader, text, NULL, err) < 0)
		return -1;
	setting = reader->setting;
	if (setting) {
		reader->nested = !*setting->value;
		free(reader->outer);
		reader->outer = mem_copy(setting->key);
	}
	return 0;
}

/* Cuts the text into lines in place. */
static int read_lines(struct profile_reader *reader, char *text, struct err **err)
{
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* byte order mark of an editor */
		text += 3;
	for (char *next; text; text = next) {
		char *end = strchr(text, '\n'), *line;

		reader->line++;
		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		line = (char *)(uintptr_t)skip_blanks(text);
		line[trimmed(line, strlen(line))] = '\0';
		if (*line && *line != '#' && *line != ';' &&
		    read_line(reader, line, (size_t)(line - text), err) < 0)
			return -1;
	}
	return 0;
}

int profile_parse(const char *path, char *text, enum profile_file_kind kind,
		  struct profile_file **ret, struct err **err)
{
	AUTO(profile_freep) struct profile_file *file = mem_zero(1, sizeof *file);
	struct profile_reader reader = { .file = file, .kind = kind };
	size_t len = strlen(text);
	int outcome;

	file->path = mem_copy(path);
	outcome = read_lines(&reader, text, err);
	free(reader.outer);
	explicit_bzero(text, len);
	if (outcome < 0)
		return -1;
	*ret = TAKE(file);
	return 0;
}

int profile_read(const char *path, enum profile_file_kind kind, struct profile_file **ret,
		 struct err **err)
{
	AUTO(auto_free) char *text = NULL;

	if (secret_read(path, FILE_MAX, &text, err) < 0)
		return -1;
	if (!text)
		text = mem_copy("");
	return profile_parse(path, text, kind, ret, err);
}

const char *profile_value(const struct profile_file *file, const char *kind, const char *name,
			  const char *key)
{
	const struct section *section = find_section(file, kind, name);
	const struct setting *setting = find_setting(section, key);

	/* [DEFAULT] holds only for sections that exist. */
	for (size_t i = 0; section && !setting && i < file->count; i++)
		if (strcmp(file->sections[i].header, "DEFAULT") == 0)
			setting = find_setting(&file->sections[i], key);
	return setting ? setting->value : NULL;
}

bool profile_has(const struct profile_file *file, const char *kind, const char *name)
{
	return find_section(file, kind, name);
}

const char *profile_name(const struct profile_file *file, size_t i)
{
	for (size_t k = 0; k < file->count; k++)
		if (strcmp(file->sections[k].kind, "profile") == 0 &&
		    strcmp(file->sections[k].header, "DEFAULT") != 0 && i-- == 0)
			return file->sections[k].name;
	return NULL;
}

void profile_wipe_secrets(struct profile_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		for (size_t k = 0; k < file->sections[i].count; k++) {
			struct setting *setting = &file->sections[i].settings[k];

			if (strcmp(setting->key, "aws_secret_access_key") == 0 ||
			    strcmp(setting->key, "aws_session_token") == 0 ||
			    strcmp(setting->key, "aws_security_token") == 0)
				explicit_bzero(setting->value, strlen(setting->value));
		}
	}
}
