#include <mach/mach.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "system/memory.h"
#include "system/pages.h"

namespace qsf {

void prefer_huge_pages(std::span<std::byte>) {}

void release_pages(std::span<std::byte> memory) {
  const std::span<std::byte> pages = whole_pages(memory, static_cast<std::size_t>(::getpagesize()));
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_FREE);
}

std::optional<double> memory_pressure(const std::string&) { return {}; }

std::uint64_t memory_room(const std::string&) {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
  const mach_port_t host = ::mach_host_self();
  const bool told =
      ::host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &n) == KERN_SUCCESS;
  ::mach_port_deallocate(::mach_task_self(), host);
  if (!told) return ~std::uint64_t{0};
  // external_page_count: pages of files, the page cache.
  const std::uint64_t free = std::uint64_t{pages.free_count} + pages.purgeable_count + pages.external_page_count;
  return free * static_cast<std::uint64_t>(::getpagesize());
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_maxrss) : 0;  // bytes here
}

void give_back_heap() {}

void drop_code_pages() {}

}  // namespace qsf
