// The monitor of memory: a made-up system that becomes short of it, and the policy's text and memory afterwards.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "native/host/host.h"
#include "native/host/kv_policy.h"
#include "native/host/memory_monitor.h"
#include "native/models.h"
#include "native/temp.h"
#include "system/pages.h"

namespace qsf::test {
namespace {

constexpr std::uint64_t kLeast = 256u << 20;

std::vector<std::string> told;

/// A folder with the files that Linux states memory in.
class StatedMemory {
 public:
  StatedMemory() {
    std::filesystem::create_directories(dir_ / "proc/pressure");
    set(kLeast >> 10, "0.00");
  }
  void set(std::uint64_t available_kilobytes, const std::string& waiting) const {
    std::ofstream(dir_ / "proc/meminfo") << "MemAvailable: " << available_kilobytes << " kB\n";
    std::ofstream(dir_ / "proc/pressure/memory")
        << "some avg10=50.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=" << waiting << " avg60=0.00 total=0\n";
  }
  std::string root() const { return dir_ / "."; }

 private:
  TempDir dir_;
};

HostOptions host_options(const char* policy, const std::string& root) {
  HostOptions options;
  options.budget = 64u << 20;
  options.threads = 1;
  options.open.max_seq_len = 500;
  options.open.kv = KvType::f32;
  if (!root.empty()) {
    options.monitor = {kLeast, root, [](const std::string& sentence) { told.push_back(sentence); }};
  }
  EXPECT_TRUE(set_kv_policy(policy, options.open));
  return options;
}

struct Running {
  std::atomic<bool> cancel{false};
  std::unique_ptr<Host> host;

