// What the system counts for qsf-run, memory of the kernel and pages of files included, against the budget.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "native/models.h"
#include "native/temp.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBudget = 12u << 20;
#ifdef QSF_SANITIZED  // a sanitizer keeps its own memory beside
constexpr std::uint64_t kBeside = 2'000'000'000;
#else
constexpr std::uint64_t kBeside = 12'000'000;
#endif

/// A group of so many bytes, of the first or the second version; without a path where none can be made.
class ControlGroup {
 public:
  explicit ControlGroup(std::uint64_t bytes) {
    for (const auto& [root, limit] :
         {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "memory.max")}) {
      const fs::path folder = fs::path(root) / ("qsf-test-" + std::to_string(::getpid()));
      std::error_code error;
      if (!fs::exists(fs::path(root) / "cgroup.procs") || !fs::create_directory(folder, error)) continue;
      if (fs::exists(folder / limit) && std::ofstream(folder / limit) << bytes << std::flush) {
        path_ = folder;
        return;
      }
      fs::remove(folder, error);
    }
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup() {
    std::error_code error;
    if (!path_.empty()) fs::remove(path_, error);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class InAControlGroup : public ::testing::TestWithParam<const char*> {};

/// Reading is measured into the arena first (--verbose), as what is expected is told; then the model is read.
TEST_P(InAControlGroup, TheBudgetAndALittleIsEnough) {
  const ControlGroup group(kBudget + kBeside);
  if (group.path().empty()) GTEST_SKIP() << "no control group can be made here";
  const Ran ran = run({"/bin/sh", "-c", R"(echo $$ > "$0/cgroup.procs" && exec "$@")", group.path(), program("qsf-run"),
                       stories("f32"), "--ram-budget", "12", "--source", GetParam(), "--stream-all", "--prompt",
                       "Once upon a time", "--max-tokens", "20", "--verbose"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("expected"), std::string::npos) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(Sources, InAControlGroup, ::testing::Values("pread", "mmap", "direct", "uring"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace qsf::test
