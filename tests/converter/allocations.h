// What the program asks operator new for, counted and held to a limit. For tests of code that must not make much of a
// number that it reads.
#pragma once

#include <cstdint>
#include <string>

namespace qsf::test {

/// While one is there, the program ends, naming `what`, as soon as more than `most` bytes were allocated. One at a
/// time.
class AllocationLimit {
 public:
  AllocationLimit(std::string what, std::uint64_t most);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

  /// Bytes since it is there, whether they were given back or not.
  std::uint64_t bytes() const;
};

}  // namespace qsf::test
