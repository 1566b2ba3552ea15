// Models that are no .qsf files, run as they are: the bytes of their sources, their logits, and files that change.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/readers/inputs.h"
#include "native/convert_to.h"
#include "native/host/host.h"
#include "native/made/made_source.h"
#include "native/source_reads.h"
#include "native/temp.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

const std::string kData = source_dir() + "/tests/data/", kStories = source_dir() + "/models/stories";

struct Case {
  std::string path;
  std::string_view type = "";  // of qsf-run
  bool headless = false;
};

/// One of each way in which segments are made.
std::vector<Case> cases() {
  return {{kData + "gguf/llama.gguf"},           // rows in another order
          {kData + "gguf/qwen2.gguf"},           // biases
          {kData + "gguf/qwen3-moe.gguf"},       // experts
          {kData + "gguf/gpt-oss.gguf"},         // packed experts
          {kData + "gguf/bert.gguf", "", true},  // no head
          {kData + "llama"},                     // rounded
          {kData + "gpt2", "q4_0"},              // transposed
          {kData + "mixtral", "f16"},            // one tensor for each expert
          {kStories, "q4_k"}};
}

SourceOptions options_of(const Case& c, std::string_view kind = "pread", bool helped = false) {
  SourceOptions options = quick();
  options.kind = kind;
  options.helped = helped;
  options.quant_type = c.type;
  return options;
}

/// Reads pieces as a host does, which helps and finishes. Returns the first error.
Status read_helping(Source& source, std::span<const ReadRequest> requests) {
  Status first;
  std::array<Completion, 8> done;
  std::size_t taken = 0;
  const auto take = [&](Completion& c) {
    if (!source.finish(c)) return;
    ++taken;
    if (first && !c.status) first = c.status;
  };
  std::span<const ReadRequest> next = requests;
  while (taken < requests.size()) {
    next = next.subspan(source.submit(next));
    const Helped helped = source.read_cached(done[0]);
    if (helped == Helped::last) take(done[0]);
    if (helped != Helped::nothing) continue;
    const std::size_t n = source.reap(done, std::chrono::milliseconds(100));
    for (Completion& c : std::span(done).first(n)) take(c);
  }
  EXPECT_EQ(source.under_way(), 0u);
  return first;
}

/// Reads every segment as an engine asks for it, and compares it with the file.
void expect_segments(Source& source, const FilePlan& plan, const std::vector<std::byte>& file) {
  std::vector<std::byte> memory(file.size());
  std::vector<ReadRequest> requests;
  for (const SegmentEntry& s : plan.segments()) {
    ReadRequest request;
    request.offset = s.offset;
    request.size = s.raw_size;
    request.ticket = static_cast<std::uint32_t>(requests.size());
    request.into = memory.data() + s.offset;
    requests.push_back(request);
  }
  const Status status = read_helping(source, requests);
  ASSERT_TRUE(status) << status.error().sentence;
  for (const SegmentEntry& s : plan.segments()) {
    ASSERT_TRUE(std::equal(memory.begin() + static_cast<std::ptrdiff_t>(s.offset),
                           memory.begin() + static_cast<std::ptrdiff_t>(s.offset + s.raw_size),
                           file.begin() + static_cast<std::ptrdiff_t>(s.offset)))
        << "segment at " << s.offset;
  }
}

