// Files that are computed as they are read, compared with the files that the writer writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "converter/made/made_file.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;
using convert::MadeFile;

/// Every directory and GGUF of the tests' data.
std::vector<std::string> models() {
  std::vector<std::string> out{kSource + "/models/stories"};
  for (const auto& entry : fs::directory_iterator(kSource + "/tests/data")) {
    if (fs::exists(entry.path() / "config.json")) out.push_back(entry.path().generic_string());
  }
  for (const auto& entry : fs::directory_iterator(kSource + "/tests/data/gguf")) {
    out.push_back(entry.path().generic_string());
  }
  std::ranges::sort(out);
  EXPECT_GT(out.size(), 70u);
  return out;
}

/// Bytes that a host has read ahead. While `strict`, others cannot be read.
struct Ahead {
  struct Run {
    InputRun run;
    std::span<const std::byte> bytes;
  };
  std::vector<Run> runs = {};
  bool strict = false;

  Status read(const convert::Input& input, std::uint64_t offset, std::span<std::byte> into) const {
    for (const Run& each : runs) {
      if (each.run.input != input.number || offset < each.run.offset ||
          offset + into.size() > each.run.offset + each.run.size) {
        continue;
      }
      std::ranges::copy(each.bytes.subspan(offset - each.run.offset, into.size()), into.begin());
      return {};
    }
    if (strict) return make_error(ErrorCode::internal, "{} bytes at {} were not read ahead", into.size(), offset);
    return input.read_at(offset, into);
  }
};

struct Opened {
  std::unique_ptr<Ahead> ahead = std::make_unique<Ahead>();
  std::shared_ptr<convert::LocalFiles> files;
  std::optional<convert::LoadedModel> model;
};

Opened open(const std::string& path, bool with_tokenizer = true) {
  Opened out;
  out.files = std::make_shared<convert::LocalFiles>([ahead = out.ahead.get()](convert::Input input) {
    convert::Input wrapped = input;
    wrapped.read_at = [ahead, input](std::uint64_t offset, std::span<std::byte> into) {
      return ahead->read(input, offset, into);
    };
    return wrapped;
  });
  Result<convert::LoadedModel> model =
      convert::open_model(path, with_tokenizer, {}, convert::TernaryLayout::automatic, out.files);
  EXPECT_TRUE(model) << path << ": " << model.error().sentence;
  if (model) out.model.emplace(std::move(*model));
  return out;
}

Bytes written(const std::string& path, const convert::Options& options) {
  Bytes bytes;
  const Opened opened = open(path);
  if (!opened.model) return bytes;
  Result<FileSpec> spec = convert::plan_file(*opened.model, options);
  EXPECT_TRUE(spec) << path << ": " << spec.error().sentence;
  if (!spec) return bytes;
  const Result<std::uint64_t> size = write_file(std::move(*spec), qsf::test::memory_sink(bytes), {});
  EXPECT_TRUE(size) << path << ": " << size.error().sentence;
  return bytes;
}

Bytes read_run(const convert::LocalFiles& files, const InputRun& run) {
  Bytes bytes(run.size);
  std::ifstream file(files.path(run.input), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(run.offset));
  EXPECT_TRUE(file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())));
  return bytes;
}

/// Makes a segment as a host does, reading only the runs of each step. Returns the steps; 0 if one reads anything.
std::size_t make_segment(const MadeFile& file, std::uint32_t segment, std::uint64_t most, const Opened& opened,
                         Bytes& raw) {
  MadeFile::Step step;
  FilePlan::Room room;
  std::size_t n = 0;
  do {
    file.next_step(segment, most, step);
    if (step.anywhere) {
      EXPECT_TRUE(file.make_whole(segment, raw, room));
      return 0;
    }
    std::vector<Bytes> staged;
    std::uint64_t sum = 0;
    for (const MadeFile::Part& part : step.parts) {
      std::uint64_t at = part.at;
      for (const InputRun& run : std::span(step.runs).subspan(part.first_run, part.n_runs)) {
        Bytes bytes = read_run(*opened.files, run);
        if (part.from == RowsFrom::stored) {
          std::ranges::copy(bytes, raw.begin() + static_cast<std::ptrdiff_t>(at));
          at += run.size;
          continue;
        }
        sum += run.size;
        staged.push_back(std::move(bytes));
        opened.ahead->runs.push_back({run, staged.back()});
      }
    }
    EXPECT_EQ(sum, step.staged);
    EXPECT_LE(step.staged, std::max(2 * most, most + file.least_staged()));
    opened.ahead->strict = true;
    const Status made = file.make(segment, step, raw, room);
    EXPECT_TRUE(made) << made.error().sentence;
    opened.ahead->strict = false;
    opened.ahead->runs.clear();
    ++n;
  } while (!step.last);
  return n;
}

