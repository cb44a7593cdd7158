/* Words of the command that an alarm calls: see kind.h. */
#include "cmd/schedule/kind.h"

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

int kind_check_words(const struct alarm_setting *setting, struct err **err)
{
	for (size_t i = 0; setting->command[i]; i++)
		if (has_control(setting->command[i])) {
			err_set(err, EXIT_REFUSED,
				"word %zu of the alarm's command has a control character", i + 1);
			return err_hint(err,
					"a line ends there: choose another --state, or another "
					"folder for stoker");
		}
	if (!setting->path || !has_control(setting->path))
		return 0;
	err_set(err, EXIT_REFUSED, "PATH has a control character");
	return err_hint(err, "correct PATH");
}