TEST(MadeSource, EveryKindGivesTheFilesBytes) {
  const TempDir dir;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.path);
    const std::string path = dir / (fs::path(c.path).filename().string() + ".qsf");
    convert_to(c.path, path, c.type);
    const std::vector<std::byte> file = read_bytes(path);
    const Result<std::shared_ptr<MadeModel>> model = MadeModel::open(c.path, options_of(c));
    ASSERT_TRUE(model) << model.error().sentence;
    ASSERT_TRUE(*model);
    for (const SourceKind* kind : source_kinds()) {
      if (kind->url) continue;
      for (const bool helped : {false, true}) {
        Result<Source> source = open_made(*model, options_of(c, kind->name, helped));
        ASSERT_TRUE(source) << source.error().sentence;
        EXPECT_TRUE(source->kind().makes);
        ASSERT_EQ(source->size(), file.size());
        expect_segments(*source, (*model)->file().plan(), file);
      }
    }
    // Every checksum is known now, and the front of the next source has them.
    Result<Source> source = open_made(*model, options_of(c));
    ASSERT_TRUE(source);
    const std::size_t size = file.size();
    for (const auto& [offset, n] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
             {0, size}, {0, 1}, {size - 1, 1}, {4095, 4097}, {size / 3, size / 2}, {77, 1000}, {size, 0}}) {
      const Read got = read(*source, offset, n);
      EXPECT_EQ(got.code, ErrorCode::none) << got.sentence;
      EXPECT_TRUE(got.bytes == part(file, offset, n)) << offset;
    }
    EXPECT_EQ(read(*source, size, 1).code, ErrorCode::truncated);
    source->cancel();
    EXPECT_EQ(read(*source, 0, 10).code, ErrorCode::cancelled);
  }
}

TEST(MadeSource, DividedFilesAreRead) {
  const TempDir dir;
  const std::vector<GgufWriter> parts = GgufWriter::of(read_bytes(kData + "gguf/llama.gguf")).parts(3);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    write_bytes(dir / ("m-0000" + std::to_string(i + 1) + "-of-00003.gguf"), parts[i].file());
  }
  // Any part stands for all; a directory with several files of weights.
  for (const auto& [from, same] : std::initializer_list<std::pair<std::string, std::string>>{
           {dir / "m-00001-of-00003.gguf", kData + "gguf/llama.gguf"},
           {dir / "m-00003-of-00003.gguf", kData + "gguf/llama.gguf"},
           {kData + "qwen3", kData + "qwen3"}}) {
    SCOPED_TRACE(from);
    convert_to(same, dir / "m.qsf");
    const std::vector<std::byte> file = read_bytes(dir / "m.qsf");
    const Result<std::shared_ptr<MadeModel>> model = MadeModel::open(from, {});
    ASSERT_TRUE(model) << model.error().sentence;
    ASSERT_TRUE(*model);
    EXPECT_GE((*model)->paths().size(), 3u);
    for (const bool helped : {false, true}) {
      SourceOptions options;
      options.helped = helped;
      Result<Source> source = open_made(*model, options);
      ASSERT_TRUE(source);
      expect_segments(*source, (*model)->file().plan(), file);
    }
  }
}

struct Generated {
  ErrorCode code = ErrorCode::none;
  std::string sentence, hash;
};