/// Makes a segment in slices, as threads do that copy from the page cache. Returns their number; 0 if there are none.
std::size_t make_slices(const MadeFile& file, std::uint32_t segment, std::uint64_t most, const Opened& opened,
                        Bytes& raw) {
  MadeFile::Slice slice;
  for (std::size_t n = 0; !slice.last; ++n) {
    if (!file.next_slice(segment, most, slice)) return 0;
    Bytes stored;
    for (const InputRun& run : slice.runs) {
      const Bytes bytes = read_run(*opened.files, run);
      stored.insert(stored.end(), bytes.begin(), bytes.end());
    }
    EXPECT_LE(stored.size(), file.slice_bytes(most));
    const Status made = file.make(segment, slice, stored, raw);
    EXPECT_TRUE(made) << made.error().sentence;
    if (slice.last) return n + 1;
  }
  return 0;
}

/// Reads any range of a made file, as a source of bytes does.
Bytes range(const MadeFile& file, const Bytes& front, std::uint64_t begin, std::uint64_t size) {
  Bytes out(size);
  FilePlan::Room room;
  const auto copy = [&](std::uint64_t at, std::span<const std::byte> bytes) {
    for (std::uint64_t i = 0; i < bytes.size(); ++i) {
      if (at + i >= begin && at + i < begin + size) out[at + i - begin] = bytes[i];
    }
  };
  copy(0, front);
  for (std::uint32_t i = 0; i < file.plan().segments().size(); ++i) {
    const SegmentEntry& s = file.plan().segments()[i];
    const std::uint64_t from = std::max(begin, s.offset), to = std::min(begin + size, s.offset + s.raw_size);
    if (from >= to) continue;
    Bytes part(to - from);
    EXPECT_TRUE(file.plan().read(i, from - s.offset, part, room));
    copy(from, part);
  }
  EXPECT_LE(room.strip.size() + room.part.size(), file.plan().room_bytes());
  return out;
}

Bytes part(const Bytes& all, std::uint64_t begin, std::uint64_t size) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(begin + size)};
}

struct Counts {
  std::size_t models = 0, stored = 0, reordered = 0, runs = 0, anywhere = 0, steps = 0, slices = 0;
};

