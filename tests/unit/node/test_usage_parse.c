/* Lines of neuron-monitor and nvidia-smi: jobs/node/usage/usage_parse.h. */
#include "jobs/node/usage/usage_parse.h"

#include <math.h>

#include "tests/unit/quoted.h"

/* A report as neuron-monitor prints it on a trn1.2xlarge with two processes: the form is that of
 * the SDK's user guide, and of one that others have published. */
#define REPORT                                                                                     \
	"{'neuron_runtime_data':[{'pid':11,'address':'','neuron_runtime_tag':'11','error':'',"     \
	"'report':{'execution_stats':{'period':5.0,'error_summary':{'generic':0,'numerical':0},"   \
	"'error':''},'memory_used':{'period':5.0,'neuron_runtime_used_bytes':{'host':2605992,"     \
	"'neuron_device':8589934592,'usage_breakdown':{'host':{'application_memory':12328,"        \
	"'constants':0,'dma_buffers':16384,'tensors':2577280},'neuroncore_memory_usage':{'0':{"    \
	"'constants':4294967296,'model_code':0,'model_shared_scratchpad':0,'runtime_memory':0,"    \
	"'tensors':4294967296}}}},'error':''},'neuroncore_counters':{'period':5.0,"                \
	"'neuroncores_in_use':{'0':{'neuroncore_utilization':42.01,'flops':1234567891011}},"       \
	"'error':''}}},{'pid':12,'report':{'neuroncore_counters':{'neuroncores_in_use':{'%s':{"    \
	"'neuroncore_utilization':%s}}}}}],'system_data':{'memory_info':{'period':5.0,"            \
	"'memory_total_bytes':33532555264,'memory_used_bytes':1}},'instance_info':{"               \
	"'instance_name':'','error':''},'neuron_hardware_info':{'neuron_device_type':'trainium',"  \
	"'neuron_device_count':2,'neuron_device_memory_size':34359738368,"                         \
	"'neuroncore_per_device_count':2,'logical_neuroncore_config':1,'error':''}}"

static int neuron(struct usage_devices *devices, const char *text)
{
	AUTO(auto_free) char *line = quoted(text);

	return usage_parse_neuron(line, strlen(line), devices);
}

static void tells(const struct usage_mean *mean, size_t count, double sum)
{
	assert_int_equal(mean->count, count);
	assert_true(fabs(mean->sum - (sum)) < 1e-9);
}

static void a_report_tells_the_cores_in_use_and_those_that_nobody_uses(void **state)
{
	struct usage_devices devices = { 0 };
	AUTO(auto_free) char *report = mem_format(REPORT, "1", "88.5");
	AUTO(auto_free) char *too_much = mem_format(REPORT, "1", "1000");

	(void)state;
	assert_int_equal(neuron(&devices, report), 0);
	assert_int_equal(neuron(&devices, too_much), 0);
	tells(&devices.busy[0], 2, 2 * 42.01);
	tells(&devices.busy[1], 2, 88.5 + 100);
	tells(&devices.busy[2], 2, 0);
	tells(&devices.busy[3], 2, 0);
	tells(&devices.busy[4], 0, 0);
	tells(&devices.full[0], 2, 2 * 50);
	tells(&devices.full[1], 0, 0); /* its process says nothing of it */
}

static void cores_that_the_command_does_not_get_do_not_idle(void **state)
{
	struct usage_devices devices = { .in_use_only = true };
	AUTO(auto_free) char *report = mem_format(REPORT, "3", "1");

	(void)state;
	assert_int_equal(neuron(&devices, report), 0);
	tells(&devices.busy[0], 1, 42.01);
	tells(&devices.busy[1], 0, 0);
	tells(&devices.busy[2], 0, 0);
	tells(&devices.busy[3], 1, 1);
}

/* The count of a device may be that of logical or of physical cores: cores that are idle in both
 * meanings are told. */