Generated generated(Host& host, bool headless = false) {
  const std::uint32_t ids[] = {3, 17, 5};
  Session& session = host.session();
  if (headless) {
    EmbedPrompt prompt;
    prompt.tokens = ids;
    EXPECT_TRUE(session.embed(prompt));
  } else {
    Prompt prompt;
    prompt.tokens = ids;
    prompt.max_tokens = 4;
    prompt.ignore_eos = prompt.hash_logits = true;
    prompt.sampler.temperature = 0;
    EXPECT_TRUE(session.rewind(0));
    EXPECT_TRUE(session.start(prompt));
  }
  std::string embedding;
  while (true) {
    const Result<Step> step = host.next();
    if (!step) return {step.error().code, step.error().sentence, ""};
    if (*step == Step::embedding) {
      const auto bytes = std::as_bytes(session.embedding());
      embedding.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    if (*step != Step::done) continue;
    return {ErrorCode::none, "", embedding.empty() ? std::string(session.logits_hash()) : embedding};
  }
}

Result<std::unique_ptr<Host>> open(const std::string& path, const HostOptions& options,
                                   const std::atomic<bool>& cancel) {
  return Host::open(path, options, cancel);
}

// Resident by one thread and streamed by two, from every kind of source.
TEST(MadeModel, LogitsAreThoseOfTheConvertedFile) {
  const TempDir dir;
  const std::atomic<bool> cancel{false};
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.path);
    const std::string path = dir / (fs::path(c.path).filename().string() + ".qsf");
    convert_to(c.path, path, c.type);
    HostOptions options;
    options.budget = 64u << 20;
    options.threads = 1;
    options.open.kv = KvType::f16;
    Result<std::unique_ptr<Host>> host = open(path, options, cancel);
    ASSERT_TRUE(host) << host.error().sentence;
    EXPECT_EQ((*host)->made(), nullptr);
    const std::string expected = generated(**host, c.headless).hash, model_hash((*host)->session().model_hash());
    for (const SourceKind* kind : source_kinds()) {
      if (kind->url) continue;
      for (const bool streams : {false, true}) {
        options.threads = streams ? 2 : 1;
        options.source.kind = kind->name;
        options.source.quant_type = c.type;
        options.open.stream_all = streams;
        host = open(c.path, options, cancel);
        ASSERT_TRUE(host) << host.error().sentence;
        ASSERT_NE((*host)->made(), nullptr);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(generated(**host, c.headless).hash, expected) << kind->name << streams;
      }
    }
    const Result<std::string> hash = (*host)->made()->hash(cancel);
    ASSERT_TRUE(hash) << hash.error().sentence;
    EXPECT_EQ(*hash, model_hash);
  }
}

TEST(MadeModel, AFileThatIsCutOrWrittenAnewEndsTheGeneration) {
  const std::atomic<bool> cancel{false};
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) continue;
    for (const std::uint32_t threads : {1u, 2u}) {
      const TempDir dir;
      const std::string path = dir / "m.gguf";
      convert_to(kStories, path, "q4_0");
      const std::vector<std::byte> content = read_bytes(path);
      HostOptions options;
      options.budget = 8u << 20;
      options.threads = threads;
      options.source.kind = kind->name;
      options.open.stream_all = true;
      Result<std::unique_ptr<Host>> host = open(path, options, cancel);
      ASSERT_TRUE(host) << host.error().sentence;
      EXPECT_NE((*host)->session().stats().ring_slots, 0u);
      const Generated before = generated(**host);
      ASSERT_EQ(before.code, ErrorCode::none) << before.sentence;
      fs::resize_file(path, content.size() / 3);
      for (int i = 0; i < 2; ++i) {
        const ErrorCode code = generated(**host).code;
        EXPECT_TRUE(code == ErrorCode::truncated || code == ErrorCode::file_changed) << kind->name;
      }
      // The same size with other weights: only the date tells.
      std::vector<std::byte> other = content;
      std::ranges::fill(std::span(other).last(content.size() / 2), std::byte{0x11});
      write_bytes(path, other);
      fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
      EXPECT_EQ(generated(**host).code, ErrorCode::file_changed) << kind->name;
      // Another file of the name changes nothing, because the first one is still open.
      host = open(path, options, cancel);
      if (!host) continue;
      const Generated anew = generated(**host);
      write_bytes(dir / "new", content);
      if (sys::replace_file(dir / "new", path)) {
        EXPECT_EQ(generated(**host).hash, anew.hash);
      }
    }
  }
}

TEST(MadeModel, ABudgetThatIsTooSmallIsRefusedWithOneThatWorks) {
  const std::atomic<bool> cancel{false};
  HostOptions options;
  options.threads = 1;
  for (const std::uint64_t budget : {std::uint64_t{0}, kHostReserve + 4096, std::uint64_t{1'300'000}}) {
    options.threads = options.threads % 2 + 1;
    options.budget = budget;
    Result<std::unique_ptr<Host>> host = open(kData + "gguf/llama.gguf", options, cancel);
    ASSERT_FALSE(host);
    ASSERT_EQ(host.error().code, ErrorCode::budget_too_small);
    const std::string sentence = host.error().sentence;
    double needed = 0;
    for (const std::string_view before : {"small for this model: ", "at least "}) {
      const std::size_t at = sentence.find(before);
      if (at != std::string::npos) needed = std::stod(sentence.substr(at + before.size()));
    }
    ASSERT_GT(needed, 0) << sentence;
    options.budget = static_cast<std::uint64_t>(needed * (1 << 20));
    host = open(kData + "gguf/llama.gguf", options, cancel);
    ASSERT_TRUE(host) << sentence << "; then: " << host.error().sentence;
    EXPECT_EQ(generated(**host).code, ErrorCode::none);
  }
}

