/*
 * The shared AWS files, and the words of a credential_process: the input is a text. It is
 * read as both kinds of file and cut into words; what is found is found again, and an error
 * shows nothing of the text.
 */
#include "tests/fuzz/fuzz.h"

#include "aws/credentials/profile.h"
#include "aws/date.h"
#include "jobs/base/text/shell_words.h"

static void read_as(enum profile_file_kind kind, const char *text)
{
	AUTO(profile_freep) struct profile_file *file = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *copy = mem_copy(text);
	const char *name;

	if (profile_parse("FILE", copy, kind, &file, &err) < 0) {
		MUST(err && err->hint && err->line > 0 && strlen(err->message) < 100);
		return;
	}
	profile_wipe_secrets(file);
	for (size_t i = 0; (name = profile_name(file, i)); i++) {
		const char *value = profile_value(file, "profile", name, "aws_secret_access_key");

		MUST(profile_has(file, "profile", name));
		MUST(!value || !*value);
	}
}

static void cut(const char *text)
{
	size_t count = 0, bytes = 0;
	AUTO(auto_strv) char **words = shell_words(text, &count);

	for (size_t i = 0; words && i < count; i++)
		bytes += strlen(words[i]);
	MUST(bytes <= strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	AUTO(auto_free) char *text = mem_copy_n((const char *)bytes, len);
	struct utc at;

	read_as(PROFILE_CONFIG, text);
	read_as(PROFILE_CREDENTIALS, text);
	cut(text);
	(void)!aws_date_iso(text, &at);
	return 0;
}
