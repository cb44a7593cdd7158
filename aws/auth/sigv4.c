/* Signature version 4: see sigv4.h. */
#include "aws/auth/sigv4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "aws/auth/sigv4_canonical.h"

#define ALGORITHM     "AWS4-HMAC-SHA256"
#define DIGEST_HEADER "x-amz-content-sha256"
#define DATE_CHARS    8 /* day part of SIGV4_DATE */

/* A signing key, which depends on the secret and the scope alone. */
struct key {
	char *scope; /* NULL: the slot is free */
	char *secret_key;
	struct hmac *hmac;
	uint64_t last_used; /* a count of signatures */
};

struct sigv4_keys {
	/* A run speaks to about four services in one or two regions; midnight doubles it. */
	struct key keys[16];
	uint64_t signatures;
	struct sha256 *sha;
	struct hmac *hmac; /* derives keys by the chain */
	struct canonical canonical;
	struct sb scope, text; /* credential scope; string to sign */
	time_t second;         /* second of the last signature; `date` is its text */
	char date[SIGV4_DATE];
};

struct sigv4_keys *sigv4_keys_new(void)
{
	struct sigv4_keys *keys = mem_zero(1, sizeof *keys);

	keys->sha = hash_sha256_new();
	keys->hmac = hash_hmac_new();
	keys->canonical = CANONICAL_INIT;
	keys->scope = keys->text = SB_INIT;
	return keys;
}

static void key_release(struct key *key)
{
	free(key->scope);
	if (key->secret_key)
		explicit_bzero(key->secret_key, strlen(key->secret_key));
	free(key->secret_key);
	hash_hmac_freep(&key->hmac);
	*key = (struct key){ 0 };
}

void sigv4_keys_freep(struct sigv4_keys **keys)
{
	if (!*keys)
		return;
	for (size_t i = 0; i < STK_LENGTH((*keys)->keys); i++)
		key_release(&(*keys)->keys[i]);
	hash_sha256_freep(&(*keys)->sha);
	hash_hmac_freep(&(*keys)->hmac);
	sigv4_canonical_release(&(*keys)->canonical);
	sb_release(&(*keys)->scope);
	sb_release(&(*keys)->text);
	free(*keys);
	*keys = NULL;
}

void sigv4_signed_release(struct sigv4_signed *ret)
{
	sb_release(&ret->authorization);
	sb_release(&ret->canonical);
}

static void write_date(struct sigv4_keys *keys, struct utc at, char date[SIGV4_DATE])
{
	time_t seconds = (time_t)(at.ms / 1000);
	struct tm tm = { 0 };

	if (!keys->date[0] || seconds != keys->second) {
		gmtime_r(&seconds, &tm);
		strftime(keys->date, sizeof keys->date, "%Y%m%dT%H%M%SZ", &tm);
		keys->second = seconds;
	}
	memcpy(date, keys->date, SIGV4_DATE);
}

static void write_scope(const struct sigv4_request *request, const char date[SIGV4_DATE],
			struct sb *ret)
{
	sb_clear(ret);
	put(ret, date, DATE_CHARS);
	put_char(ret, '/');
	put_text(ret, request->region);
	put_char(ret, '/');
	put_text(ret, request->service);
	put_text(ret, "/aws4_request");
}

