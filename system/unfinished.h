// Files that are removed unless a program finishes them.
#pragma once

#include <cstddef>
#include <string>

namespace qsf::sys {

/// A file that is removed with this object, unless keep() was called. A program that ends at once (catch_stops())
/// removes it too, except if kMostUnfinished others existed before or its path is longer than 4,095 bytes.
class Unfinished {
 public:
  Unfinished() = default;
  explicit Unfinished(std::string path);
  Unfinished(Unfinished&& other) noexcept;
  Unfinished& operator=(Unfinished&& other) noexcept;
  ~Unfinished();

  /// Returns the path, or an empty text if there is no file.
  const std::string& path() const { return path_; }
  /// Gives up the file, because it has another name now or its path belongs to another owner.
  void keep();

 private:
  void forget();

  std::string path_;
  std::size_t slot_ = ~std::size_t{0};
};

inline constexpr std::size_t kMostUnfinished = 8;

/// Calls remove(path) for each unfinished file. Allocates nothing and never waits, so that a signal's handler may call
/// it.
void each_unfinished(void (*remove)(const char* path));

}  // namespace qsf::sys
