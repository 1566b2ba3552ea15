// What a session asks of its host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsf {

/// Read `size` bytes at `offset` of the file into `into`, then call complete(ticket).
struct ReadRequest {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t ticket = 0;
  std::byte* into = nullptr;  // of what is mapped (OpenOptions) its own place: bring it into memory, change nothing
  std::uint32_t crc = 0;      // CRC-32 of those bytes, when has_crc
  bool has_crc = false;
  bool blocks = false;  // until complete(), the whole kBlocks round `into` may be overwritten; they stay where they are
};

}  // namespace qsf
