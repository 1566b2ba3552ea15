// A request of a session to its host to read a part of the model file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qsf {

/// Read `size` bytes at `offset` of the file into `into`, then call complete(ticket).
struct ReadRequest {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t ticket = 0;
  /// In a mapped file (OpenOptions::mapped), the address of the same bytes: bring them into memory, and write nothing.
  std::byte* into = nullptr;
  std::uint32_t crc = 0;  // CRC-32 of the bytes, if has_crc
  bool has_crc = false;
  bool blocks = false;  // until complete(), the kBlocks that contain the bytes may be overwritten, and do not move
};

}  // namespace qsf