static void derive(struct sigv4_keys *keys, struct key *key, const char *secret_key,
		   const struct sigv4_request *request, const char date[SIGV4_DATE])
{
	static const char prefix[] = "AWS4";
	size_t len = strlen(secret_key);
	AUTO(auto_free) char *first = mem_alloc(sizeof prefix + len);
	uint8_t mac[SHA256_BYTES];

	memcpy(first, prefix, sizeof prefix - 1);
	memcpy(first + sizeof prefix - 1, secret_key, len);
	hash_hmac_key(keys->hmac, first, sizeof prefix - 1 + len);
	explicit_bzero(first, sizeof prefix + len);
	hash_hmac_sign(keys->hmac, date, DATE_CHARS, mac);
	hash_hmac_key(keys->hmac, mac, sizeof mac);
	hash_hmac_sign(keys->hmac, request->region, strlen(request->region), mac);
	hash_hmac_key(keys->hmac, mac, sizeof mac);
	hash_hmac_sign(keys->hmac, request->service, strlen(request->service), mac);
	hash_hmac_key(keys->hmac, mac, sizeof mac);
	hash_hmac_sign(keys->hmac, "aws4_request", strlen("aws4_request"), mac);
	hash_hmac_key(key->hmac, mac, sizeof mac);
	/* Clears the last key of the chain from the working HMAC: it is valid for a whole day. */
	hash_hmac_key(keys->hmac, "", 0);
	explicit_bzero(mac, sizeof mac);
}

/* Returns the HMAC for this secret and keys->scope. A new key replaces the least recently used. */
static struct hmac *key_of(struct sigv4_keys *keys, const char *secret_key,
			   const struct sigv4_request *request, const char date[SIGV4_DATE])
{
	struct key *oldest = &keys->keys[0];

	keys->signatures++;
	for (size_t i = 0; i < STK_LENGTH(keys->keys); i++) {
		struct key *key = &keys->keys[i];

		if (key->scope && strcmp(key->scope, keys->scope.text) == 0 &&
		    strcmp(key->secret_key, secret_key) == 0) {
			key->last_used = keys->signatures;
			return key->hmac;
		}
		if (key->last_used < oldest->last_used)
			oldest = key;
	}
	key_release(oldest);
	oldest->scope = mem_copy(keys->scope.text);
	oldest->secret_key = mem_copy(secret_key);
	oldest->hmac = hash_hmac_new();
	oldest->last_used = keys->signatures;
	derive(keys, oldest, secret_key, request, date);
	return oldest->hmac;
}

/* Computes the signature over keys->scope and a canonical request. */
static void sign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		 const struct sigv4_request *request, const char date[SIGV4_DATE],
		 const struct sb *canonical, char signature[SHA256_HEX])
{
	uint8_t digest[SHA256_BYTES];
	char hex[SHA256_HEX];

	hash_sha256_add(keys->sha, canonical->text, canonical->len);
	hash_sha256_next(keys->sha, digest);
	hash_hex_lower(digest, sizeof digest, hex);
	sb_clear(&keys->text);
	put_text(&keys->text, ALGORITHM "\n");
	put(&keys->text, date, SIGV4_DATE - 1);
	put_char(&keys->text, '\n');
	put(&keys->text, keys->scope.text, keys->scope.len);
	put_char(&keys->text, '\n');
	put(&keys->text, hex, SHA256_HEX - 1);
	hash_hmac_sign(key_of(keys, who->secret_key, request, date), keys->text.text,
		       keys->text.len, digest);
	hash_hex_lower(digest, sizeof digest, signature);
}

static bool is_digest(const char *name)
{
	return (name[0] | 0x20) == 'x' && strcasecmp(name, DIGEST_HEADER) == 0;
}

static bool is_ours(const char *name, bool is_s3)
{
	static const char *const ours[] = { "host", "authorization", "x-amz-date",
					    "x-amz-security-token" };

	for (size_t i = 0; i < STK_LENGTH(ours); i++)
		if ((name[0] | 0x20) == ours[i][0] && strcasecmp(name, ours[i]) == 0)
			return true;
	return is_s3 && is_digest(name);
}

/* Adds the caller's headers; returns the payload digest, which one of them may give. */
static const char *add_headers(struct canonical *canonical, const struct sigv4_request *request)
{
	const char *payload = request->payload;

	sigv4_canonical_begin(canonical);
	for (size_t i = 0; i < request->header_count; i++) {
		const struct sigv4_pair *header = &request->headers[i];

		if (is_ours(header->name, request->is_s3))
			continue;
		if (is_digest(header->name))
			payload = header->value;
		sigv4_canonical_add_header(canonical, header->name, header->value);
	}
	sigv4_canonical_add_header(canonical, "host", request->host);
	return payload;
}

