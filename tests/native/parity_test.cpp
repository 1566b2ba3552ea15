// qsf-run --kl against divergences worked out here in doubles, the file of --save-logits to the byte, and qsf-parity.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/reference.h"
#include "native/letters.h"
#include "qsf/base/checksum.h"
#include "tests/support/farthest.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kWindow = 20, kCounted = 9, kVocabulary = 40;

SmallFile model(std::uint32_t seed, FormatId format = FormatId::f32) {
  SmallOptions o;
  o.tokenizer = letters(true);
  o.seed = seed;
  o.format = format;
  return small_file(o);
}

/// The windows' ids as they are fed.
std::vector<Ids> windows_of(const std::string& text) {
  Ids ids = ids_of(text);
  ids.insert(ids.begin(), kBegin);
  std::vector<Ids> windows;
  for (std::size_t at = 0; at + kWindow <= ids.size(); at += kWindow) {
    windows.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(at),
                         ids.begin() + static_cast<std::ptrdiff_t>(at + kWindow));
    windows.back()[0] = kBegin;
  }
  return windows;
}

Vec log_softmax(const Vec& row) {
  long double sum = 0;
  for (const double x : row) sum += std::exp(static_cast<long double>(x));
  Vec out = row;
  for (double& x : out) x -= static_cast<double>(std::log(sum));
  return out;
}

std::string said_by(std::vector<std::string> arguments, int code, const char* name = "qsf-run") {
  arguments.insert(arguments.begin(), program(name));
  const Ran ran = run(arguments);
  EXPECT_EQ(ran.code, code) << ran.err << ran.out;
  return ran.err;
}

Json parity(const std::string& a, const std::string& b, int code, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {program("qsf-parity"), a, b});
  const Ran ran = run(more);
  EXPECT_EQ(ran.code, code) << ran.err << ran.out;
  return Json::parse(ran.out, nullptr, false);
}

