// qsf-run --kv-policy: a text of many times the cache goes on, and its parts in files stay with their policy.
#include "native/host/kv_policy.h"

#include <set>

#include "native/models.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

const std::vector<std::string> kPolicies{"window:40", "sinks:4+36", "h2o:40", "snapkv:40"};

TEST(KvPolicy, IsReadFromText) {
  struct Case {
    const char* text;
    std::uint32_t window, sinks, chosen;  // all 0: refused
  };
  for (const Case& c : std::initializer_list<Case>{{"window:1", 1, 0, 0},
                                                   {"window:16777216", 16777216, 0, 0},
                                                   {"sinks:4+1020", 1020, 4, 0},
                                                   {"h2o:512", 512, 0, 1},
                                                   {"snapkv:512", 512, 0, 2},
                                                   {"", 0, 0, 0},
                                                   {"window", 0, 0, 0},
                                                   {"window:", 0, 0, 0},
                                                   {"window:0", 0, 0, 0},
                                                   {"window:-1", 0, 0, 0},
                                                   {"window:4 ", 0, 0, 0},
                                                   {"window:16777217", 0, 0, 0},
                                                   {"window:4+4", 0, 0, 0},
                                                   {"sinks:4", 0, 0, 0},
                                                   {"sinks:+4", 0, 0, 0},
                                                   {"sinks:4+", 0, 0, 0},
                                                   {"sinks:0+4", 0, 0, 0},
                                                   {"Window:4", 0, 0, 0}}) {
    OpenOptions options;
    options.kv_window = options.kv_sinks = options.kv_chosen = 7;
    const Status set = set_kv_policy(c.text, options);
    EXPECT_EQ(static_cast<bool>(set), c.window != 0) << c.text;
    if (!set) {
      EXPECT_EQ(set.error().code, ErrorCode::bad_argument);
      continue;
    }
    EXPECT_EQ(options.kv_window, c.window) << c.text;
    EXPECT_EQ(options.kv_sinks, c.sinks) << c.text;
    EXPECT_EQ(options.kv_chosen, c.chosen) << c.text;
  }
  OpenOptions options;
  options.kv_window = 7;
  EXPECT_TRUE(set_kv_policy("all", options));
  EXPECT_EQ(options.kv_window, 0u);
}

TEST(KvPolicy, ATextOfTenTimesTheCacheGoesOn) {
  const std::vector<std::string> text{"-p", "Once upon a time", "-n", "480", "--ignore-eos", "--ctx-size", "500"};
  const auto run_by = [&](std::vector<std::string> more) {
    more.insert(more.end(), text.begin(), text.end());
    return generate(stories("8bit"), more).receipt;
  };
  const Json all = run_by({});
  std::set<std::string> hashes{all.at("logits_hash")};
  for (const std::string& policy : kPolicies) {
    const Json receipt = run_by({"--kv-policy", policy});
    EXPECT_EQ(receipt.at("generated_tokens").size(), 480u) << policy;
    EXPECT_EQ(receipt.at("ended"), "length") << policy;
    const auto lanes = [](const Json& of) {
      return of.at("plan").at("memory_map").at("kv cache").get<std::uint64_t>();
    };
    EXPECT_LT(4 * lanes(receipt), lanes(all)) << policy;
    EXPECT_GT(receipt.at("plan").at("kv_window"), 0u);
    EXPECT_TRUE(hashes.insert(receipt.at("logits_hash")).second) << policy;
    EXPECT_EQ(run_by({"--kv-policy", policy, "--stream-all", "--threads", "3"}).at("logits_hash"),
              receipt.at("logits_hash"))
        << policy;
  }
}

TEST(KvPolicy, SessionsAndPromptCachesAreOfOnePolicy) {
  const TempDir dir;
  const std::string model = stories("8bit"), file = dir / "story", folder = dir / "prompts";
  std::string prompt;
  for (int i = 0; i < 12; ++i) prompt += "Once upon a time there was a king. ";
  const std::vector<std::string> policy{"--kv-policy", "sinks:4+36", "--ignore-eos"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), policy.begin(), policy.end());
    return more;
  };
  const Json whole = generate(model, with({"-p", prompt, "-n", "60"})).receipt;
  const Json first = generate(model, with({"-p", prompt, "-n", "30", "--session", file})).receipt;
  const Json second = generate(model, with({"-p", "", "-n", "30", "--session", file})).receipt;
  std::vector<std::uint32_t> tokens = first.at("generated_tokens");
  for (const std::uint32_t id : second.at("generated_tokens")) tokens.push_back(id);
  EXPECT_EQ(Json(tokens), whole.at("generated_tokens"));
  const Ran other = run({program("qsf-run"), model, "-p", "", "--session", file, "--kv-policy", "window:40"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("a session with the policy sinks:4+36 would do"), std::string::npos) << other.err;

  (void)generate(model, with({"-p", prompt, "-n", "1", "--prompt-cache", folder}));
  const Json same = generate(model, with({"-p", prompt, "-n", "60", "--prompt-cache", folder})).receipt;
  EXPECT_GT(same.at("reused_tokens"), 100u);
  EXPECT_EQ(same.at("logits_hash"), whole.at("logits_hash"));
  EXPECT_EQ(generate(model, {"-p", prompt, "-n", "1", "--prompt-cache", folder}).receipt.at("reused_tokens"), 0u);
}

}  // namespace
}  // namespace qsf::test
