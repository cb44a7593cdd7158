/* Profile, region, endpoints and certificates, by all ways of setting them: see settings.h. */
#include "aws/credentials/settings.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/profile.h"
#include "aws/http/patience.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"

static const char *const suffixes[] = {
#define SERVICE(id, endpoint, name, protocol, type, prefix, suffix) suffix,
#include "aws/services.def"
#undef SERVICE
};

/* Values that callers borrow are made once and live until aws_settings_forget(). */
static struct {
	pthread_mutex_t lock;
	char *option_profile, *option_region, *spec_region;
	bool loaded;
	char *profile, *region, *ca_bundle;
	char **retired; /* replaced regions that a caller may still hold; NULL-terminated */
	size_t retired_count;
	char *config_path, *shared_path;
	struct profile_file *config, *shared;
	char *endpoints[STK_LENGTH(suffixes)];
	struct err *failed; /* why the files or their content cannot be used */
} settings = { .lock = PTHREAD_MUTEX_INITIALIZER };

const char *aws_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

bool aws_env_true(const char *name)
{
	const char *value = aws_env(name);

	return value && strcasecmp(value, "true") == 0;
}

/* Appends the value of $NAME or ${NAME} at `text` and returns the length of the reference.
 * Variables that are not set, and texts that are not a reference, stay as they are. */
static size_t expand_variable(const char *text, struct sb *ret)
{
	bool braces = text[1] == '{';
	const char *name = text + 1 + braces;
	size_t len = 0, all;
	AUTO(auto_free) char *copy = NULL;
	const char *value;

	while (isalnum((unsigned char)name[len]) || name[len] == '_')
		len++;
	all = len + 1 + (braces ? 2 : 0);
	if (len == 0 || (braces && name[len] != '}')) {
		sb_addc(ret, '$');
		return 1;
	}
	copy = mem_copy_n(name, len);
	value = getenv(copy);
	if (value)
		sb_adds(ret, value);
	else
		sb_add(ret, text, all);
	return all;
}

char *aws_expand_path(const char *path)
{
	struct sb text = SB_INIT;
	const char *home = aws_env("HOME");

	if (home && path[0] == '~' && (path[1] == '/' || !path[1])) {
		sb_adds(&text, home);
		path++;
	}
	while (*path) {
		if (*path == '$') {
			path += expand_variable(path, &text);
			continue;
		}
		sb_addc(&text, *path++);
	}
	return sb_take(&text);
}

static const char *merged(const char *profile, const char *key)
{
	const char *value = NULL;

	if (settings.shared)
		value = profile_value(settings.shared, "profile", profile, key);
	if (!value && settings.config)
		value = profile_value(settings.config, "profile", profile, key);
	return value && *value ? value : NULL;
}

static bool profile_there(const char *profile)
{
	return (settings.shared && profile_has(settings.shared, "profile", profile)) ||
	       (settings.config && profile_has(settings.config, "profile", profile));
}

/* Lists the first few profiles for a hint; the names are outside text. */
static void list_profiles(struct sb *ret)
{
	const struct profile_file *files[] = { settings.config, settings.shared };
	size_t shown = 0;

	for (size_t f = 0; f < STK_LENGTH(files); f++) {
		const char *name;

		for (size_t i = 0; files[f] && (name = profile_name(files[f], i)); i++) {
			if (f == 1 && profile_has(files[0], "profile", name))
				continue;
			if (shown++ == 10) {
				sb_adds(ret, ", …");
				return;
			}
			sb_adds(ret, shown > 1 ? ", " : "");
			text_escape(ret, name, strnlen(name, 80), false);
		}
	}
}

static int check_profile(struct err **err)
{
	AUTO(sb_release) struct sb names = SB_INIT_MAX(2048);

	/* Profiles are optional, but a profile that the user names must exist. */
	if (profile_there(settings.profile) ||
	    (!settings.option_profile && !aws_env("AWS_DEFAULT_PROFILE") &&
	     !aws_env("AWS_PROFILE")))
		return 0;
	list_profiles(&names);
	err_set(err, EXIT_REFUSED, "the AWS profile '%.80s' is neither in '%s' nor in '%s'",
		settings.profile, settings.config_path, settings.shared_path);
	if (names.len > 0)
		return err_hint(err, "choose one of: %s", names.text);
	return err_hint(err,
			"create the profile with 'aws configure --profile %.80s', or correct "
			"--profile or AWS_PROFILE",
			settings.profile);
}

