/* Rules about what goes together, against facts: what a spec tells, and what a service adds. */
#include "jobs/spec/machines/compatibility.h"

#include "jobs/base/sb.h"
#include "tests/unit/spec/spec_fixture.h"

#define AWS "763104351884.dkr.ecr.us-west-2.amazonaws.com/"

/* Holds the rules against a job, with an image of machines where AWS Batch runs it. Returns the
 * ids and states of the findings: "batch-neuron fail". The caller frees it. */
static char *found(struct compatibility_job job, const char *ami)
{
	json_auto_t *facts = compatibility_facts(&job);
	json_auto_t *findings = NULL;
	struct sb ret = SB_INIT;
	const json_t *finding;
	size_t i;

	js_put_str(facts, "ami", ami);
	findings = compatibility_check(facts);
	json_array_foreach (findings, i, finding) {
		assert_non_null(js_str(finding, "says"));
		assert_non_null(js_str(finding, "cure"));
		assert_non_null(js_str(finding, "source"));
		assert_non_null(js_str(finding, "dated"));
		assert_null(strchr(js_str(finding, "says"), '{'));
		assert_null(strchr(js_str(finding, "cure"), '{'));
		sb_addf(&ret, "%s%s %s", ret.len > 0 ? ", " : "", js_str(finding, "id"),
			js_str(finding, "state"));
	}
	return sb_take(&ret);
}

static void expect(const char *wanted, struct compatibility_job job, const char *ami)
{
	AUTO(auto_free) char *is = found(job, ami);

	assert_string_equal(is, wanted);
}

static void machine_images_of_batch(void **state)
{
	struct compatibility_job p3 = { .engine = "batch",
					.compiler = "none",
					.type = "p3dn.24xlarge",
					.accelerator = "nvidia" };
	struct compatibility_job p4 = p3, neuron = p3, cpu = p3;

	(void)state;
	p4.type = "p4d.24xlarge";
	neuron.type = "trn1.32xlarge";
	neuron.accelerator = "neuron";
	cpu.type = "m5.large";
	cpu.accelerator = NULL;
	expect("batch-p3 note", p3, NULL);
	expect("", p3, "own");
	expect("batch-nvidia-p3 fail", p3, "ECS_AL2023_NVIDIA");
	expect("batch-amazon-linux-2 warn", p3, "ECS_AL2_NVIDIA");
	expect("", p4, NULL);
	expect("", p4, "ECS_AL2023_NVIDIA");
	expect("batch-amazon-linux-2 warn", p4, "ECS_AL2_NVIDIA");
	expect("", neuron, NULL);
	expect("", neuron, "own");
	expect("batch-neuron fail", neuron, "ECS_AL2023");
	expect("batch-amazon-linux-2 warn, batch-neuron fail", neuron, "ECS_AL2");
	expect("", cpu, "ECS_AL2023");
	expect("batch-amazon-linux-2 warn", cpu, "ECS_AL2");
	p3.engine = "sagemaker";
	p3.type = "ml.p3dn.24xlarge";
	expect("", p3, NULL);
}

static void versions_are_compared_by_parts(void **state)
{
	static const struct {
		const char *one, *other;
		bool older;
	} rows[] = {
		{ "2.9.0", "2.10", true },    { "2.10", "2.9.0", false },
		{ "2.31.1", "2.32.0", true }, { "2.9", "2.9.0", false },
		{ "2.9.0", "2.9", false },    { "2.9.0", "2.9.1", true },
		{ "2.32.0", "2.32", false },  { "", "2", true },
		{ "2.x", "2.1", true },       { "x", "y", false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_int_equal(compatibility_is_older(rows[i].one, rows[i].other), rows[i].older);
}

static void an_image_tells_by_its_tag(void **state)
{
	json_auto_t *ours = compatibility_image("my.registry:5000/a/jobs:2.8.0-neuronx-py311-"
						"sdk2.26.1-ubuntu22.04");
	json_auto_t *digest = compatibility_image(AWS "pytorch-training-neuronx:2.9.0-neuronx-"
						      "py312-sdk2.29.1-ubuntu24.04@sha256:0123");
	json_auto_t *port = compatibility_image("my.registry:5000/jobs");

	(void)state;
	assert_null(json_object_get(ours, "framework"));
	assert_string_equal(js_str(ours, "framework_version"), "2.8.0");
	assert_string_equal(js_str(ours, "python"), "3.11");
	assert_string_equal(js_str(ours, "sdk"), "2.26.1");
	assert_null(digest);
	assert_null(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_images_of_batch),
		cmocka_unit_test(versions_are_compared_by_parts),
		cmocka_unit_test(an_image_tells_by_its_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
