/*
 * A retraining as the text of an Airflow DAG.
 *
 * Sources: Airflow 3.3 and 2.10, BashOperator: its command is a Jinja template run by bash, and
 * what it raises for an exit code names that code. In Airflow 3 a run that was triggered by hand
 * may have no logical date.
 */
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/run/export/export_internal.h"

#define PREFIX_MAX 24 /* with a hyphen and a moment of 15 characters: 40 */

static const char head[] =
	"Every task is the same command but for its phase, and may be repeated or cleared: the id "
	"of the\n"
	"run comes from the scheduled time. Exit code 0 goes on, 5 (a gate said no) skips what "
	"follows, 8\n"
	"and 75 are tried again, and any other fails. A turn without new data does nothing.\n"
	"\"\"\"\n\n"
	"import re\n"
	"from datetime import timedelta\n\n"
	"import pendulum\n\n"
	"try:  # Airflow 3\n"
	"    from airflow.providers.standard.operators.bash import BashOperator\n"
	"    from airflow.sdk import DAG\n"
	"    from airflow.sdk.exceptions import AirflowException, AirflowFailException, "
	"AirflowSkipException\n"
	"except ImportError:  # Airflow 2\n"
	"    from airflow import DAG\n"
	"    from airflow.exceptions import AirflowException, AirflowFailException, "
	"AirflowSkipException\n"
	"    from airflow.operators.bash import BashOperator\n\n";

static const char step_class[] =
	"\n\nclass Step(BashOperator):\n"
	"    \"\"\"SIGTERM reaches stoker, which leaves the job running and exits with 8.\"\"\"\n\n"
	"    def execute(self, context):\n"
	"        try:\n"
	"            return super().execute(context)\n"
	"        except AirflowSkipException:\n"
	"            raise\n"
	"        except AirflowException as error:\n"
	"            code = re.search(r\"exit code (\\d+)\", str(error))\n"
	"            if code and int(code[1]) not in (8, 75):\n"
	"                raise AirflowFailException(str(error)) from error\n"
	"            raise\n\n\n";

/* A Python string: what JSON calls one is one there, too. */
static void add_string(struct sb *text, const char *value)
{
	json_auto_t *string = js_text(value, strlen(value));
	AUTO(auto_free) char *literal = js_line(string);

	sb_adds(text, literal);
}

/* A word for bash in a template of Jinja. */
static void add_word(struct sb *command, const char *word)
{
	sb_addc(command, '\'');
	for (; *word; word++)
		if (*word == '\'')
			sb_adds(command, "'\\''");
		else if (*word == '{')
			sb_adds(command, "{{ \"{\" }}");
		else
			sb_addc(command, *word);
	sb_addc(command, '\'');
}

static bool is_plain(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
						    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
						    "0123456789_-./:=,@+")] == '\0';
}

/* The command up to the id. */
static char *command_of(const struct export_job *job)
{
	json_auto_t *words = export_command(job, NULL, NULL, NULL);
	AUTO(sb_release) struct sb command = SB_INIT;
	const json_t *word;
	size_t i;

	json_array_foreach (words, i, word) {
		const char *value = json_string_value(word);

		if (is_plain(value))
			sb_adds(&command, value);
		else
			add_word(&command, value);
		sb_addc(&command, ' ');
	}
	return sb_take(&command);
}

static void add_constants(struct sb *text, const struct export_job *job, const char *folder)
{
	AUTO(auto_free) char *command = command_of(job);
	AUTO(auto_free) char *prefix = export_id_prefix(job->spec, PREFIX_MAX);
	json_auto_t *phases = export_phases(job->spec);
	const json_t *phase;
	size_t i;

	sb_adds(text, "FOLDER = ");
	add_string(text, folder);
	sb_adds(text, "  # from which each worker sees the spec and its source\n"
		      "ID = (\n"
		      "    ");
	sb_addf(text, "\"%s-{{ (dag_run.logical_date or dag_run.run_after)", prefix);
	sb_adds(text, ".strftime('%Y%m%dt%H%M%S') }}\"\n"
		      ")\n"
		      "COMMAND = ");
	add_string(text, command);
	sb_adds(text, "\nPHASES = [");
	json_array_foreach (phases, i, phase) {
		sb_adds(text, i > 0 ? ", " : "");
		add_string(text, json_string_value(phase));
	}
	sb_adds(text, "]\n");
}

/* Airflow reads cron as cron(8) does, in the zone of the first date. */
static void add_dag(struct sb *text, const struct spec *spec)
{
	const char *cron = export_text(spec, "schedule.cron");
	const char *zone = export_text(spec, "schedule.timezone");

	sb_adds(text, "with DAG(\n    dag_id=");
	add_string(text, spec_str(spec, SPEC_NAME));
	sb_adds(text, ",\n    schedule=");
	if (cron)
		add_string(text, cron);
	else
		sb_adds(text, "None");
	sb_adds(text, ",\n    start_date=pendulum.datetime(2026, 1, 1, tz=");
	add_string(text, zone ? zone : "UTC");
	sb_adds(text, "),\n"
		      "    catchup=False,  # the newest turn alone\n"
		      "    max_active_runs=1,\n"
		      ") as dag:\n"
		      "    before = None\n"
		      "    for phase in PHASES:\n"
		      "        step = Step(\n"
		      "            task_id=phase,\n"
		      "            bash_command=f\"{COMMAND}--id {ID} --until {phase}\",\n"
		      "            cwd=FOLDER,\n"
		      "            skip_on_exit_code=5,\n"
		      "            retries=1000,\n");
	sb_addf(text, "            retry_delay=timedelta(seconds=%d),\n", REPEAT_AFTER_S);
	sb_adds(text, "        )\n"
		      "        if before is not None:\n"
		      "            before >> step\n"
		      "        before = step\n");
}

char *export_airflow(const struct export_job *job, const char *folder)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	sb_addf(&text,
		"\"\"\"A turn of the retraining of %s for each scheduled time, by stoker.\n\n",
		spec_str(job->spec, SPEC_NAME));
	sb_adds(&text, head);
	add_constants(&text, job, folder);
	sb_adds(&text, step_class);
	add_dag(&text, job->spec);
	return sb_take(&text);
}
