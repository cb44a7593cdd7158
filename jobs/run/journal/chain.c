/* The chain of a run's events: see chain.h. */
#include "jobs/run/journal/chain.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

#define SUM       "sum"
#define SUM_BEGIN ",\"" SUM "\":\""
#define SUM_END   "\"}"

/* Hashes the form: `len` bytes and the closing brace. `link` NULL: the form alone. */
static void digest(const char *link, const char *body, size_t len, char ret[SHA256_HEX])
{
	struct sha256 *sha = hash_sha256_new();

	if (link) {
		hash_sha256_add(sha, link, strlen(link));
		hash_sha256_add(sha, "\n", 1);
	}
	hash_sha256_add(sha, body, len);
	hash_sha256_add(sha, "}", 1);
	hash_sha256_end(sha, ret);
}

static bool ends_with(const char *body, size_t len, const char *end)
{
	return len > strlen(end) && memcmp(body + (len - strlen(end)), end, strlen(end)) == 0;
}

/* True if `sum` is that of the event: of its bytes as stored, or else of the bytes that we would
 * write, since another program may have parsed and rewritten the event. */
static bool sum_fits(const struct chain *chain, const json_t *row, const char *body, size_t len,
		     const char *sum)
{
	AUTO(auto_free) char *end = mem_format(SUM_BEGIN "%s" SUM_END, sum);
	AUTO(auto_free) char *form = NULL;
	json_auto_t *bare = NULL;
	char right[SHA256_HEX];

	if (ends_with(body, len, end)) {
		digest(chain->link, body, len - strlen(end), right);
		if (strcmp(sum, right) == 0)
			return true;
	}
	bare = json_copy((json_t *)row);
	json_object_del(bare, SUM);
	form = js_line_exact(bare);
	digest(chain->link, form, strlen(form) - 1, right);
	return strcmp(sum, right) == 0;
}

/* True if the event ends like a sum with another name: no other field ends an event like that. */
static bool lost_its_name(const char *body, size_t len)
{
	const size_t end = strlen(SUM_END), begin = strlen(SUM_BEGIN);
	const size_t bytes = begin + SHA256_HEX - 1 + end;
	const char *at = len > bytes ? body + (len - bytes) : NULL;

	return at && strncmp(at, ",\"", 2) == 0 && strncmp(at + begin - 3, "\":\"", 3) == 0 &&
	       strspn(at + begin, "0123456789abcdef") == SHA256_HEX - 1 &&
	       memcmp(at + (bytes - end), SUM_END, end) == 0;
}

char *chain_seal(const struct chain *chain, json_t *row)
{
	AUTO(auto_free) char *form = js_line_exact(row);
	size_t len = strlen(form) - 1;
	char sum[SHA256_HEX];
	struct sb body = SB_INIT_MAX(SIZE_MAX / 2);

	digest(chain->link, form, len, sum);
	js_put_str(row, SUM, sum);
	sb_add(&body, form, len);
	sb_addf(&body, SUM_BEGIN "%s" SUM_END, sum);
	return sb_take(&body);
}

void chain_begin(struct chain *chain, const json_t *row, const char *body, size_t len)
{
	const char *sum = js_str(row, SUM);

	chain->seq = js_int(row, "seq", 0);
	if (sum)
		snprintf(chain->link, sizeof chain->link, "%s", sum);
	else
		digest(NULL, body, len > 0 ? len - 1 : 0, chain->link);
}

int chain_go_on(struct chain *chain, const char *run, const json_t *row, const char *body,
		size_t len, struct err **err)
{
	const int64_t want = chain->seq + 1, seq = js_int(row, "seq", 0);
	const json_t *sum = json_object_get(row, SUM);

	if (!json_is_object(row))
		return err_set(err, EXIT_REFUSED, "not an object");
	if (sum &&
	    (!json_is_string(sum) || !sum_fits(chain, row, body, len, json_string_value(sum))))
		return err_set(err, EXIT_REFUSED,
			       "the sum does not fit: this event or the one before it was changed");
	if (!sum && lost_its_name(body, len))
		return err_set(err, EXIT_REFUSED, "the sum has another name");
	if (!js_is(row, "run", run))
		return err_set(err, EXIT_REFUSED, "the event is of another run");
	if (seq != want)
		return err_set(err, EXIT_REFUSED, "event %lld stands in place of event %lld",
			       (long long)seq, (long long)want);
	chain_begin(chain, row, body, len);
	return 0;
}

bool chain_sum_at_end(const char *body, size_t len, char ret[SHA256_HEX])
{
	const size_t end = strlen(SUM_END), begin = strlen(SUM_BEGIN);
	const size_t bytes = begin + SHA256_HEX - 1 + end;
	const char *at = len > bytes ? body + (len - bytes) : NULL;

	if (!at || memcmp(at, SUM_BEGIN, begin) != 0 || !ends_with(body, len, SUM_END))
		return false;
	memcpy(ret, at + begin, SHA256_HEX - 1);
	ret[SHA256_HEX - 1] = '\0';
	return strspn(ret, "0123456789abcdef") == SHA256_HEX - 1;
}

bool chain_prove(struct chain *chain, int64_t seq, const char *body, size_t len)
{
	const size_t tail = strlen(SUM_BEGIN) + SHA256_HEX - 1 + strlen(SUM_END);
	char sum[SHA256_HEX], right[SHA256_HEX];

	if (seq != chain->seq + 1 || !chain_sum_at_end(body, len, sum))
		return false;
	digest(chain->link, body, len - tail, right);
	if (strcmp(sum, right) != 0)
		return false;
	chain->seq = seq;
	memcpy(chain->link, sum, sizeof sum);
	return true;
}