TEST(Divergence, IsThatOfTwoModelsInDoubles) {
  SmallOptions o;
  const std::string text = some_text(200);
  const SmallFile one = model(1), other = model(2);
  Measurable a, b;
  a.write(one, text);
  b.write(other, text);
  a.measure({"--window", "20", "--save-logits", a.dir / "saved"});
  const Json receipt = b.measure({"--window", "20", "--kl", a.dir / "saved"}).receipt;

  Vec divergences;
  double difference = 0;
  std::uint32_t same_top = 0;
  for (const Ids& ids : windows_of(text)) {
    o.seed = 1;
    const std::vector<Vec> logits_a = reference_logits(o, one, ids, KvType::f32);
    o.seed = 2;
    const std::vector<Vec> logits_b = reference_logits(o, other, ids, KvType::f32);
    for (std::uint32_t i = kWindow / 2; i + 1 < kWindow; ++i) {
      const Vec p = log_softmax(logits_a[i]), q = log_softmax(logits_b[i]);
      double divergence = 0;
      for (std::size_t t = 0; t < p.size(); ++t) divergence += std::exp(p[t]) * (p[t] - q[t]);
      divergences.push_back(divergence);
      difference += p[ids[i + 1]] - q[ids[i + 1]];
      const auto top = [](const Vec& row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
      same_top += top(p) == top(q) ? 1 : 0;
    }
  }
  const auto n = static_cast<double>(divergences.size());
  ASSERT_EQ(divergences.size(), 10u * kCounted);
  double mean = 0;
  for (const double d : divergences) mean += d / n;
  std::sort(divergences.begin(), divergences.end());
  // 0.99 * 89 = 88.11: between the last two.
  const double quantile = divergences[88] + 0.11 * (divergences[89] - divergences[88]);
  const Json& d = receipt.at("divergence");
  EXPECT_GT(mean, 0.01);
  EXPECT_NEAR(d.at("mean").get<double>(), mean, 1e-5 * mean);
  EXPECT_NEAR(d.at("quantile_99").get<double>(), quantile, 1e-5 * quantile);
  EXPECT_EQ(d.at("same_top").get<double>(), same_top / n);
  EXPECT_NEAR(d.at("perplexity_ratio").get<double>(), std::exp(difference / n), 1e-5);
}

TEST(Divergence, FromItselfIsNothing) {
  Measurable files;
  files.write(model(1, FormatId::q8), some_text(200));
  const Json base = files.measure({"--window", "20", "--save-logits", files.dir / "saved"}).receipt;
  for (const std::vector<std::string>& way :
       {std::vector<std::string>{}, {"--sequences", "3", "--chunk", "50"}, {"--stream-all", "--chunk", "7"}}) {
    std::vector<std::string> more{"--window", "20", "--kl", files.dir / "saved", "--save-logits", files.dir / "again"};
    more.insert(more.end(), way.begin(), way.end());
    const Json receipt = files.measure(more).receipt;
    const Json nothing{{"mean", 0.0}, {"quantile_99", 0.0}, {"same_top", 1.0}, {"perplexity_ratio", 1.0}};
    EXPECT_EQ(receipt.at("divergence"), nothing);
    EXPECT_EQ(receipt.at("perplexity"), base.at("perplexity"));
    EXPECT_EQ(read_bytes(files.dir / "again"), read_bytes(files.dir / "saved"));
  }
}

TEST(Divergence, SavedLogitsAreAsDescribed) {
  Measurable files;
  const std::string text = some_text(47);
  files.write(model(1), text);
  files.measure({"--window", "20", "--save-logits", files.dir / "saved"});
  const std::vector<std::byte> bytes = read_bytes(files.dir / "saved");
  ASSERT_EQ(bytes.size(), 32 + 2 * kCounted * kVocabulary * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), "QSFLOGIT", 8), 0);
  Ids all;
  const std::vector<Ids> windows = windows_of(text);
  for (const Ids& ids : windows) all.insert(all.end(), ids.begin(), ids.end());
  const std::uint32_t fields[] = {1, kWindow, kVocabulary, 2, crc32(std::as_bytes(std::span(all))), 0};
  EXPECT_EQ(std::memcmp(&bytes[8], fields, sizeof fields), 0);
  // Its rows are those of --logits.
  for (std::size_t w = 0; w < windows.size(); ++w) {
    generate(files.model, {"--tokens", joined(windows[w]), "--max-tokens", "0", "--logits", files.dir / "rows"});
    const std::vector<std::byte> rows = read_bytes(files.dir / "rows");
    ASSERT_EQ(rows.size(), kWindow * kVocabulary * sizeof(float));
    const std::size_t row = kVocabulary * sizeof(float);
    EXPECT_EQ(std::memcmp(&rows[kWindow / 2 * row], &bytes[32 + w * kCounted * row], kCounted * row), 0) << w;
  }
}