/* Writes the canonical request up to the query. */
static void begin_canonical(struct sigv4_keys *keys, const struct sigv4_request *request,
			    struct sb *ret)
{
	sb_clear(ret);
	put_text(ret, request->method);
	put_char(ret, '\n');
	sigv4_canonical_path(&keys->canonical, request->path, request->is_s3, ret);
	put_char(ret, '\n');
}

static void end_canonical(struct sigv4_keys *keys, const struct sb *names, const char *payload,
			  struct sb *ret)
{
	put_char(ret, '\n');
	sigv4_canonical_headers(&keys->canonical, ret);
	put_char(ret, '\n');
	put(ret, names->text, names->len);
	put_char(ret, '\n');
	put_text(ret, payload);
}

void sigv4_sign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		const struct sigv4_request *request, struct utc at, struct sigv4_signed *ret)
{
	const char *payload = add_headers(&keys->canonical, request);
	const struct sb *names;

	write_date(keys, at, ret->date);
	write_scope(request, ret->date, &keys->scope);
	sigv4_canonical_add_header(&keys->canonical, "x-amz-date", ret->date);
	if (who->token)
		sigv4_canonical_add_header(&keys->canonical, "x-amz-security-token", who->token);
	if (request->is_s3)
		sigv4_canonical_add_header(&keys->canonical, DIGEST_HEADER, payload);
	names = sigv4_canonical_names(&keys->canonical);
	begin_canonical(keys, request, &ret->canonical);
	sigv4_canonical_query(&keys->canonical, request->query, &ret->canonical);
	end_canonical(keys, names, payload, &ret->canonical);
	sign(keys, who, request, ret->date, &ret->canonical, ret->signature);

	sb_clear(&ret->authorization);
	put_text(&ret->authorization, ALGORITHM " Credential=");
	put_text(&ret->authorization, who->access_key);
	put_char(&ret->authorization, '/');
	put(&ret->authorization, keys->scope.text, keys->scope.len);
	put_text(&ret->authorization, ", SignedHeaders=");
	put(&ret->authorization, names->text, names->len);
	put_text(&ret->authorization, ", Signature=");
	put(&ret->authorization, ret->signature, SHA256_HEX - 1);
}

void sigv4_presign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		   const struct sigv4_request *request, struct utc at, long seconds,
		   struct sb *canonical, struct sb *ret)
{
	AUTO(sb_release) struct sb own = SB_INIT_SECRET;
	AUTO(sb_release) struct sb query = SB_INIT_SECRET;
	const char *payload = add_headers(&keys->canonical, request);
	const struct sb *names = sigv4_canonical_names(&keys->canonical);
	char date[SIGV4_DATE], signature[SHA256_HEX];

	if (!canonical)
		canonical = &own;
	write_date(keys, at, date);
	write_scope(request, date, &keys->scope);
	put_text(&query, request->query);
	put_text(&query, *request->query ? "&" : "");
	put_text(&query, "X-Amz-Algorithm=" ALGORITHM "&X-Amz-Credential=");
	sigv4_encode(&query, who->access_key, strlen(who->access_key), false);
	put_text(&query, "%2F");
	sigv4_encode(&query, keys->scope.text, keys->scope.len, false);
	sb_addf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%ld", date, seconds);
	put_text(&query, "&X-Amz-SignedHeaders=");
	sigv4_encode(&query, names->text, names->len, false);
	if (who->token) {
		put_text(&query, "&X-Amz-Security-Token=");
		sigv4_encode(&query, who->token, strlen(who->token), false);
	}

	begin_canonical(keys, request, canonical);
	sigv4_canonical_query(&keys->canonical, query.text, canonical);
	end_canonical(keys, names, request->is_s3 ? SIGV4_UNSIGNED : payload, canonical);
	sign(keys, who, request, date, canonical, signature);
	put(ret, query.text, query.len);
	put_text(ret, "&X-Amz-Signature=");
	put_text(ret, signature);
}
