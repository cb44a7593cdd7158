/* CRC-32C (Castagnoli), which other programs' files carry. zlib's crc32() has another polynomial.
 */
#ifndef STK_BASE_CRC32C_H
#define STK_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t len);

#endif