/* Keys of a services section are in lower case. */
static const char *section_endpoint(const char *services, const char *suffix)
{
	AUTO(auto_free) char *key = mem_format("%s.endpoint_url", suffix);

	for (char *c = key; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return profile_value(settings.config, "services", services, key);
}

/* Returns the endpoint of a service, and where it was found, which the service's name follows. */
static const char *find_endpoint(const char *suffix, const char **ret_from)
{
	AUTO(auto_free) char *name = mem_format("AWS_ENDPOINT_URL_%s", suffix);
	const char *ignore = merged(settings.profile, "ignore_configured_endpoint_urls");
	const char *services = merged(settings.profile, "services");
	const char *url = aws_env(name);

	if (aws_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
		    ? aws_env_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
		    : ignore && strcasecmp(ignore, "true") == 0)
		return NULL;
	*ret_from = url ? "AWS_ENDPOINT_URL_" : "AWS_ENDPOINT_URL for ";
	if (!url)
		url = aws_env("AWS_ENDPOINT_URL");
	if (url)
		return url;
	*ret_from = "endpoint_url of the profile for ";
	if (services && settings.config)
		url = section_endpoint(services, suffix);
	return url && *url ? url : merged(settings.profile, "endpoint_url");
}

/* True if the URL has a scheme and a host, and nothing that could end a line or hide a password. */
static bool is_endpoint(const char *url)
{
	const char *host = strstr(url, "://");

	if (!text_starts(url, "http://") && !text_starts(url, "https://"))
		return false;
	for (const char *c = host += 3; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == '@' || *c == '?' || *c == '#' || *c == 0x7f)
			return false;
	return *host && *host != '/';
}

static int read_endpoints(struct err **err)
{
	for (size_t i = 0; i < STK_LENGTH(suffixes); i++) {
		const char *from = NULL;
		const char *url = find_endpoint(suffixes[i], &from);
		size_t len;

		if (!url)
			continue;
		if (!is_endpoint(url)) {
			err_set(err, EXIT_REFUSED, "%s%s is not a URL of a service", from,
				suffixes[i]);
			return err_hint(err, "write https://HOST or http://HOST:PORT, without a "
					     "name or password in it");
		}
		len = strlen(url);
		while (url[len - 1] == '/')
			len--;
		settings.endpoints[i] = mem_copy_n(url, len);
	}
	return 0;
}

static int load_files(struct err **err)
{
	if (profile_read(settings.config_path, PROFILE_CONFIG, &settings.config, err) < 0 ||
	    profile_read(settings.shared_path, PROFILE_CREDENTIALS, &settings.shared, err) < 0)
		return -1;
	profile_wipe_secrets(settings.config);
	profile_wipe_secrets(settings.shared);
	if (check_profile(err) < 0)
		return -1;
	return 0;
}

static char *first_copy(const char *a, const char *b, const char *c)
{
	const char *first = a ? a : b ? b : c;

	return first ? mem_copy(first) : NULL;
}

/* Called with the lock held. */
static void load(void)
{
	const char *config = aws_env("AWS_CONFIG_FILE"),
		   *shared = aws_env("AWS_SHARED_CREDENTIALS_FILE");
	const char *region;

	if (settings.loaded)
		return;
	settings.loaded = true;
	settings.profile = first_copy(settings.option_profile, aws_env("AWS_DEFAULT_PROFILE"),
				      aws_env("AWS_PROFILE"));
	if (!settings.profile)
		settings.profile = mem_copy("default");
	settings.config_path = aws_expand_path(config ? config : "~/.aws/config");
	settings.shared_path = aws_expand_path(shared ? shared : "~/.aws/credentials");
	if (!patience_is_offline())
		load_files(&settings.failed);
	region = settings.option_region ? settings.option_region : settings.spec_region;
	settings.region = first_copy(region, aws_env("AWS_REGION"), aws_env("AWS_DEFAULT_REGION"));
	if (!settings.region)
		settings.region = first_copy(merged(settings.profile, "region"), NULL, NULL);
	settings.ca_bundle =
		first_copy(aws_env("AWS_CA_BUNDLE"), merged(settings.profile, "ca_bundle"),
			   aws_env("REQUESTS_CA_BUNDLE"));
	if (!settings.failed)
		read_endpoints(&settings.failed);
}

/* Loaded values other than the region never change, so that they are read without the lock. */
static void load_once(void)
{
	pthread_mutex_lock(&settings.lock);
	load();
	pthread_mutex_unlock(&settings.lock);
}

static void replace(char **place, const char *value)
{
	free(*place);
	*place = value && *value ? mem_copy(value) : NULL;
}

void aws_settings_option(const char *profile, const char *region)
{
	pthread_mutex_lock(&settings.lock);
	replace(&settings.option_profile, profile);
	replace(&settings.option_region, region);
	pthread_mutex_unlock(&settings.lock);
}

void aws_settings_spec(const char *region)
{
	pthread_mutex_lock(&settings.lock);
	replace(&settings.spec_region, region);
	/* Settings may have been read before the spec was known. */
	if (settings.loaded && region && !settings.option_region) {
		settings.retired = mem_grow(settings.retired, settings.retired_count + 2,
					    sizeof *settings.retired);
		settings.retired[settings.retired_count++] = settings.region;
		settings.retired[settings.retired_count] = NULL;
		settings.region = mem_copy(region);
	}
	pthread_mutex_unlock(&settings.lock);
}

const char *aws_profile(void)
{
	load_once();
	return settings.profile;
}

bool aws_profile_is_explicit(void)
{
	return settings.option_profile;
}

const char *aws_region_option(void)
{
	return settings.option_region;
}

bool aws_profile_exists(const char *profile)
{
	load_once();
	return patience_is_offline() || profile_there(profile);
}

/* The region becomes part of host names. */
static bool is_region(const char *region)
{
	size_t len = strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return !region[len] && len > 0 && len < 64 && region[0] != '-' && region[len - 1] != '-';
}

const char *aws_region(struct err **err)
{
	AUTO(sb_release) struct sb shown = SB_INIT_MAX(256);

	load_once();
	if (settings.region && is_region(settings.region))
		return settings.region;
	if (settings.region) {
		text_escape(&shown, settings.region, strnlen(settings.region, 80), false);
		err_set(err, EXIT_REFUSED, "'%s' is not the name of an AWS region", shown.text);
		err_hint(err, "write a region such as us-west-2");
	} else if (settings.failed) {
		err_again(err, settings.failed);
	} else if (patience_check(err) == 0) {
		err_set(err, EXIT_REFUSED, "no AWS region is set");
		err_hint(err,
			 "give --region, or set aws.region in the spec, AWS_REGION, or region in "
			 "the profile '%.80s'",
			 settings.profile);
	}
	return NULL;
}

const char *aws_config_value(const char *profile, const char *key)
{
	load_once();
	return merged(profile, key);
}

const char *aws_shared_value(const char *profile, const char *key)
{
	load_once();
	return settings.shared ? profile_value(settings.shared, "profile", profile, key) : NULL;
}

const char *aws_section_value(const char *kind, const char *name, const char *key)
{
	load_once();
	return settings.config ? profile_value(settings.config, kind, name, key) : NULL;
}

const char *aws_config_path(void)
{
	load_once();
	return settings.config_path;
}

const char *aws_shared_path(void)
{
	load_once();
	return settings.shared_path;
}

const char *aws_endpoint_configured(const char *suffix)
{
	load_once();
	for (size_t i = 0; i < STK_LENGTH(suffixes); i++)
		if (strcmp(suffixes[i], suffix) == 0)
			return settings.endpoints[i];
	return NULL;
}

const char *aws_ca_bundle(void)
{
	load_once();
	return settings.ca_bundle;
}

int aws_settings_check(struct err **err)
{
	load_once();
	return settings.failed ? err_again(err, settings.failed) : 0;
}

void aws_settings_forget(void)
{
	pthread_mutex_lock(&settings.lock);
	replace(&settings.option_profile, NULL);
	replace(&settings.option_region, NULL);
	replace(&settings.spec_region, NULL);
	replace(&settings.profile, NULL);
	replace(&settings.region, NULL);
	for (size_t i = 0; i < settings.retired_count; i++)
		free(settings.retired[i]);
	free(settings.retired);
	settings.retired = NULL;
	settings.retired_count = 0;
	replace(&settings.ca_bundle, NULL);
	replace(&settings.config_path, NULL);
	replace(&settings.shared_path, NULL);
	profile_freep(&settings.config);
	profile_freep(&settings.shared);
	for (size_t i = 0; i < STK_LENGTH(suffixes); i++)
		replace(&settings.endpoints[i], NULL);
	err_freep(&settings.failed);
	settings.loaded = false;
	pthread_mutex_unlock(&settings.lock);
}
