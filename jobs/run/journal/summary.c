/* Summaries of runs: see summary.h. */
#include "jobs/run/journal/summary.h"

#include <string.h>

#include "jobs/run/journal/chain.h"

void summary_release(struct run_summary *summary)
{
	sb_release(&summary->head);
	sb_release(&summary->line);
	sb_release(&summary->rest);
}

static void sum_of(const struct run_summary *summary, const char *run, char ret[SHA256_HEX])
{
	AUTO(sb_release) struct sb form = SB_INIT;

	sb_addf(&form, "%s\n%lld\n%s\n%s\n%s\n%s\n", run, (long long)summary->seq, summary->link,
		summary->begun, summary->line_sum, summary->rest_sum);
	sb_add(&form, summary->head.text, summary->head.len);
	hash_sha256_hex(form.text, form.len, ret);
}

void summary_seal(struct run_summary *summary, const char *run)
{
	hash_sha256_hex(summary->line.text, summary->line.len, summary->line_sum);
	hash_sha256_hex(summary->rest.text, summary->rest.len, summary->rest_sum);
	sum_of(summary, run, summary->sum);
}

bool summary_is_whole(const struct run_summary *summary, const char *run)
{
	char sum[SHA256_HEX];

	sum_of(summary, run, sum);
	return strcmp(sum, summary->sum) == 0;
}

static bool fits(const struct sb *text, const char *want)
{
	char sum[SHA256_HEX];

	hash_sha256_hex(text->text, text->len, sum);
	return strcmp(sum, want) == 0;
}

bool summary_has_its_rest(const struct run_summary *summary)
{
	return fits(&summary->line, summary->line_sum) && fits(&summary->rest, summary->rest_sum);
}

bool summary_ends_with(const struct run_summary *summary, int64_t seq, const char *body, size_t len)
{
	char link[SHA256_HEX];

	return summary->seq == seq && body && chain_sum_at_end(body, len, link) &&
	       strcmp(link, summary->link) == 0;
}
