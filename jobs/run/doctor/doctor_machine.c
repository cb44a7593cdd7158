/* Checks of the machines of AWS Batch, as EC2 describes them: memory and EFA interfaces. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/run/doctor/doctor_ec2.h"

/* A number of an XML reply; -1: there is none. */
static int64_t number(const json_t *row, const char *path)
{
	const char *text = json_string_value(js_path(row, path));

	return text ? strtoll(text, NULL, 10) : -1;
}

void doctor_machine_memory(struct doctor_talk *talk)
{
	const json_t *rows = doctor_ec2_ask(talk, DOCTOR_EC2_TYPE);
	int64_t mib = number(json_array_get(rows, 0), "memoryInfo.sizeInMiB");
	AUTO(err_freep) struct err *why = NULL;

	if (!rows)
		return;
	if (mib < 0)
		doctor_finding_untried(talk, "EC2 tells no memory of the type");
	else if (batch_check_memory(talk->plan, mib, &why) < 0)
		doctor_finding_of(talk, why, NULL);
	else
		doctor_finding(
			talk, DOCTOR_OK, NULL,
			"a job leaves enough of a machine's %lld MiB to the kernel and the ECS "
			"agent",
			(long long)mib);
}

static int64_t interfaces_of(const json_t *data)
{
	const json_t *row;
	int64_t count = 0;
	size_t i;

	json_array_foreach (json_object_get(data, "networkInterfaceSet"), i, row)
		count += js_str(row, "interfaceType") &&
			 text_starts(js_str(row, "interfaceType"), "efa");
	return count;
}

void doctor_machine_efa(struct doctor_talk *talk)
{
	int64_t needs = batch_check_efa(talk->plan), has, most;
	bool is_told = false;
	const json_t *data = doctor_ec2_template(talk, &is_told);

	if (is_told)
		return;
	has = interfaces_of(data);
	most = js_int(json_object_get(talk->plan, "instance"), "efa", has);
	if (has < needs)
		doctor_finding(talk, DOCTOR_FAIL,
			       "give the launch template that many network interfaces of type efa, "
			       "each of another network card, or set 'resources.efa: false'",
			       "a job maps %lld EFA interface%s, %s %lld", (long long)needs,
			       needs > 1 ? "s" : "",
			       data ? "the launch template has"
				    : "without a launch template a machine has",
			       (long long)has);
	else if (has > most)
		doctor_finding(
			talk, DOCTOR_FAIL,
			"take the interfaces out of the launch template, or name a type that "
			"has them",
			"the launch template has %lld EFA interfaces, the type can have %lld: "
			"no machine will start",
			(long long)has, (long long)most);
	else
		doctor_finding(talk, DOCTOR_OK, NULL,
			       "a job maps %lld EFA interfaces, the launch template has %lld",
			       (long long)needs, (long long)has);
}