void expect_same(const std::string& path, const convert::Options& options, Counts& counts) {
  SCOPED_TRACE(path);
  const Bytes expected = written(path, options);
  Opened opened = open(path);
  ASSERT_TRUE(opened.model);
  Result<std::unique_ptr<MadeFile>> made = MadeFile::plan(std::move(*opened.model), options);
  ASSERT_TRUE(made) << made.error().sentence;
  MadeFile& file = **made;
  ASSERT_EQ(file.plan().size(), expected.size());
  Bytes front = file.take_front();
  ASSERT_EQ(front.size(), file.plan().front_size());
  const std::uint64_t weights = expected.size() - front.size();
  for (const auto& [begin, size] : {std::pair<std::uint64_t, std::uint64_t>{0, weights},
                                    {1, std::min<std::uint64_t>(weights - 1, 4097)},
                                    {weights / 3, weights / 5},
                                    {weights - 1, 1},
                                    {weights / 7 * 3 + 5, weights / 7}}) {
    ASSERT_EQ(range(file, front, front.size() + begin, size), part(expected, front.size() + begin, size)) << begin;
  }
  EXPECT_EQ(file.n_unchecked(), file.plan().segments().size());
  for (std::uint32_t i = 0; i < file.plan().segments().size(); ++i) {
    const SegmentEntry& s = file.plan().segments()[i];
    Bytes raw(s.raw_size, std::byte{0xaa});
    counts.steps += make_segment(file, i, 3000, opened, raw);
    ASSERT_EQ(raw, part(expected, s.offset, s.raw_size)) << "segment " << i;
    for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{9000}, ~std::uint64_t{0}}) {
      std::ranges::fill(raw, std::byte{0x55});
      const std::size_t slices = make_slices(file, i, most, opened, raw);
      counts.slices += slices;
      if (slices == 0) continue;
      ASSERT_EQ(raw, part(expected, s.offset, s.raw_size)) << "segment " << i << " by " << most;
    }
    raw = part(expected, s.offset, s.raw_size);
    ASSERT_TRUE(file.seal(i, raw));
  }
  MadeFile::Step step;
  for (std::uint32_t i = 0; i < file.plan().segments().size(); ++i) {
    step.parts.clear();
    file.next_step(i, ~0ull, step);
    for (const MadeFile::Part& each : step.parts) {
      ++(each.from == RowsFrom::stored      ? counts.stored
         : each.from == RowsFrom::reordered ? counts.reordered
         : each.from == RowsFrom::runs      ? counts.runs
                                            : counts.anywhere);
    }
  }
  ++counts.models;

  // With every checksum the front is the file's, and is that of a made file again.
  EXPECT_EQ(file.n_unchecked(), 0u);
  std::vector<std::uint8_t> checked;
  const Result<Bytes> tables = file.tables(checked);
  ASSERT_TRUE(tables) << tables.error().sentence;
  std::ranges::copy(*tables, front.begin());
  EXPECT_EQ(front, part(expected, 0, front.size()));
  Opened again = open(path, false);
  ASSERT_TRUE(again.model);
  const convert::KeptFront kept{front, checked, expected.size()};
  const Result<std::unique_ptr<MadeFile>> restored = MadeFile::restore(std::move(*again.model), options, kept);
  ASSERT_TRUE(restored) << restored.error().sentence;
  EXPECT_EQ(range(**restored, front, 0, expected.size()), expected);
  EXPECT_EQ((*restored)->n_unchecked(), 0u);
}

TEST(Made, BytesAreThoseOfTheWriter) {
  Counts counts;
  for (const std::string& path : models()) expect_same(path, {}, counts);
  EXPECT_GT(counts.models, 70u);
  EXPECT_GT(counts.stored, 0u);
  EXPECT_GT(counts.reordered, 0u);
  EXPECT_GT(counts.slices, 1000u);
  EXPECT_GT(counts.runs, counts.anywhere);
  EXPECT_GT(counts.anywhere, 0u);  // transposed matrices
}

TEST(Made, BytesAreThoseOfTheWriterInOtherTypes) {
  Counts counts;
  for (const char* type : {"f16", "q4_0", "q4_k", "8bit", "iq4_nl"}) {
    convert::Options options;
    options.matrices = find_format(std::string_view(type))->id;
    for (const char* name : {"llama.gguf", "qwen3-moe.gguf"}) {
      expect_same(kSource + "/tests/data/gguf/" + name, options, counts);
    }
  }
}

TEST(Made, BytesOfLargerModelsAreThoseOfTheWriterInOtherTypes) {
  Counts counts;
  for (const char* type : {"f16", "q4_k"}) {
    convert::Options options;
    options.matrices = find_format(std::string_view(type))->id;
    for (const char* name : {"/models/stories", "/tests/data/gpt2", "/tests/data/mixtral"}) {
      expect_same(kSource + name, options, counts);
    }
    options.segment_bytes = 300'000;  // aligned
    expect_same(kSource + "/models/stories", options, counts);
  }
}