TEST(Divergence, LogitsThatDoNotFitAreRefused) {
  Measurable files;
  files.write(model(1), some_text(99));
  const std::string saved = files.dir / "saved", bad = files.dir / "bad";
  const std::vector<std::string> common{files.model, "--perplexity", files.text, "--window", "20", "--kl"};
  const auto refused = [&](const std::string& base, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = common;
    arguments.push_back(base);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return said_by(arguments, 1);
  };
  files.measure({"--window", "20", "--save-logits", saved});
  said_by({files.model, "--perplexity", files.text, "--window", "20", "--kl", saved}, 0);
  const std::vector<std::byte> good = read_bytes(saved);
  const auto with = [&](std::size_t field, std::uint32_t value) {
    std::vector<std::byte> bytes = good;
    std::memcpy(&bytes[8 + 4 * field], &value, sizeof value);
    write_bytes(bad, bytes);
    return refused(bad);
  };
  const std::string is_bad = "qsf-run: bad_input: " + bad, wrong = "qsf-run: bad_argument: " + bad;
  EXPECT_EQ(with(0, 2), is_bad + " has saved logits of version 2; this program reads 1\n");
  EXPECT_EQ(with(1, 2), is_bad + " states 5 windows of 2 tokens and a vocabulary of 40\n");
  EXPECT_EQ(with(1, 30), is_bad + " has 45 rows of logits; 5 windows of 30 tokens have 70\n");
  EXPECT_EQ(with(2, 0), is_bad + " states 5 windows of 20 tokens and a vocabulary of 0\n");
  EXPECT_EQ(with(2, 20), is_bad + " has 90 rows of logits; 5 windows of 20 tokens have 45\n");
  EXPECT_EQ(with(3, 4), is_bad + " has 45 rows of logits; 4 windows of 20 tokens have 36\n");
  EXPECT_EQ(with(3, ~0u).substr(0, is_bad.size()), is_bad);
  EXPECT_EQ(with(4, 7), wrong + " was saved from another text or with another tokenizer\n");
  std::vector<std::byte> bytes = good;
  bytes.pop_back();
  write_bytes(bad, bytes);
  EXPECT_EQ(refused(bad), is_bad + " has 7199 bytes of logits, which are no rows of a vocabulary of 40\n");
  for (const std::size_t size : {std::size_t{0}, std::size_t{31}, std::size_t{32}}) {
    write_bytes(bad, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(refused(bad).substr(0, is_bad.size()), is_bad) << size;
  }
  bytes = good;
  const float infinite = INFINITY;
  std::memcpy(&bytes[32 + 4 * 41], &infinite, sizeof infinite);
  write_bytes(bad, bytes);
  EXPECT_EQ(refused(bad), is_bad + " has a logit that is no finite number in row 1\n");
  EXPECT_EQ(refused(saved, {"--windows", "3"}),
            "qsf-run: bad_argument: " + saved + " has the logits of 5 windows, not of 3 (see --windows)\n");
  EXPECT_EQ(said_by({files.model, "--perplexity", files.text, "--window", "16", "--kl", saved}, 1),
            "qsf-run: bad_argument: " + saved + " was saved with windows of 20 tokens, not 16 (see --window)\n");
  EXPECT_EQ(refused(saved, {"--save-logits", saved}).substr(0, 22), "qsf-run: bad_argument:");
  EXPECT_EQ(read_bytes(saved), good);
  refused(files.dir / "none");
  refused(files.dir / "");
  EXPECT_EQ(said_by({files.model, "--prompt", "x", "--kl", saved}, 2),
            "qsf-run: bad_argument: --kl and --save-logits are for --perplexity\n");
}

TEST(Parity, OfLogits) {
  const std::string text = some_text(99);
  Measurable a, b;
  a.write(model(1), text);
  b.write(model(2), text);
  const std::vector<std::string> save{"--window", "20", "--save-logits"};
  const auto saved = [&](const Measurable& of, const std::string& name) {
    std::vector<std::string> more = save;
    more.push_back(of.dir / name);
    of.measure(more);
    return of.dir / name;
  };
  const std::string one = saved(a, "saved"), same = saved(a, "same"), other = saved(b, "saved");
  const Json equal = parity(one, same, 0);
  EXPECT_EQ(equal, (Json{{"compared", "logits"},
                         {"equal", true},
                         {"cosine_similarity", equal.at("cosine_similarity")},
                         {"least_cosine_similarity", equal.at("least_cosine_similarity")},
                         {"largest_difference", 0.0},
                         {"steps", 45},
                         {"exact_match_rate", 1.0},
                         {"first_divergence_step", nullptr}}));
  EXPECT_NEAR(equal.at("cosine_similarity").get<double>(), 1, 1e-14);

  const Json different = parity(one, other, 1);
  const std::vector<std::byte> bytes[] = {read_bytes(one), read_bytes(other)};
  long double dot = 0, squares[2] = {0, 0};
  std::vector<float> values[2];
  for (std::size_t at = 32; at < bytes[0].size(); at += sizeof(float)) {
    float x[2];
    for (const int i : {0, 1}) {
      std::memcpy(&x[i], &bytes[i][at], sizeof(float));
      squares[i] += static_cast<long double>(x[i]) * static_cast<long double>(x[i]);
      values[i].push_back(x[i]);
    }
    dot += static_cast<long double>(x[0]) * static_cast<long double>(x[1]);
  }
  EXPECT_NEAR(different.at("cosine_similarity").get<double>(),
              static_cast<double>(dot / std::sqrt(squares[0] * squares[1])), 1e-12);
  EXPECT_EQ(different.at("largest_difference").get<double>(), farthest(values[0], values[1]));
  EXPECT_LT(different.at("exact_match_rate").get<double>(), 1);
  EXPECT_TRUE(different.at("first_divergence_step").is_number());

  // One logit a little off is a difference, unless it is said to be none.
  std::vector<std::byte> off = bytes[0];
  float value = 0;
  std::memcpy(&value, &off[32 + 400], sizeof value);
  value += 0.25f;
  std::memcpy(&off[32 + 400], &value, sizeof value);
  write_bytes(a.dir / "off", off);
  const Json small = parity(one, a.dir / "off", 1);
  EXPECT_NEAR(small.at("largest_difference").get<double>(), 0.25, 1e-6);
  parity(one, a.dir / "off", 0, {"--tolerance", "0.26"});

  // Rows without a header.
  generate(a.model, {"--tokens", "1,2,3", "--max-tokens", "0", "--logits", a.dir / "rows"});
  const Json rows = parity(a.dir / "rows", a.dir / "rows", 0, {"--vocabulary", "40"});
  EXPECT_EQ(rows.at("steps"), 3);
}

TEST(Parity, OfReceipts) {
  const std::string eight = stories("8bit"), four = stories("4bit");
  const TempDir dir;
  const auto receipt = [&](const std::string& name, const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), {program("qsf-run"), model, "--prompt", "Once upon a time", "--max-tokens", "24",
                               "--temperature", "0", "--receipt", dir / name});
    EXPECT_EQ(run(more).code, 0);
    return dir / name;
  };
  const std::string a = receipt("a", eight, {}), b = receipt("b", eight, {"--isa", "scalar", "--stream-all"});
  EXPECT_EQ(parity(a, b, 0), (Json{{"compared", "receipts"},
                                   {"equal", true},
                                   {"same_model", true},
                                   {"same_prompt", true},
                                   {"same_logits", true},
                                   {"steps", 24},
                                   {"exact_match_rate", 1.0},
                                   {"first_divergence_step", nullptr}}));
  Json changed = Json::parse(read_text(a));
  changed["generated_tokens"][6] = 3;
  changed["generated_tokens"].erase(20);
  std::ofstream(dir / "changed", std::ios::binary) << changed.dump();
  const Json different = parity(a, dir / "changed", 1);
  EXPECT_EQ(different.at("first_divergence_step"), 6);
  EXPECT_LT(different.at("exact_match_rate").get<double>(), 1);
  EXPECT_EQ(different.at("same_logits"), true);
  const Json models = parity(a, receipt("c", four, {}), 1);
  EXPECT_EQ(models.at("same_model"), false);
  EXPECT_EQ(models.at("same_logits"), false);

  // Of measured texts.
  Measurable one, other;
  one.write(model(1), some_text(99));
  other.write(model(2), some_text(99));
  for (const Measurable* m : {&one, &other}) {
    EXPECT_EQ(
        run({program("qsf-run"), m->model, "--perplexity", m->text, "--window", "20", "--receipt", m->dir / "r"}).code,
        0);
  }
  EXPECT_EQ(parity(one.dir / "r", one.dir / "r", 0).at("perplexity_difference"), 0.0);
  EXPECT_EQ(parity(one.dir / "r", other.dir / "r", 1).at("same_prompt"), true);
}

