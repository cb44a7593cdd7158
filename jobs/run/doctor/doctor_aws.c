/* Checks of what requests to AWS are made with: credentials, region, endpoints, proxy,
 * certificates, account, clock. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "aws/credentials/credentials.h"
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "aws/date.h"
#include "aws/operation.h"
#include "aws/xml.h"
#include "jobs/base/text/text.h"
#include "jobs/run/doctor/doctor_internal.h"

#define NO_REGION "us-east-1" /* asked for the account if no region is set */

/* Requests are signed at the service's time, so a clock that is off costs no request; times of
 * leases and journals are this machine's. */
#define SKEW_MS ((int64_t)60 * 1000)
#define SOON_MS ((int64_t)60 * 60 * 1000) /* credentials that end sooner than this are told of */

/* ---- credentials ---- */

/* Says of a machine without AWS that it has none: that is no failure unless a spec needs it. */
static void tell_lack(struct doctor_talk *talk, const struct err *why)
{
	json_t *finding = doctor_finding_of(talk, why, NULL);

	if (!talk->needs_aws && js_is(finding, "state", "fail"))
		js_put_str(finding, "state", "warn");
}

static void tell_end(struct doctor_talk *talk, const struct credentials *keys)
{
	int64_t left = keys->expires.ms - clock_utc_now().ms;
	char until[UTC_TEXT];

	clock_utc_format(keys->expires, until);
	if (left < SOON_MS)
		doctor_finding(talk, DOCTOR_WARN,
			       "see that they are renewed by then, or get others now",
			       "credentials by %s, until %s", keys->provider, until);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "credentials by %s, until %s", keys->provider,
			       until);
}

void doctor_aws_credentials(struct doctor_talk *talk)
{
	AUTO(credentials_release) struct credentials keys = { 0 };
	AUTO(err_freep) struct err *why = NULL;

	if (credentials_get(&keys, &why) < 0) {
		tell_lack(talk, why);
		return;
	}
	talk->has_keys = true;
	if (keys.expires.ms)
		tell_end(talk, &keys);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "credentials by %s, %s", keys.provider,
			       keys.token ? "whose end is not told" : "without an end");
}

/* ---- settings ---- */

void doctor_aws_region(struct doctor_talk *talk)
{
	AUTO(err_freep) struct err *why = NULL;
	const char *region = aws_region(&why);

	if (region)
		doctor_finding(talk, DOCTOR_OK, NULL, "region %s", region);
	else
		tell_lack(talk, why);
}

void doctor_aws_endpoints(struct doctor_talk *talk)
{
	static const char *const names[] = {
#define SERVICE(id, host, signing, protocol, type, prefix, suffix) suffix,
#include "aws/services.def"
#undef SERVICE
	};
	AUTO(err_freep) struct err *why = NULL;
	AUTO(sb_release) struct sb words = SB_INIT;
	const char *first = NULL;
	size_t alike = 0;

	if (aws_settings_check(&why) < 0) {
		doctor_finding_of(talk, why, NULL);
		return;
	}
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		const char *endpoint = aws_endpoint_configured(names[i]);

		if (!endpoint)
			continue;
		first = first ? first : endpoint;
		alike += strcmp(first, endpoint) == 0;
		sb_addf(&words, "%s%s at %s", words.len > 0 ? ", " : "", names[i], endpoint);
	}
	if (alike == STK_LENGTH(names))
		doctor_finding(talk, DOCTOR_OK, NULL, "all services at %s", first);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "%s",
			       first ? words.text : "AWS's own endpoints");
}

/* Appends "NAME=value" of a variable, without a password in it. */
static void add_variable(const char *name, struct sb *words)
{
	const char *value = getenv(name), *at = value ? strrchr(value, '@') : NULL;

	if (value && *value)
		sb_addf(words, "%s%s=%s%s", words->len > 0 ? ", " : "", name, at ? "…" : "",
			at ? at : value);
}

static bool is_proxy_scheme(const char *value, size_t len)
{
	static const char *const names[] = { "http",    "https",  "socks4",
					     "socks4a", "socks5", "socks5h" };

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (strlen(names[i]) == len && strncasecmp(value, names[i], len) == 0)
			return true;
	return false;
}

/* True if libcurl can take it for a proxy: [SCHEME://][NAME:PASSWORD@]HOST[:PORT]. */
static bool is_proxy(const char *value)
{
	const char *scheme = strstr(value, "://"), *at = strrchr(value, '@');
	const char *host = at ? at + 1 : scheme ? scheme + 3 : value;
	const char *end = host + strcspn(host, *host == '[' ? "]" : ":/");

	for (const char *c = value; *c; c++)
		if ((unsigned char)*c <= ' ')
			return false;
	if (end == host || (*host == '[' && *end != ']') ||
	    (scheme && !is_proxy_scheme(value, (size_t)(scheme - value))))
		return false;
	end += *end == ']';
	if (*end == ':' && strtol(end + 1, NULL, 10) > UINT16_MAX)
		return false;
	if (*end == ':')
		end += 1 + strspn(end + 1, "0123456789");
	return *end == '\0' || *end == '/';
}