  explicit Running(const HostOptions& options) {
    Result<std::unique_ptr<Host>> opened = Host::open(stories("8bit"), options, cancel);
    EXPECT_TRUE(opened) << opened.error().sentence;
    if (opened) host = std::move(*opened);
    Prompt prompt;
    prompt.text = "Once upon a time";
    prompt.max_tokens = 480;
    prompt.ignore_eos = prompt.hash_logits = true;
    prompt.sampler.temperature = 0;
    EXPECT_TRUE(host->session().start(prompt));
  }
  Session& session() { return host->session(); }
  /// Steps up to a number of generated tokens, or to the end, and returns how many there are.
  std::uint32_t run_to(std::uint32_t tokens) {
    while (session().sequence_stats().generated_tokens < tokens) {
      const Result<Step> step = host->next();
      EXPECT_TRUE(step);
      if (!step || *step == Step::done) break;
    }
    return session().sequence_stats().generated_tokens;
  }
  std::string hash() {
    while (session().end() == End::none) {
      const Result<Step> step = host->next();
      if (!step || *step == Step::done) break;
    }
    return std::string(session().logits_hash());
  }
};

/// Returns the number of whole pages in a range that are in memory.
std::size_t resident_pages(std::span<std::byte> memory) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::span<std::byte> pages = whole_pages(memory, page);
  std::vector<unsigned char> states(pages.size() / page);
  EXPECT_EQ(::mincore(pages.data(), pages.size(), states.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(states, [](unsigned char state) { return (state & 1) != 0; }));
}

void wait_for_a_look() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

class Monitor : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { told.clear(); }
};

TEST_P(Monitor, ShortMemoryMakesThePolicyEvictAsIfAskedTo) {
  const StatedMemory memory;
  Running watched(host_options(GetParam(), memory.root()));
  watched.run_to(330);
  EXPECT_EQ(watched.session().stats().kv_window, 300u);
  EXPECT_TRUE(told.empty());
  memory.set(kLeast / 1024 - 1, "0.00");
  wait_for_a_look();
  std::uint32_t at = 330;
  while (watched.session().stats().kv_window == 300 && at < 470) at = watched.run_to(at + 1);
  EXPECT_EQ(watched.session().stats().kv_window, 150u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(has(told[0],
                  "are available, less than 256.0 MiB: the policy keeps 150 positions from now on, in place of "
                  "300, and "))
      << told[0];
  // Pages that are partly used stay.
  EXPECT_GT(watched.session().unused().size(), 500'000u);
  EXPECT_EQ(resident_pages(watched.session().unused()), 0u);
  // It does not evict again before the effect can be seen.
  wait_for_a_look();
  watched.run_to(at + 2);
  EXPECT_EQ(watched.session().stats().kv_window, 150u);

  Running asked(host_options(GetParam(), ""));
  std::uint32_t n = 0;
  // The token with which the watched session had evicted was computed with fewer positions already.
  asked.run_to(at - 1);
  Result<bool> done = asked.session().shrink(150);
  for (; done && !*done && n < 200; ++n) {
    (void)asked.host->next();
    done = asked.session().shrink(150);
  }
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(asked.hash(), watched.hash()) << n;
  EXPECT_NE(watched.hash(), Running(host_options(GetParam(), "")).hash());
}

INSTANTIATE_TEST_SUITE_P(Policies, Monitor, ::testing::Values("window:300", "sinks:4+300", "h2o:300", "snapkv:300"),
                         [](const auto& info) {
                           const std::string policy = info.param;
                           return policy.substr(0, policy.find(':'));
                         });

TEST(Monitors, WaitingForMemoryCountsToo) {
  told.clear();
  const StatedMemory memory;
  Running watched(host_options("window:300", memory.root()));
  memory.set(8 * kLeast / 1024, "9.99");
  wait_for_a_look();
  watched.run_to(10);
  EXPECT_EQ(watched.session().stats().kv_window, 300u);
  memory.set(8 * kLeast / 1024, "10.00");
  wait_for_a_look();
  watched.run_to(20);
  EXPECT_EQ(watched.session().stats().kv_window, 150u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(has(told[0], "programs wait for memory during 10 % of the time: the policy keeps 150")) << told[0];
}

TEST(Monitors, LeaveAPolicyItsFewestPositions) {
  told.clear();
  const StatedMemory memory;
  memory.set(1, "0.00");
  Running watched(host_options("window:128", memory.root()));
  watched.run_to(200);
  wait_for_a_look();
  watched.run_to(300);
  EXPECT_EQ(watched.session().stats().kv_window, 128u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(has(told[0], "the policy keeps 128 positions and evicts no more of them")) << told[0];
}

TEST(Monitors, NeedAPolicyAndASystemThatStatesItsMemory) {
  const std::atomic<bool> cancel{false};
  const TempDir empty;
  HostOptions options = host_options("all", empty / ".");
  const auto refused = Host::open(stories("8bit"), options, cancel);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_argument);
  Running unwatched(host_options("window:300", empty / "."));
  ASSERT_EQ(unwatched.host->notes().size(), 1u);
  EXPECT_TRUE(has(unwatched.host->notes()[0], "does not state how much memory is available"))
      << unwatched.host->notes()[0];
  EXPECT_EQ(unwatched.host->monitor(), nullptr);
}

// Memory that is short from the beginning: the text is that of the smaller policy.
TEST(Monitors, OfTheProgramSaySo) {
  const std::vector<std::string> text{"-p", "Once upon a time", "-n", "400", "--ignore-eos", "--ctx-size", "500"};
  const auto run_by = [&](std::vector<std::string> more) {
    more.insert(more.end(), text.begin(), text.end());
    return generate(stories("8bit"), more);
  };
  const auto watched = run_by({"--kv-policy", "sinks:4+300", "--memory-monitor", "4096G", "--verbose"});
  EXPECT_TRUE(has(watched.ran.err, "the policy keeps 150 positions from now on")) << watched.ran.err;
  EXPECT_EQ(watched.receipt.at("plan").at("kv_window"), 150u);
  const auto smaller = run_by({"--kv-policy", "sinks:4+150"});
  EXPECT_EQ(watched.receipt.at("logits_hash"), smaller.receipt.at("logits_hash"));
  EXPECT_FALSE(has(run_by({"--kv-policy", "sinks:4+300", "--memory-monitor", "1K"}).ran.err, "the policy keeps"));
}

}  // namespace
}  // namespace qsf::test
