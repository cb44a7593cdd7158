/* Keeps the figures of this node: see usage_file.h. */
#include "jobs/node/upload/usage_file.h"

#include "jobs/base/fs/fs.h"
#include "jobs/base/usage.h"

/* A clock that was set back by more goes on from the last sample; by less, the samples are old. */
#define OLD_MS ((uint64_t)120000)

void usage_file_release(struct usage_file *usage)
{
	if (usage->is_open)
		series_file_release(&usage->file);
	*usage = (struct usage_file){ 0 };
}

static bool is_open(struct usage_file *usage, const struct agent_config *config)
{
	uint32_t sum = series_sum(NULL, config->prefix, config->node);
	struct series_block *block = &usage->file.block;
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *ignored = NULL;

	if (usage->is_open || usage->off)
		return usage->is_open;
	path = fs_join(config->dir, USAGE_FILE);
	usage->off = series_file_open(path, &usage->file, &ignored) < 0;
	if (usage->off)
		return false;
	usage->is_open = true;
	if (series_file_restore(&usage->file, sum, UINT64_MAX) &&
	    block->start != (uint32_t)config->restart)
		series_file_next(&usage->file, block->to, -1);
	block->start = (uint32_t)config->restart;
	return true;
}

static void add(struct series_block *block, struct utc at, int64_t step, const json_t *values)
{
	for (size_t i = 0; i + 1 < json_array_size(values); i += 2) {
		struct series_point point = {
			.metric = (size_t)json_integer_value(json_array_get(values, i)),
			.step = step,
			.at = at,
			.value = json_number_value(json_array_get(values, i + 1)),
		};

		series_block_add(block, &point);
	}
}

void usage_file_add(struct usage_file *usage, const struct agent_config *config, struct utc at,
		    int64_t step, const json_t *values)
{
	struct series_block *block = &usage->file.block;
	size_t count = json_array_size(values) / 2;
	uint64_t told, ms = (uint64_t)at.ms;

	if (!is_open(usage, config) || count == 0 || count > USAGE_END || at.ms <= 0)
		return;
	told = block->to;
	if (ms < told && told - ms < OLD_MS)
		return;
	if (ms < told)
		ms = told;
	if (!series_block_has_room(block, count))
		series_file_next(&usage->file, told, block->step_after);
	if (block->count == 0 && block->from == 0)
		block->from = ms;
	add(block, (struct utc){ (int64_t)ms }, step, values);
	block->to = ms + 1;
	block->step_after = step;
	series_file_write(&usage->file);
}
