/* The tables behind orders: see order.h and order.def. */
#include "jobs/store/order.h"

#define MESSAGE(m, title) MESSAGE_TABLE(m, title)
#define FIELD(m, type, name, presence, help)                                                       \
	MESSAGE_EXPAND(MESSAGE_ROW, m, name, MESSAGE_T_##type, MESSAGE_P_##presence)
#define END(m) MESSAGE_TABLE_END(m)
#include "jobs/store/order.def"
#undef MESSAGE
#undef FIELD
#undef END

const struct message *const order_message = &order_message_table;

void order_release(struct order *order)
{
	message_release(order_message, order);
}

size_t order_progress_metric(const json_t *metrics)
{
	static const char *const names[] = { METRIC_STEP, METRIC_EPOCH };
	const json_t *metric;
	size_t i;

	for (size_t k = 0; k < STK_LENGTH(names); k++)
		json_array_foreach (metrics, i, metric)
			if (js_is(metric, "name", names[k]))
				return i;
	return SIZE_MAX;
}
