#include "system/memory.h"

// windows.h must precede the other.
#include <windows.h>
//
#include <psapi.h>

namespace qsf {

std::span<std::byte> take_pages(std::size_t size) {
  void* const at = ::VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (at == nullptr) return {};
  return {static_cast<std::byte*>(at), size};
}

void give_pages(std::span<std::byte> pages) { ::VirtualFree(pages.data(), 0, MEM_RELEASE); }

// Large pages need a right, and they are locked.
void prefer_huge_pages(std::span<std::byte>) {}

std::uint64_t memory_room() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) != 0 ? status.ullAvailPhys : ~std::uint64_t{0};
}

std::uint64_t peak_resident_bytes() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  return ::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters) != 0 ? counters.PeakWorkingSetSize
                                                                                        : 0;
}

// Pages of code leave the working set by themselves if memory is short, and no call releases those of one range.
void give_back_heap() {}

void drop_code_pages() {}

}  // namespace qsf
