/* Endpoints by service, region and bucket: see endpoint.h. */
#include "aws/auth/endpoint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/settings.h"
#include "jobs/base/text/text.h"

static const struct partition {
	const char *prefix, *domain, *name;
	const char *home;  /* region that its global services are in */
	const char *label; /* of their host names, with a dot */
} partitions[] = {
	{ "cn-", "amazonaws.com.cn", "aws-cn", "cn-north-1", "cn-north-1." },
	{ "us-gov-", "amazonaws.com", "aws-us-gov", "us-gov-west-1", "us-gov." },
	{ "us-isob-", "sc2s.sgov.gov", "aws-iso-b", "us-isob-east-1", "us-isob-east-1." },
	{ "us-isof-", "csp.hci.ic.gov", "aws-iso-f", "us-isof-south-1", "us-isof-south-1." },
	{ "us-iso-", "c2s.ic.gov", "aws-iso", "us-iso-east-1", "us-iso-east-1." },
	{ "eu-isoe-", "cloud.adc-e.uk", "aws-iso-e", "eu-isoe-west-1", "eu-isoe-west-1." },
	{ "eusc-", "amazonaws.eu", "aws-eusc", "eusc-de-east-1", "eusc-de-east-1." },
	{ "", "amazonaws.com", "aws", "us-east-1", "" },
};

void endpoint_release(struct endpoint *ret)
{
	sb_release(&ret->url);
	sb_release(&ret->host);
	sb_release(&ret->path);
	sb_release(&ret->query);
}

static const struct partition *partition_of(const char *region)
{
	size_t i = 0;

	while (!text_starts(region, partitions[i].prefix))
		i++;
	return &partitions[i];
}

const char *endpoint_domain(const char *region)
{
	return partition_of(region)->domain;
}

const char *endpoint_partition(const char *region)
{
	return partition_of(region)->name;
}

const char *endpoint_region(const struct service_row *service, const char *region)
{
	/* The SDKs sign for the region as set if an endpoint is configured. */
	if (!strstr(service->host, "{g}") || aws_endpoint_configured(service->suffix))
		return region;
	return partition_of(region)->home;
}

/* The region becomes part of a host name, and may come from a server's header. */
static bool region_is_sound(const char *region)
{
	size_t len = strlen(region);

	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)region[i]) && !isdigit((unsigned char)region[i]) &&
		    (region[i] != '-' || i == 0 || i == len - 1))
			return false;
	return len > 0 && len < 40;
}

static void own_host(struct sb *ret, const char *form, const char *region)
{
	for (const char *at = form; *at; at++) {
		if (text_starts(at, "{r}"))
			sb_adds(ret, region);
		else if (text_starts(at, "{d}"))
			sb_adds(ret, endpoint_domain(region));
		else if (text_starts(at, "{g}"))
			sb_adds(ret, partition_of(region)->label);
		else
			sb_addc(ret, *at);
		if (*at == '{')
			at += 2;
	}
}

/* True if the bucket can be the first label of a host, under a certificate for one label. */
static bool is_label(const char *bucket)
{
	size_t len = strlen(bucket);

	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)bucket[i]) && !isdigit((unsigned char)bucket[i]) &&
		    (bucket[i] != '-' || i == 0 || i == len - 1))
			return false;
	return len >= 3 && len <= 63;
}

static bool in_host(const char *bucket, bool is_own)
{
	const char *style = aws_config_value(aws_profile(), "s3.addressing_style");

	if (!bucket || !is_label(bucket) || (style && strcmp(style, "path") == 0))
		return false;
	return is_own || (style && strcmp(style, "virtual") == 0);
}

/* Splits "https://Host:443/path" into the scheme, the host as it is sent, and the prefix of each
 * path. */
static int read_url(const char *url, struct sb *scheme, struct sb *host, struct sb *path,
		    struct err **err)
{
	const char *at = strstr(url, "://"), *port = NULL;
	size_t len;

