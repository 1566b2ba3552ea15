#include "native/memory_room.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace qsf {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

/// The number behind `key` in a file of lines "key number"; of a file of one number without a key. kNoLimit without.
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

/// Of one group: its limit less what is used, where files' pages can be dropped.
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

}  // namespace

std::uint64_t memory_room() {
  std::uint64_t room = number_in("/proc/meminfo", "MemAvailable:");
  if (room != kNoLimit) room *= 1024;
  std::FILE* const groups = std::fopen("/proc/self/cgroup", "re");
  if (groups == nullptr) return room;
  char line[4096];
  while (std::fgets(line, sizeof line, groups) != nullptr) {  // "4:memory:/a/b", or "0::/a/b" of the second version
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
      const std::string folder = (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + group;
      room = std::min(room, second ? room_of(folder, "/memory.max", "/memory.current")
                                   : room_of(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
      more = !group.empty();
      group.resize(more ? group.rfind('/') == std::string::npos ? 0 : group.rfind('/') : 0);
    }
  }
  std::fclose(groups);
  return room;
}

}  // namespace qsf