TEST(MadeModel, WhatIsNoModelIsRefusedAsBefore) {
  const TempDir dir;
  const std::atomic<bool> cancel{false};
  write_bytes(dir / "noise", some_bytes(10'000));
  std::vector<std::byte> cut = read_bytes(kData + "gguf/llama.gguf");
  cut.resize(1000);
  write_bytes(dir / "cut.gguf", cut);
  fs::create_directory(dir / "empty");
  for (const auto& [name, code] :
       std::initializer_list<std::pair<const char*, ErrorCode>>{{"absent", ErrorCode::io_error},
                                                                {"noise", ErrorCode::bad_magic},
                                                                {"cut.gguf", ErrorCode::truncated},
                                                                {"empty", ErrorCode::bad_input}}) {
    const Result<std::unique_ptr<Host>> host = open(dir / name, {}, cancel);
    ASSERT_FALSE(host) << name;
    EXPECT_EQ(host.error().code, code) << name << ": " << host.error().sentence;
  }
  HostOptions options;
  options.source.quant_type = "q9";
  EXPECT_EQ(error_of(open(kData + "gguf/llama.gguf", options, cancel)).code, ErrorCode::bad_argument);
}

TEST(MadeModel, AFileOfOursTakesOtherTypesToo) {
  const TempDir dir;
  const std::atomic<bool> cancel{false};
  convert_to(kStories, dir / "m.qsf");
  convert_to(kStories, dir / "q.qsf", "q4_0");
  HostOptions options;
  options.source.quant_type = "q4_0";
  const auto made = open(dir / "m.qsf", options, cancel), converted = open(dir / "q.qsf", {}, cancel);
  ASSERT_TRUE(made) << made.error().sentence;
  ASSERT_TRUE(converted) << converted.error().sentence;
  EXPECT_EQ((*made)->session().stats().weight_bytes, (*converted)->session().stats().weight_bytes);
}

class Fronts : public ::testing::Test {
 protected:
  std::shared_ptr<MadeModel> model(const std::string& path, std::string_view type = "") {
    SourceOptions options;
    options.cache = cache_;
    options.quant_type = type;
    const Result<std::shared_ptr<MadeModel>> opened = MadeModel::open(path, options);
    EXPECT_TRUE(opened) << opened.error().sentence;
    return opened ? *opened : nullptr;
  }
  std::size_t n_fronts() const {
    if (!fs::exists(cache_)) return 0;
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()));
  }
  /// The whole front, read as a host reads it.
  static std::vector<std::byte> front(MadeModel& model) {
    std::vector<std::byte> out(model.file().plan().front_size());
    EXPECT_TRUE(model.read_front(0, out));
    return out;
  }

  const TempDir dir_;
  const std::string cache_ = dir_ / "made/fronts";
};

