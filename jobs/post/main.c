/*
 * stoker-post [CERTIFICATES]: posts one message to a webhook. A program of its own, because linking
 * libcurl costs every start of stoker several milliseconds, and few runs post anything.
 *
 * Input: the URL on the first line (it may hold a secret, so it is not passed on the command line),
 * then one line of JSON. Exit status 0: the service answered with 2xx. Otherwise the reason is one
 * line on stderr, with the host and never the whole URL.
 *
 * TLS is verified, against the file CERTIFICATES if it is given; redirects are not followed, and
 * the body of the answer is ignored. Proxies are left to libcurl (https_proxy, no_proxy).
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/program.h"

#define INPUT_MAX  ((size_t)1 << 20)
#define CONNECT_MS 8000L
#define TOTAL_MS   12000L

static size_t ignore(char *bytes, size_t size, size_t count, void *arg)
{
	(void)bytes;
	(void)arg;
	return size * count;
}

static int complain(const char *host, const char *why)
{
	fprintf(stderr, "%s: %s\n", host ? host : "the webhook's URL", why);
	return 1;
}

/* The host of the URL; NULL if the URL is not valid. The caller frees it with curl_free(). */
static char *host_of(const char *url)
{
	CURLU *parts = curl_url();
	char *host = NULL;

	if (parts && (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
		      curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK))
		host = NULL;
	curl_url_cleanup(parts);
	return host;
}

static int post(CURL *curl, const char *url, const char *host, const char *body,
		const char *certificates)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	char why[CURL_ERROR_SIZE] = "", answer[40];
	long status = 0;
	CURLcode code;

	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "stoker/" STOKER_VERSION);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TOTAL_MS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	if (certificates)
		curl_easy_setopt(curl, CURLOPT_CAINFO, certificates);
	code = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	if (code != CURLE_OK)
		return complain(host, why[0] ? why : curl_easy_strerror(code));
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return 0;
	snprintf(answer, sizeof answer, "HTTP status %ld", status);
	return complain(host, answer);
}

int main(int argc, char **argv)
{
	static char input[INPUT_MAX + 1];
	size_t len = fread(input, 1, INPUT_MAX, stdin);
	char *body = memchr(input, '\n', len), *host;
	CURL *curl;
	int result;

	program_begin();
	if (!body || len == INPUT_MAX)
		return complain(NULL, "expected a URL and a line of JSON on the input");
	*body++ = '\0';
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(curl = curl_easy_init()))
		return complain(NULL, "libcurl cannot start");
	host = host_of(input);
	result = post(curl, input, host, body, argc > 1 ? argv[1] : NULL);
	curl_free(host);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
	return result;
}
