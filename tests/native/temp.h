// Folders that go away, files of known bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace qsf::test {

class TempDir {
 public:
  TempDir() {
    std::random_device random;
    std::error_code taken;
    do {
      path_ = (std::filesystem::temp_directory_path() / ("qsf-test-" + std::to_string(random()))).generic_string();
    } while (!std::filesystem::create_directory(path_, taken) && !taken);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Bytes that differ from place to place.
inline std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  std::uint32_t x = 12345;
  for (std::byte& b : bytes) b = static_cast<std::byte>((x = x * 1664525 + 1013904223) >> 24);
  return bytes;
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace qsf::test