// A matrix of a GGUF in one of its own types is one run for each segment, and nothing is staged.
TEST(Made, CarriedRowsAreOneRunOfTheFile) {
  const Folder folder;
  const Result<convert::LoadedModel> model = convert::open_model(kSource + "/models/stories");
  ASSERT_TRUE(model);
  convert::Options options;
  options.gguf = true;
  for (const char* type : {"q4_0", "q8_0", "f16", "q6_k"}) {
    options.matrices = find_format(std::string_view(type))->id;
    ASSERT_TRUE(convert_file(*model, options, folder.path("m.gguf")));
    Opened opened = open(folder.path("m.gguf"));
    ASSERT_TRUE(opened.model);
    const Result<std::unique_ptr<MadeFile>> made = MadeFile::plan(std::move(*opened.model), {});
    ASSERT_TRUE(made) << made.error().sentence;
    const FilePlan& plan = (*made)->plan();
    MadeFile::Step step;
    for (std::uint32_t i = 0; i < plan.segments().size(); ++i) {
      const std::optional<FilePlan::Rows> rows = plan.rows_of(i);
      if (!rows || plan.tensors()[rows->tensor].format != *options.matrices) continue;
      const Role role = plan.tensors()[rows->tensor].role;
      if (role == Role::attn_q || role == Role::attn_k) continue;  // whose rows are in another order
      step.parts.clear();
      (*made)->next_step(i, 0, step);
      ASSERT_EQ(step.parts.size(), 1u);
      EXPECT_EQ(step.parts[0].from, RowsFrom::stored) << type;
      EXPECT_EQ(step.runs.size(), 1u);
      EXPECT_EQ(step.staged, 0u);
      EXPECT_TRUE(step.last);
      EXPECT_EQ(step.runs[0].size, step.parts[0].size);
    }
  }
}

TEST(Made, AFrontOfAnotherModelIsRefused) {
  const std::string llama = kSource + "/tests/data/gguf/llama.gguf", qwen = kSource + "/tests/data/gguf/qwen2.gguf";
  Opened opened = open(llama);
  ASSERT_TRUE(opened.model);
  const Result<std::unique_ptr<MadeFile>> made = MadeFile::plan(std::move(*opened.model), {});
  ASSERT_TRUE(made);
  const Bytes front = (*made)->take_front();
  const std::uint64_t size = (*made)->plan().size();
  const std::vector<std::uint8_t> checked((*made)->plan().segments().size(), 0);
  const auto restored = [&](const std::string& path, const Bytes& bytes, std::uint64_t of, std::size_t n) {
    Opened again = open(path, false);
    const std::vector<std::uint8_t> known(n, 0);
    return MadeFile::restore(std::move(*again.model), {}, {bytes, known, of});
  };
  EXPECT_TRUE(restored(llama, front, size, checked.size()));
  EXPECT_FALSE(restored(qwen, front, size, checked.size()));
  EXPECT_FALSE(restored(llama, front, size + 1, checked.size()));
  EXPECT_FALSE(restored(llama, front, size, checked.size() + 1));
  for (const std::uint64_t at : {0ull, 20ull, 105ull, 130ull, 300ull, front.size() - 100ull}) {
    Bytes damaged = front;
    damaged[at] ^= std::byte{1};
    EXPECT_FALSE(restored(llama, damaged, size, checked.size())) << at;
  }
  EXPECT_FALSE(restored(llama, part(front, 0, front.size() / 2), size, checked.size()));
}

TEST(Made, BytesThatChangedWithoutASignAreFound) {
  Opened opened = open(kSource + "/tests/data/gguf/llama.gguf");
  ASSERT_TRUE(opened.model);
  Result<std::unique_ptr<MadeFile>> made = MadeFile::plan(std::move(*opened.model), {});
  ASSERT_TRUE(made);
  MadeFile& file = **made;
  Bytes front = file.take_front();
  Bytes raw(file.plan().segments()[0].raw_size);
  make_segment(file, 0, 1 << 20, opened, raw);
  ASSERT_TRUE(file.seal(0, raw));
  std::vector<std::uint8_t> checked;
  const Result<Bytes> tables = file.tables(checked);
  ASSERT_TRUE(tables);
  std::ranges::copy(*tables, front.begin());
  EXPECT_EQ(std::ranges::count(checked, 1), 1);
  Opened again = open(kSource + "/tests/data/gguf/llama.gguf", false);
  Result<std::unique_ptr<MadeFile>> later =
      MadeFile::restore(std::move(*again.model), {}, {front, checked, file.plan().size()});
  ASSERT_TRUE(later) << later.error().sentence;
  raw[raw.size() / 2] ^= std::byte{1};
  EXPECT_EQ(error_of((*later)->seal(0, raw)).code, ErrorCode::bad_checksum);
  raw[raw.size() / 2] ^= std::byte{1};
  EXPECT_TRUE((*later)->seal(0, raw));
  raw[0] ^= std::byte{1};
  EXPECT_TRUE((*later)->seal(0, raw));  // a segment is checked once
}

}  // namespace
}  // namespace qsf::test
