/* CRC-32C: see crc32c.h. */
#include "jobs/base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* The remainder of one bit, then of four of them. */
#define BIT(crc)    ((crc) >> 1 ^ ((crc)&1u ? POLYNOMIAL : 0u))
#define NIBBLE(crc) BIT(BIT(BIT(BIT((uint32_t)(crc)))))

uint32_t crc32c(const void *bytes, size_t len)
{
	static const uint32_t table[16] = {
		NIBBLE(0),  NIBBLE(1),  NIBBLE(2),  NIBBLE(3),  NIBBLE(4),  NIBBLE(5),
		NIBBLE(6),  NIBBLE(7),  NIBBLE(8),  NIBBLE(9),  NIBBLE(10), NIBBLE(11),
		NIBBLE(12), NIBBLE(13), NIBBLE(14), NIBBLE(15),
	};
	const unsigned char *byte = bytes;
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= byte[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}
