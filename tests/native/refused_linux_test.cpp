// What the system refuses: threads, memory, one allocation. A program says so and ends as after other errors; a library
// says so and ends nothing.
#include <gtest/gtest.h>

#if defined(__linux__) && !defined(QSF_SANITIZED)  // sanitizers take address space of their own

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "native/chat_model.h"
#include "native/http_server.h"

namespace qsf::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Limits {
  std::uint64_t address_space;
  std::uint64_t stack = 8 * kMiB;  // of each thread
};

/// Kills what hangs, which then ends with another code than it may.
void watch(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  siginfo_t info{};
  while (std::chrono::steady_clock::now() < end) {
    if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, SIGKILL);
}

Ran limited(const Limits& limits, std::vector<std::string> command) {
  const std::string set = "ulimit -s " + std::to_string(limits.stack / 1024) + " && ulimit -v " +
                          std::to_string(limits.address_space / 1024) + " && exec \"$@\"";
  command.insert(command.begin(), {"/bin/sh", "-c", set, "sh"});
  return run(command, {.input = "", .environment = {}, .meanwhile = watch});
}

std::vector<std::string> generating(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {program("qsf-run"), stories("8bit"), "-p", "Once upon a time", "-n", "8", "--temperature",
                             "0", "--threads", "4", "--kernel-speeds", "none", "--ram-budget", "32"});
  return more;
}

// A thread's stack is address space, of which there is enough for so many.
TEST(Refused, ThreadsAreDoneWithout) {
  const Ran free = run(generating());
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_EQ(free.err, "");
  constexpr std::uint64_t kStack = 512 * kMiB;
  int warned = 0;
  for (std::uint64_t n = 0; n < 7; ++n) {
    for (const char* source : {"pread", "uring"}) {
      const Ran ran = limited({.address_space = 256 * kMiB + n * (kStack + kMiB), .stack = kStack},
                              generating({"--source", source}));
      EXPECT_EQ(ran.code, 0) << n << source << ran.err;
      EXPECT_EQ(ran.out, free.out) << n << source;
      const bool warns = has(ran.err, "qsf-run: the system refused threads");
      EXPECT_EQ(warns, !ran.err.empty()) << ran.err;
      EXPECT_TRUE(warns || n > 3) << n << source;
      EXPECT_FALSE(warns && n > 5) << n << source;
      warned += warns ? 1 : 0;
    }
  }
  EXPECT_GE(warned, 8);
}

/// Address spaces from less than the system's loader needs to enough for all, in steps that are finest where a program
/// begins to run.
std::vector<std::uint64_t> address_spaces() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 4 * kMiB; size < 200 * kMiB;) {
    sizes.push_back(size);
    size += size < 12 * kMiB ? kMiB : size < 18 * kMiB ? kMiB / 8 : size < 64 * kMiB ? 4 * kMiB : 32 * kMiB;
  }
  return sizes;
}

/// Runs the command in every address space, from where the loader gets it to its first instruction. check(ran) says how
/// it may end, and gives whether it did what it is for. `stride`: of those sizes, one of so many.
template <class Check>
void sweep(const std::vector<std::string>& command, std::size_t stride, const Check& check) {
  bool begun = false, well = false;
  int refusals = 0;
  const std::vector<std::uint64_t> sizes = address_spaces();
  for (std::size_t i = 0; i < sizes.size(); i += stride) {
    const std::uint64_t size = sizes[i];
    const Ran ran = limited({.address_space = size}, command);
    const bool loading = ran.code == 127 || ran.code == 128 + SIGSEGV || ran.code == 128 + SIGKILL;
    if (!begun && loading) continue;
    begun = true;
    well = check(
        ran, command[0] + " in " + std::to_string(size / 1024) + " KiB: " + std::to_string(ran.code) + ", " + ran.err);
    if (!well) ++refusals;
  }
  EXPECT_TRUE(well) << command[0] << ": enough in the end";
  EXPECT_GT(refusals, 0) << command[0];
}

/// A program that fails says out_of_memory in a sentence, in its last line.
void expect_sentence(const Ran& ran, const std::string& name, const std::string& told) {
  if (ran.code == 0) return;
  EXPECT_EQ(ran.code, 1) << told;
  EXPECT_TRUE(ran.err.starts_with(name + ": out_of_memory: ")) << told;
  EXPECT_GT(ran.err.size(), name.size() + 40) << told;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << told;
}

TEST(Refused, MemoryEndsQsfRunInASentence) {
  sweep(generating(), 1, [](const Ran& ran, const std::string& told) {
    expect_sentence(ran, "qsf-run", told);
    EXPECT_TRUE(ran.code != 0 || ran.err.empty() || has(ran.err, "refused threads")) << told;
    return ran.code == 0;
  });
}

TEST(Refused, MemoryEndsQsfConvertInASentenceAndLeavesNothing) {
  const TempDir dir;
  const std::string out = dir / "out.qsf";
  sweep({program("qsf-convert"), source_dir() + "/models/stories", out, "--quant-type", "4bit", "--quiet"}, 4,
        [&](const Ran& ran, const std::string& told) {
          expect_sentence(ran, "qsf-convert", told);
          const auto n = std::distance(std::filesystem::directory_iterator(dir / ""), {});
          EXPECT_EQ(n, ran.code == 0 ? 1 : 0) << told << ": the file or nothing";
          std::filesystem::remove(out);
          return ran.code == 0;
        });
}

TEST(Refused, MemoryEndsNoHostOfTheLibrary) {
  sweep({program("c_api_limited_test"), stories("8bit")}, 1, [](const Ran& ran, const std::string& told) {
    EXPECT_EQ(ran.code, 0) << told << ran.out;
    return has(ran.out, "generated") && !has(ran.out, "error");
  });
}

TEST(Refused, EachAllocationOfTheLibrary) {
  const TempDir dir;
  const std::string model = stories("8bit");
  HttpServer server(read_bytes(model));
  const Ran ran = run({program("refused_memory_test"), model, chat_model(dir, kChatMl), server.url(),
                       source_dir() + "/tests/data/gguf/llama.gguf"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

}  // namespace
}  // namespace qsf::test

#endif