static void physical_cores_of_a_logical_one_do_not_idle(void **state)
{
	struct usage_devices devices = { 0 };
	AUTO(auto_free) char *report = mem_format(REPORT, "0", "1");
	char *logical = strstr(report, "logical_neuroncore_config':1");

	(void)state;
	logical[strlen("logical_neuroncore_config':")] = '2';
	assert_int_equal(neuron(&devices, report), 0);
	tells(&devices.busy[0], 1, 43.01);
	tells(&devices.busy[1], 1, 0);
	tells(&devices.busy[2], 0, 0);
	tells(&devices.busy[3], 0, 0);
}

static void odd_reports_tell_nothing_that_is_not_so(void **state)
{
	static const char *const wrong[] = {
		"",
		"{}",
		"[]",
		"null",
		"{'neuron_runtime_data':7}",
		"{'neuron_runtime_data':[]",
		"neuron-monitor: no devices",
		"{'neuron_runtime_data':[]} {}",
	};
	static const char *const empty[] = {
		"{'neuron_runtime_data':[]}",
		"{'neuron_runtime_data':[null,3,{'report':[]},{'report':{'neuroncore_counters':"
		"{'neuroncores_in_use':[1]}}}],'neuron_hardware_info':{'neuron_device_count':-1}}",
		"{'neuron_runtime_data':null,'neuron_hardware_info':{'neuron_device_count':2,"
		"'neuroncore_per_device_count':2,'error':'driver not found'}}",
		"{'neuron_runtime_data':[{'report':{'neuroncore_counters':{'neuroncores_in_use':"
		"{'-1':{},'x':{},'1e2':{},'256':{},'99999999999999999999':{}}}}}]}",
	};
	struct usage_devices devices = { 0 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(wrong); i++)
		assert_int_equal(neuron(&devices, wrong[i]), -1);
	for (size_t i = 0; i < STK_LENGTH(empty); i++)
		assert_int_equal(neuron(&devices, empty[i]), 0);
	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++)
		assert_int_equal(devices.busy[i].count + devices.full[i].count, 0);
}

static int nvidia(struct usage_devices *devices, const char *row)
{
	return usage_parse_nvidia(row, strlen(row), devices);
}

static void a_row_tells_a_gpu(void **state)
{
	struct usage_devices devices = { 0 };

	(void)state;
	assert_int_equal(nvidia(&devices, "0, 97, 61169, 81559"), 0);
	assert_int_equal(nvidia(&devices, "0, 95, 61169, 81559"), 0);
	assert_int_equal(nvidia(&devices, "7, [N/A], 10, 20"), 0);
	assert_int_equal(nvidia(&devices, "8, 12, [Not Supported], [Not Supported]\r"), 0);
	tells(&devices.busy[0], 2, 192);
	tells(&devices.full[0], 2, 2 * 100.0 * 61169 / 81559);
	tells(&devices.busy[7], 0, 0);
	tells(&devices.full[7], 1, 50);
	tells(&devices.busy[8], 1, 12);
	tells(&devices.full[8], 0, 0);
}

static void what_is_no_row_tells_nothing(void **state)
{
	static const char *const wrong[] = {
		"",
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
		"index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]",
		"0, 97, 61169",
		"0, 97, 61169, 81559, 1",
		"256, 97, 61169, 81559",
		"-1, 97, 61169, 81559",
		"0.5, 97, 61169, 81559",
		"nan, 97, 61169, 81559",
		", , , ",
	};
	struct usage_devices devices = { 0 };
	char longer[400];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(wrong); i++)
		assert_int_equal(nvidia(&devices, wrong[i]), -1);
	memset(longer, '0', sizeof longer);
	assert_int_equal(usage_parse_nvidia(longer, sizeof longer, &devices), -1);
	assert_int_equal(usage_parse_nvidia("0\0, 1, 2, 3", 11, &devices), -1);
	assert_int_equal(nvidia(&devices, "0, nan, inf, inf"), 0);
	assert_int_equal(devices.busy[0].count + devices.full[0].count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_tells_the_cores_in_use_and_those_that_nobody_uses),
		cmocka_unit_test(cores_that_the_command_does_not_get_do_not_idle),
		cmocka_unit_test(physical_cores_of_a_logical_one_do_not_idle),
		cmocka_unit_test(odd_reports_tell_nothing_that_is_not_so),
		cmocka_unit_test(a_row_tells_a_gpu),
		cmocka_unit_test(what_is_no_row_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
