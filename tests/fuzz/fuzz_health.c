/*
 * What Neuron's tools and nvidia-smi print: the first byte says which of the readers gets the rest.
 * What comes out as a figure must be one.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "jobs/node/health/health_parse.h"
#include "jobs/node/health/health_smi.h"

static void check_row(int done, const struct nccom_row *row, const struct err *err)
{
	MUST((done < 0) == (err != NULL));
	if (done == 0)
		MUST(isfinite(row->size) && row->size >= 0 && isfinite(row->busbw) &&
		     row->busbw >= 0 && isfinite(row->time_us) && row->time_us >= 0);
}

static void read_devices(const char *text, size_t len)
{
	AUTO(health_neuron_ls_release) struct neuron_ls ls = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	if (health_neuron_ls_parse(text, len, &ls, &err) < 0) {
		MUST(err && !ls.processes);
		return;
	}
	MUST(ls.devices >= 0 && ls.cores >= 0 && json_is_array(ls.processes));
}

static void read_gpus(const char *text, size_t len)
{
	AUTO(auto_free) char *aside = NULL, *field = health_smi_unknown(text, len);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *rows = health_smi_parse(text, len, "pid", &aside, &err);
	json_t *row;
	size_t i;

	MUST((rows == NULL) == (err != NULL) && (!field || strlen(field) < len));
	MUST(!aside || (strlen(aside) > 0 && strlen(aside) <= len));
	json_array_foreach (rows, i, row) {
		const char *pid = js_str(row, "pid");
		int64_t count = -1;

		MUST(pid != NULL);
		if (health_smi_count(pid, &count))
			MUST(count >= 0 && !health_smi_broken(pid));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	AUTO(err_freep) struct err *err = NULL;
	struct nccom_row row = { 0 };
	AUTO(auto_free) char *words = NULL;

	if (size == 0)
		return 0;
	switch (data[0] % 6) {
	case 0:
		read_devices(text, size - 1);
		break;
	case 1:
		check_row(health_nccom_parse_json(text, size - 1, &row, &err), &row, err);
		break;
	case 2:
		check_row(health_nccom_parse_table(text, size - 1, &row, &err), &row, err);
		break;
	case 3:
		words = health_nccom_failure(text, size - 1);
		MUST(!words || strlen(words) < size);
		break;
	default:
		read_gpus(text, size - 1);
	}
	return 0;
}