	if (!at || !(strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0))
		goto is_none;
	for (const char *c = url; c < at; c++)
		sb_addc(scheme, (char)tolower((unsigned char)*c));
	at += 3;
	len = strcspn(at, "/?#");
	if (!len || memchr(at, '@', len) || strpbrk(at, "?#\r\n\t \""))
		goto is_none;
	port = strcmp(scheme->text, "https") == 0 ? ":443" : ":80";
	for (size_t i = 0; i < len; i++)
		sb_addc(host, (char)tolower((unsigned char)at[i]));
	if (host->len > strlen(port) && strcmp(host->text + host->len - strlen(port), port) == 0) {
		host->len -= strlen(port);
		host->text[host->len] = '\0';
	}
	at += len;
	len = strlen(at);
	while (len && at[len - 1] == '/')
		len--;
	sb_add(path, at, len);
	return 0;
is_none:
	err_set(err, EXIT_REFUSED, "the endpoint '%s' is not a usable URL", url);
	return err_hint(err, "set AWS_ENDPOINT_URL to something like https://host:port, without "
			     "user, query or blanks");
}

static void add_path(struct endpoint *ret, const struct aws_call *call, bool bucket_in_host)
{
	const struct operation_row *operation = operation_row(call->operation);

	if (operation_service_row(operation->service)->protocol != PROTOCOL_S3) {
		sb_adds(&ret->path, operation->path);
		if (call->key) {
			sb_addc(&ret->path, '/');
			sigv4_encode(&ret->path, call->key, strlen(call->key), false);
		}
		return;
	}
	sb_addc(&ret->path, '/');
	if (call->bucket && !bucket_in_host) {
		sigv4_encode(&ret->path, call->bucket, strlen(call->bucket), false);
		if (call->key)
			sb_addc(&ret->path, '/');
	}
	if (call->key)
		sigv4_encode(&ret->path, call->key, strlen(call->key), true);
}

void endpoint_params(struct sb *ret, const struct sigv4_pair *params, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ret->len)
			sb_addc(ret, '&');
		sigv4_encode(ret, params[i].name, strlen(params[i].name), false);
		if (!params[i].value)
			continue;
		sb_addc(ret, '=');
		sigv4_encode(ret, params[i].value, strlen(params[i].value), false);
	}
}

int endpoint_find(struct endpoint *ret, const struct aws_call *call, const char *region,
		  struct err **err)
{
	const struct operation_row *operation = operation_row(call->operation);
	const struct service_row *service = operation_service_row(operation->service);
	const char *set = aws_endpoint_configured(service->suffix);
	AUTO(sb_release) struct sb scheme = SB_INIT, host = SB_INIT;
	bool bucket_in_host = service->protocol == PROTOCOL_S3 && in_host(call->bucket, !set);

	sb_clear(&ret->url);
	sb_clear(&ret->host);
	sb_clear(&ret->path);
	sb_clear(&ret->query);
	if (!region_is_sound(region)) {
		err_set(err, EXIT_REFUSED, "'%s' is not the name of an AWS region", region);
		return err_hint(err, "set a region such as us-west-2 by --region or AWS_REGION");
	}
	if (set) {
		if (read_url(set, &scheme, &host, &ret->path, err) < 0)
			return -1;
	} else {
		sb_adds(&scheme, "https");
		own_host(&host, service->host, region);
	}
	if (bucket_in_host)
		sb_addf(&ret->host, "%s.", call->bucket);
	sb_add(&ret->host, host.text, host.len);
	add_path(ret, call, bucket_in_host);
	if (service->protocol == PROTOCOL_S3)
		sb_adds(&ret->query, operation->path);
	if (service->protocol == PROTOCOL_S3 || service->protocol == PROTOCOL_REST_JSON)
		endpoint_params(&ret->query, call->params, call->param_count);
	sb_addf(&ret->url, "%s://%s%s", scheme.text, ret->host.text, ret->path.text);
	if (ret->query.len)
		sb_addf(&ret->url, "?%s", ret->query.text);
	return 0;
}
