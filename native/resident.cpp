#include "native/resident.h"

#include <cstdio>

#ifdef __linux__
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace qsf {

std::uint64_t peak_resident_bytes() {
  std::uint64_t kilobytes = 0;
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      unsigned long long value = 0;
      if (std::sscanf(line, "VmHWM: %llu kB", &value) == 1) kilobytes = value;
    }
    std::fclose(file);
  }
  return kilobytes * 1024;
}

void drop_code_pages() {
#ifdef __linux__
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          // A segment that was never writable holds nothing but the file's bytes.
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
          const std::uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) / page * page;
          const std::uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
          ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
        }
        return 0;
      },
      nullptr);
#endif
}

}  // namespace qsf