/* Says of a variable that names no proxy. Returns whether it does not. */
static bool tell_no_proxy(struct doctor_talk *talk, const char *name)
{
	const char *value = getenv(name);
	AUTO(auto_free) char *cure = NULL;

	if (!value || !*value || strncasecmp(name, "no", 2) == 0 || is_proxy(value))
		return false;
	cure = mem_format("write http://HOST:PORT in %s, or unset it", name);
	doctor_finding(talk, DOCTOR_FAIL, cure,
		       "%s is not the address of a proxy: no request can be sent", name);
	return true;
}

/* libcurl reads them; HTTP_PROXY in capitals it does not. */
void doctor_aws_proxy(struct doctor_talk *talk)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
					     "all_proxy",   "ALL_PROXY",   "no_proxy",
					     "NO_PROXY" };
	AUTO(sb_release) struct sb words = SB_INIT;

	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		add_variable(names[i], &words);
		if (tell_no_proxy(talk, names[i]))
			return;
	}
	doctor_finding(talk, DOCTOR_OK, NULL, "%s", words.len > 0 ? words.text : "no proxy");
}

void doctor_aws_certificates(struct doctor_talk *talk)
{
	const char *named = aws_ca_bundle();
	AUTO(auto_free) char *found = named ? mem_copy(named) : http_certificates(NULL);

	if (!found)
		doctor_finding(talk, DOCTOR_WARN,
			       "install ca-certificates, or name a file in AWS_CA_BUNDLE",
			       "no file of certificates is found where systems have it");
	else if (access(found, R_OK) < 0)
		doctor_finding(talk, DOCTOR_FAIL,
			       "correct AWS_CA_BUNDLE, or ca_bundle in the profile",
			       "the certificates '%s' cannot be read", found);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "servers are verified by '%s'", found);
}

/* ---- the account, and the clock by the Date of its reply ---- */

struct identity {
	struct err *why; /* NULL: answered */
	char *account, *arn;
	char *date;
	struct utc at; /* here, when the reply came */
};

static void identity_release(void *own)
{
	struct identity *identity = own;

	err_free(identity->why);
	free(identity->account);
	free(identity->arn);
	free(identity->date);
	free(identity);
}

static bool pick(void *arg, const char *path, const char *text, size_t len)
{
	static const char root[] = "GetCallerIdentityResponse/GetCallerIdentityResult/";
	struct identity *identity = arg;
	char **slot;

	if (!text_starts(path, root))
		return true;
	path += strlen(root);
	slot = strcmp(path, "Account") == 0 ? &identity->account
	       : strcmp(path, "Arn") == 0   ? &identity->arn
					    : NULL;
	if (slot && !*slot)
		*slot = mem_copy_n(text, len);
	return true;
}

static void ask_sts(struct identity *identity)
{
	AUTO(err_freep) struct err *unset = NULL;
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(sb_release) struct sb date = SB_INIT;
	struct aws_call call = AWS_CALL_INIT(GET_CALLER_IDENTITY);
	int result;

	call.region = aws_region(&unset);
	if (!call.region)
		call.region = NO_REGION;
	if (aws_open(&aws, &identity->why) < 0)
		return;
	result = aws_perform(aws, &call, &reply, &identity->why);
	identity->at = clock_utc_now();
	if (reply.http && http_header(reply.http, "date", &date))
		identity->date = mem_copy(date.text);
	if (result == 0 && reply.http)
		(void)!xml_parse(reply.http->body.text, reply.http->body.len, "the reply of sts",
				 pick, identity, &identity->why);
}

/* Asked once for both checks. */
static struct identity *identity_of(struct doctor_talk *talk)
{
	struct identity *identity = talk->own;

	if (identity)
		return identity;
	identity = mem_zero(1, sizeof *identity);
	talk->own = identity;
	talk->release = identity_release;
	ask_sts(identity);
	return identity;
}

void doctor_aws_account(struct doctor_talk *talk)
{
	const struct identity *identity = identity_of(talk);
	const char *wanted = json_string_value(js_path(talk->plan, "spec.aws.account"));
	AUTO(err_freep) struct err *why = NULL;

	if (identity->why)
		doctor_finding_of(talk, identity->why, "sts:GetCallerIdentity");
	else if (!identity->account)
		doctor_finding(talk, DOCTOR_UNKNOWN,
			       "check that AWS_ENDPOINT_URL leads to the service",
			       "the reply of sts names no account");
	else if (wanted && sts_check_account(identity->account, wanted, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "account %s%s%s", identity->account,
			       identity->arn ? ", as " : "", identity->arn ? identity->arn : "");
}

void doctor_aws_clock(struct doctor_talk *talk)
{
	const struct identity *identity = identity_of(talk);
	struct utc date = { 0 };
	int64_t ahead;

	if (!identity->date || !aws_date_http(identity->date, &date)) {
		doctor_finding_untried(talk, "no reply of sts has a date");
		return;
	}
	ahead = identity->at.ms - date.ms;
	if (ahead > -SKEW_MS && ahead < SKEW_MS)
		doctor_finding(talk, DOCTOR_OK, NULL, "this machine's clock is that of sts");
	else
		doctor_finding(talk, DOCTOR_WARN,
			       "set this machine's clock, by NTP for example: leases and journals "
			       "have its times",
			       "this machine's clock is %lld s %s that of sts",
			       (long long)(ahead < 0 ? -ahead : ahead) / 1000,
			       ahead < 0 ? "behind" : "ahead of");
}