TEST(Parity, WhatCannotBeComparedIsAnError) {
  Measurable files;
  files.write(model(1), some_text(99));
  const std::string saved = files.dir / "saved", fewer = files.dir / "fewer", r = files.dir / "r",
                    bad = files.dir / "bad", moved = files.dir / "moved";
  files.measure({"--window", "20", "--save-logits", saved});
  files.measure({"--window", "20", "--windows", "2", "--save-logits", fewer});
  generate(files.model, {"--tokens", "1,2,3", "--max-tokens", "2", "--logits", files.dir / "rows"});
  EXPECT_EQ(run({program("qsf-run"), files.model, "--tokens", "3,4", "-n", "2", "--receipt", r}).code, 0);
  const auto refused = [&](const std::string& a, const std::string& b, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {a, b});
    return said_by(more, 2, "qsf-parity");
  };
  EXPECT_EQ(refused(saved, fewer), "qsf-parity: bad_input: " + saved + " has 45 rows of 40 logits, " + fewer +
                                       " has 18 of 40: they cannot be compared\n");
  std::vector<std::byte> bytes = read_bytes(saved);
  bytes[8 + 16] ^= std::byte{1};
  write_bytes(moved, bytes);
  EXPECT_EQ(refused(saved, moved),
            "qsf-parity: bad_input: " + saved + " and " + moved + " are of other tokens: they cannot be compared\n");
  EXPECT_EQ(refused("ftp://u:word@h/a", r),
            "qsf-parity: io_error: cannot read ftp://***@h/a: No such file or directory\n");
  EXPECT_EQ(refused(saved, r), "qsf-parity: bad_input: " + saved + " and " + r + " are files of two kinds\n");
  EXPECT_EQ(refused(saved, files.dir / "rows"),
            "qsf-parity: bad_input: " + files.dir / "rows" +
                " is neither a receipt nor logits of --save-logits (rows of --logits need --vocabulary)\n");
  EXPECT_EQ(refused(files.dir / "rows", files.dir / "rows", {"--vocabulary", "39"}).substr(0, 22),
            "qsf-parity: bad_input:");
  EXPECT_EQ(refused(saved, files.dir / "none").substr(0, 21), "qsf-parity: io_error:");
  refused(saved, files.dir / "");
  for (const std::string text : {"{", "{}", "[1]", "{\"program\": 1, \"logits_hash\": 2}", "{\"a\": \"\xff\"}"}) {
    std::ofstream(bad, std::ios::binary) << text;
    EXPECT_TRUE(refused(r, bad).starts_with("qsf-parity: bad_input: " + bad + " is n")) << text;
  }
  for (const char* ids : {"1", "null", "[1, -2]", "[[]]", "[1.5]", "{\"a\": 1}"}) {
    std::ofstream(bad, std::ios::binary) << R"({"program": "", "logits_hash": "", "generated_tokens": )" << ids << "}";
    EXPECT_EQ(refused(r, bad),
              "qsf-parity: bad_input: " + bad + " has a field generated_tokens that is no list of token ids\n");
  }
  said_by({}, 2, "qsf-parity");
  said_by({saved}, 2, "qsf-parity");
  said_by({saved, saved, saved}, 2, "qsf-parity");
  EXPECT_EQ(refused(r, r, {"--tolerance", "0.1"}),
            "qsf-parity: bad_argument: --tolerance is for logits, and " + r + " is a receipt\n");
  EXPECT_EQ(refused(saved, saved, {"--vocabulary", "40"}),
            "qsf-parity: bad_argument: --vocabulary is for rows of --logits, and " + saved + " states its own\n");
  refused(saved, saved, {"--tolerance", "-1"});
  refused(saved, saved, {"--tolerance", "x"});
  refused(saved, saved, {"--vocabulary", "0"});
  said_by({"--version"}, 0, "qsf-parity");
}

}  // namespace
}  // namespace qsf::test
