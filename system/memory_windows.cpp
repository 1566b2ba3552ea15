#include "system/memory.h"
#include "system/pages.h"

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

void release_pages(std::span<std::byte> memory) {
  SYSTEM_INFO system{};
  ::GetSystemInfo(&system);
  const std::span<std::byte> pages = whole_pages(memory, system.dwPageSize);
  if (!pages.empty()) ::VirtualAlloc(pages.data(), pages.size(), MEM_RESET, PAGE_READWRITE);
}

std::optional<double> memory_pressure(const std::string&) { return {}; }

std::uint64_t memory_room(const std::string&) {
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
