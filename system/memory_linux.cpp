#include <link.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "system/memory.h"
#include "system/pages.h"

namespace qsf {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

/// Returns the number after `key` in a file of lines "key number", or the only number of a file if `key` is empty.
/// Returns kNoLimit if there is none.
std::uint64_t number_in(const std::string& path, std::string_view key = "") {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return kNoLimit;
  std::uint64_t value = kNoLimit;
  char line[256];
  while (value == kNoLimit && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::string_view(line).starts_with(key)) {
      unsigned long long number = 0;
      if (std::sscanf(line + key.size(), "%llu", &number) == 1) value = number;
    }
  }
  std::fclose(file);
  return value;
}

/// Returns the limit of one group minus its use. Droppable pages of files do not count as used.
std::uint64_t room_of(const std::string& folder, const char* limit_name, const char* used_name) {
  const std::uint64_t limit = number_in(folder + limit_name), used = number_in(folder + used_name);
  if (limit == kNoLimit || used == kNoLimit) return kNoLimit;
  std::uint64_t files = 0;
  for (const char* key : {"inactive_file ", "active_file "}) {
    const std::uint64_t pages = number_in(folder + "/memory.stat", key);
    if (pages != kNoLimit) files += pages;
  }
  const std::uint64_t kept = used - std::min(used, files);
  return limit - std::min(limit, kept);
}

/// Calls `use` with the folder of each control group of the process that limits memory, the innermost first, and with
/// whether it is one of the second version. Ends when `use` returns false.
template <class Use>
void for_each_group(const std::string& root, const Use& use) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> groups(std::fopen((root + "/proc/self/cgroup").c_str(), "re"),
                                                               std::fclose);
  if (groups == nullptr) return;
  char line[4096];
  while (std::fgets(line, sizeof line, groups.get()) !=
         nullptr) {  // "4:memory:/a/b", or "0::/a/b" of the second version
    char* const names = std::strchr(line, ':');
    char* const path = names == nullptr ? nullptr : std::strchr(names + 1, ':');
    if (path == nullptr) continue;
    *path = 0;
    const std::string_view controllers(names + 1);
    const bool second = controllers.empty();
    if (!second && controllers.find("memory") == std::string_view::npos) continue;
    std::string group(path + 1);
    while (!group.empty() && (group.back() == '\n' || group.back() == '/')) group.pop_back();
    // A container may see its own group at the root.
    for (bool more = true; more;) {
      if (!use(root + (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + group, second)) return;
      more = !group.empty();
      group.resize(more ? group.rfind('/') == std::string::npos ? 0 : group.rfind('/') : 0);
    }
  }
}

std::optional<double> pressure_in(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) return {};
  char text[512];
  return read_pressure({text, std::fread(text, 1, sizeof text, file.get())});
}

}  // namespace

std::uint64_t memory_room(const std::string& root) {
  std::uint64_t room = number_in(root + "/proc/meminfo", "MemAvailable:");
  if (room != kNoLimit) room = room > kNoLimit / 1024 ? kNoLimit : room * 1024;
  for_each_group(root, [&](const std::string& folder, bool second) {
    room = std::min(room, second ? room_of(folder, "/memory.max", "/memory.current")
                                 : room_of(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
    return true;
  });
  return room;
}

std::optional<double> memory_pressure(const std::string& root) {
  std::optional<double> found;
  for_each_group(root, [&](const std::string& folder, bool second) {
    if (second) found = pressure_in(folder + "/memory.pressure");
    return second && !found;
  });
  return found ? found : pressure_in(root + "/proc/pressure/memory");
}

void release_pages(std::span<std::byte> memory) {
  const std::span<std::byte> pages = whole_pages(memory, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

void prefer_huge_pages(std::span<std::byte> pages) {
  constexpr std::uintptr_t kHuge = 2u << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.data());
  const std::uintptr_t first = (begin + kHuge - 1) / kHuge * kHuge, last = (begin + pages.size()) / kHuge * kHuge;
  if (first < last) ::madvise(pages.data() + (first - begin), last - first, MADV_HUGEPAGE);
}

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

void give_back_heap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

void drop_code_pages() {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          // A segment that was never writable contains only the file's bytes.
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
          const std::uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) / page * page;
          const std::uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
          ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
        }
        return 0;
      },
      nullptr);
}

}  // namespace qsf
