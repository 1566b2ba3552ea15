#include <sys/mman.h>

#include "system/memory.h"

namespace qsf {

std::span<std::byte> take_pages(std::size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return {};
  return {static_cast<std::byte*>(at), size};
}

void give_pages(std::span<std::byte> pages) { ::munmap(pages.data(), pages.size()); }

}  // namespace qsf
