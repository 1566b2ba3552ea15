// Conversions in steps, from inputs that are read by ranges.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/types/written_type.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

std::size_t n_files(const Folder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

TEST(Steps, AreOneSegmentEach) {
  const Folder folder;
  const Result<convert::LoadedModel> model = convert::open_model(kLlama);
  ASSERT_TRUE(model);
  Result<convert::Conversion> conversion = convert::Conversion::begin(*model, {}, folder.path("a.qsf"));
  ASSERT_TRUE(conversion) << conversion.error().sentence;
  std::size_t n_segments = 0;
  for (std::uint64_t last = 0;;) {
    const Result<convert::Conversion::Step> step = conversion->step();
    ASSERT_TRUE(step) << step.error().sentence;
    if (*step == convert::Conversion::Step::done) break;
    EXPECT_FALSE(fs::exists(folder.path("a.qsf")));
    EXPECT_LE(conversion->progress().done - last, kMaxSegmentRaw);
    n_segments += conversion->progress().done != last ? 1 : 0;
    last = conversion->progress().done;
    EXPECT_LE(last, conversion->progress().total);
  }
  EXPECT_EQ(conversion->progress().done, conversion->progress().total);
  const Written written = read_written(folder.path("a.qsf"));
  EXPECT_EQ(n_segments, written.tables.segments.size());
  EXPECT_EQ(n_files(folder), 1u);
}

TEST(Steps, GivenUpTheyLeaveNothing) {
  const Folder folder;
  write_text(folder.path("a.qsf"), "earlier");
  const Result<convert::LoadedModel> model = convert::open_model(kLlama);
  ASSERT_TRUE(model);
  for (int n_steps = 0; n_steps < 5; ++n_steps) {
    Result<convert::Conversion> conversion = convert::Conversion::begin(*model, {}, folder.path("a.qsf"));
    ASSERT_TRUE(conversion);
    for (int i = 0; i < n_steps; ++i) ASSERT_TRUE(conversion->step());
  }
  EXPECT_EQ(n_files(folder), 1u);
  EXPECT_EQ(read_bytes(folder.path("a.qsf")).size(), 7u);
}

/// Threads that are started for one call and claim its tasks in no particular order.
template <std::uint32_t kThreads>
Workers started() {
  const auto run = [](void*, void (*task)(void*, std::uint32_t), void* context, std::uint32_t n) {
    std::atomic<std::uint32_t> next{0};
    const auto work = [&] {
      for (std::uint32_t i = next++; i < n; i = next++) task(context, i);
    };
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  };
  return {run, nullptr, kThreads};
}

TEST(Steps, WriteTheSameBytesWhateverThreadsThereAre) {
  const Folder folder;
  for (const std::string_view type : {"8bit", "q4_k", "iq4_nl", "iq3_xxs"}) {
    const bool gguf = type == "iq3_xxs";  // in a file whose rows must be whole blocks
    const Result<convert::LoadedModel> model = convert::open_model(gguf ? kSource + "/models/stories" : kLlama);
    ASSERT_TRUE(model);
    for (const bool search : {false, true}) {
      std::vector<Bytes> written;
      for (const Workers& workers : {Workers{}, started<2>(), started<5>()}) {
        convert::Options options;
        options.gguf = gguf;
        if (gguf) {  // one small matrix
          options.matrices = ggml_type(8);
          options.types[{1, Role::attn_k}] = *convert::written_id(type);
        } else {
          options.matrices = find_format(type)->id;
        }
        options.search = search;
        options.workers = workers;
        Result<convert::Conversion> conversion = convert::Conversion::begin(*model, options, folder.path("a.qsf"));
        ASSERT_TRUE(conversion) << conversion.error().sentence;
        Result<convert::Conversion::Step> step = convert::Conversion::Step::working;
        while (step && *step != convert::Conversion::Step::done) step = conversion->step();
        ASSERT_TRUE(step) << step.error().sentence;
        written.push_back(read_bytes(folder.path("a.qsf")));
      }
      EXPECT_EQ(written[0], written[1]) << type << " " << search;
      EXPECT_EQ(written[0], written[2]) << type << " " << search;
    }
  }
}

/// A file in memory that notes the ranges it was asked for.
struct Noted {
  Bytes bytes;
  std::uint64_t longest = 0, in_all = 0;

  convert::Input input(const std::string& name) {
    const auto read = [this](std::uint64_t offset, std::span<std::byte> into) -> Status {
      longest = std::max<std::uint64_t>(longest, into.size());
      in_all += into.size();
      std::memcpy(into.data(), bytes.data() + offset, into.size());
      return {};
    };
    return {name, bytes.size(), read};
  }
};

TEST(Steps, ReadFromAnywhereInSmallPieces) {
  std::map<std::string, Noted> files;
  for (const auto& entry : fs::directory_iterator(kLlama)) {
    files[entry.path().filename().string()].bytes = read_bytes(entry.path().string());
  }
  convert::ModelLocation place;
  place.name = "llama";
  place.folder.name = "memory";
  place.folder.find = [&](const std::string& name) -> Result<std::optional<convert::Input>> {
    const auto at = files.find(name);
    if (at == files.end()) return std::optional<convert::Input>();
    return std::optional(at->second.input(name));
  };
  const Result<convert::LoadedModel> model = convert::open_place(place, true);
  ASSERT_TRUE(model) << model.error().sentence;
  const Folder folder;
  ASSERT_TRUE(convert_file(*model, {}, folder.path("a.qsf")));
  EXPECT_EQ(read_bytes(folder.path("a.qsf")), convert(kLlama, {}).file);
  const Noted& weights = files.at("model.safetensors");
  EXPECT_LE(weights.longest, 256u << 10);
  EXPECT_LT(weights.longest, weights.bytes.size());
  EXPECT_LE(weights.in_all, weights.bytes.size() + weights.bytes.size() / 8);  // no row twice
}

TEST(Inputs, GiveRangesWithinTheirSizeOnly) {
  const Bytes bytes(10, std::byte{7});
  const convert::Input input = convert::input_of("ten", bytes);
  Bytes into(4);
  EXPECT_TRUE(input.read(6, into));
  EXPECT_EQ(into, Bytes(4, std::byte{7}));
  EXPECT_TRUE(input.read(10, {}));
  for (const std::uint64_t offset : {7ull, 11ull, ~0ull, ~0ull - 3}) {
    const Status status = input.read(offset, into);
    ASSERT_FALSE(status) << offset;
    EXPECT_EQ(error_of(status).code, ErrorCode::truncated);
    EXPECT_FALSE(convert::read_range(input, offset, 4));
  }
  EXPECT_FALSE(convert::read_range(input, 0, ~0ull));
  EXPECT_EQ(convert::read_head(input, 64)->size(), 10u);
}

// The keys of a GGUF may end anywhere; more is read until they do.
TEST(Inputs, AGgufFrontLongerThanTheFirstPiece) {
  GgufWriter writer;
  writer.text("a", std::string(3 << 20, 'a'));
  writer.text("b", "end");
  Noted file{writer.file()};
  file.bytes.resize(file.bytes.size() + (40 << 20));
  const Result<convert::Gguf> gguf = convert::read_gguf(file.input("x.gguf"));
  ASSERT_TRUE(gguf) << gguf.error().sentence;
  EXPECT_EQ(gguf->text("b"), "end");
  EXPECT_LE(file.longest, 16u << 20);
}

}  // namespace
}  // namespace qsf::test