TEST_F(Fronts, AreKeptAndFoundWithTheirChecksums) {
  const std::atomic<bool> cancel{false};
  for (const std::string& path : {kData + "gguf/llama.gguf", kStories}) {
    std::shared_ptr<MadeModel> first = model(path);
    ASSERT_TRUE(first);
    const std::vector<std::byte> made = front(*first);
    const std::vector<std::string> warnings = first->warnings();
    const Result<std::string> hash = first->hash(cancel);
    ASSERT_TRUE(hash);
    const std::size_t n = n_fronts();
    first.reset();
    EXPECT_EQ(n_fronts(), n);
    std::shared_ptr<MadeModel> second = model(path);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->file().n_unchecked(), 0u);
    EXPECT_EQ(second->warnings(), warnings);
    EXPECT_EQ(second->hash(cancel).operator bool(), true);
    EXPECT_EQ(*second->hash(cancel), *hash);
    EXPECT_NE(front(*second), made) << "the checksums are known";
    EXPECT_LT(second->memory(), first ? 0 : made.size() + second->file().memory() + (1u << 20));
    EXPECT_EQ(n_fronts(), n);
  }
  EXPECT_EQ(n_fronts(), 2u);
  model(kStories, "q4_0");
  EXPECT_EQ(n_fronts(), 3u) << "another type is another file";
}

TEST_F(Fronts, OfFilesThatChangedAreMadeAnew) {
  const std::string path = dir_ / "m";
  fs::copy(kStories, path, fs::copy_options::recursive);
  const std::vector<std::byte> before = front(*model(path));
  // A tokenizer that another file changes.
  const std::string config = path + "/config.json";
  std::string text = read_text(config);
  const std::size_t at = text.find("\"rms_norm_eps\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "\"rms_norm_eps\": 0.25, \"ignored\"");
  write_bytes(config, {reinterpret_cast<const std::byte*>(text.data()),
                       reinterpret_cast<const std::byte*>(text.data()) + text.size()});
  const std::vector<std::byte> after = front(*model(path));
  EXPECT_NE(before, after);
  write_bytes(path + "/chat_template.jinja", some_bytes(0));
  EXPECT_TRUE(model(path));
}

TEST_F(Fronts, ThatAreDamagedAreMadeAnew) {
  const std::string path = kData + "gguf/llama.gguf";
  const std::vector<std::byte> made = front(*model(path));
  const std::string file = fs::directory_iterator(cache_)->path().string();
  const std::vector<std::byte> whole = read_bytes(file);
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<std::byte> damaged = whole;
    if (i % 2 == 0) {
      damaged[i * (whole.size() - 1) / 39] ^= std::byte{4};
    } else {
      damaged.resize(i * whole.size() / 40);
    }
    write_bytes(file, damaged);
    EXPECT_EQ(front(*model(path)), made) << i;
    EXPECT_EQ(read_bytes(file), whole) << i;
  }
}

TEST_F(Fronts, AreLimited) {
  const FrontCache cache(cache_);
  for (int i = 0; i < 70; ++i) {
    Front made;
    made.bytes = some_bytes(1000);
    ASSERT_TRUE(cache.keep("key " + std::to_string(i), made));
    const auto used = fs::file_time_type::clock::now() - std::chrono::hours(1000 - i);
    for (const auto& entry : fs::directory_iterator(cache_)) {
      if (fs::file_time_type::clock::now() - entry.last_write_time() < std::chrono::minutes(1)) {
        fs::last_write_time(entry.path(), used);
      }
    }
  }
  EXPECT_EQ(n_fronts(), FrontCache::kMostFronts);
  EXPECT_FALSE(cache.find("key 0"));
  ASSERT_TRUE(cache.find("key 69"));
  EXPECT_EQ(cache.find("key 69")->bytes, some_bytes(1000));
  EXPECT_FALSE(FrontCache("").find("key 69"));
  EXPECT_TRUE(FrontCache("").keep("key", Front()));
}

TEST_F(Fronts, AFolderThatCannotBeWrittenCostsTimeOnly) {
  write_bytes(dir_ / "made", some_bytes(10));  // a file in place of the folder
  const std::shared_ptr<MadeModel> opened = model(kData + "gguf/llama.gguf");
  ASSERT_TRUE(opened);
  EXPECT_EQ(front(*opened).size(), opened->file().plan().front_size());
  EXPECT_EQ(read_bytes(dir_ / "made"), some_bytes(10));
}

}  // namespace
}  // namespace qsf::test
