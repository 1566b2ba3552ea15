// Every number of every model that is here, changed to what no model has: the conversion ends, and takes no more memory
// for it than for the model as it is.
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <span>

#include "converter/allocations.h"
#include "converter/model/sizes.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/base/bytes.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::array kNumbers{0.0, -1.0, 0x1p31, 0x1p63, 1e308};
#ifdef QSF_SANITIZED  // each place gets two of them, because all take minutes
constexpr std::size_t kStep = 3;
#else
constexpr std::size_t kStep = 1;
#endif

/// As people write it: a whole number where it is one.
json written(double number) {
  if (number == 0x1p63) return std::uint64_t{1} << 63;
  if (std::abs(number) < 0x1p53) return static_cast<std::int64_t>(number);
  return number;
}

convert::ModelLocation folder_of(const std::map<std::string, Bytes>& files) {
  convert::ModelLocation place;
  place.name = "model";
  place.folder.name = "model";
  place.folder.find = [&files](const std::string& name) -> Result<std::optional<convert::Input>> {
    const auto at = files.find(name);
    if (at == files.end()) return std::optional<convert::Input>();
    return std::optional(convert::input_of(name, at->second));
  };
  return place;
}

/// Everything that comes before the weights are read.
Status plan(const convert::ModelLocation& place) {
  const Result<convert::LoadedModel> model = convert::open_place(place, true);
  if (!model) return model.error();
  const Result<FileSpec> file = convert::plan_file(*model, {});
  return file ? Status() : Status(file.error());
}

/// Plans the model, and then with each of the numbers that `change(number)` puts in the place of its `n_places`.
class Sweep {
 public:
  /// The memory that planning may take: twice that of the unchanged model, and what an error's way takes.
  Sweep(std::string name, const convert::ModelLocation& place) : name_(std::move(name)) {
    const AllocationLimit limit(name_, 256u << 20);
    const Status status = plan(place);
    EXPECT_TRUE(status) << name_ << ": " << status.error().sentence;
    most_ = 2 * limit.bytes() + (1u << 20);
  }

  void expect_end(const convert::ModelLocation& place, const std::string& key, double number) {
    const std::string what = name_ + ": " + key + " = " + written(number).dump();
    const AllocationLimit limit(what, most_);
    const Status status = plan(place);
    ++n_planned_;
    if (status) return;
    ++n_refused_;
    EXPECT_NE(error_of(status).code, ErrorCode::internal) << what << ": " << status.error().sentence;
    EXPECT_NE(error_of(status).sentence[0], '\0') << what;
    // A whole number is shown as people write it: "is 0; it must be", also if the file's reader has it as a float.
    EXPECT_EQ(std::string_view(error_of(status).sentence).find(".0; "), std::string_view::npos)
        << what << ": " << error_of(status).sentence;
  }

  std::size_t n_planned() const { return n_planned_; }
  std::size_t n_refused() const { return n_refused_; }

 private:
  std::string name_;
  std::uint64_t most_ = 0;
  std::size_t n_planned_ = 0, n_refused_ = 0;
};

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Counts, ThatNoModelHasEndTheConversionOfAFolder) {
  std::size_t n_models = 0, n_places = 0;
  for (const auto& entry : fs::directory_iterator(kSource + "/tests/data")) {
    std::map<std::string, Bytes> files;
    if (!fs::exists(entry.path() / "config.json")) continue;
    for (const auto& file : fs::recursive_directory_iterator(entry.path())) {
      if (file.is_directory()) continue;
      files[fs::relative(file.path(), entry.path()).generic_string()] = read_bytes(file.path().string());
    }
    ++n_models;
    const convert::ModelLocation place = folder_of(files);
    const json config = read_config(entry.path().string());
    Sweep sweep(entry.path().filename().string(), place);
    const json values = config.flatten();
    for (const auto& [pointer, value] : values.items()) {
      if (!value.is_number()) continue;
      for (std::size_t i = n_places++ % kStep; i < kNumbers.size(); i += kStep) {
        const double number = kNumbers[i];
        json changed = config;
        changed[json::json_pointer(pointer)] = written(number);
        files["config.json"] = bytes_of(changed.dump());
        sweep.expect_end(place, pointer, number);
      }
    }
    EXPECT_GT(sweep.n_planned(), 5 * kNumbers.size() / kStep) << entry.path();
    EXPECT_GT(sweep.n_refused(), sweep.n_planned() / 3) << entry.path();
  }
  EXPECT_GT(n_models, 40u);
}

/// A GGUF file by its parts, as the format's description has them.
class Keys {
 public:
  struct Entry {
    std::string key;
    std::uint32_t type = 0, element = 0;
    std::uint64_t count = 1;
    std::span<const std::byte> whole, value;  // with the key; of an array its elements
  };

  explicit Keys(const Bytes& file) : file_(file) {
    at_ = 8;
    n_tensors_ = take<std::uint64_t>();
    entries_.resize(take<std::uint64_t>());
    for (Entry& entry : entries_) {
      const std::size_t begin = at_;
      entry.key = text();
      entry.type = entry.element = take<std::uint32_t>();
      if (entry.type == kArray) {
        entry.element = take<std::uint32_t>();
        entry.count = take<std::uint64_t>();
      }
      const std::size_t from = at_;
      for (std::uint64_t i = 0; entry.element == kText && i < entry.count; ++i) text();
      if (entry.element != kText) at_ += kSizes[entry.element] * entry.count;
      entry.value = std::span(file_).subspan(from, at_ - from);
      entry.whole = std::span(file_).subspan(begin, at_ - begin);
    }
    tensors_ = at_;
    for (std::uint64_t i = 0; i < n_tensors_; ++i) {
      text();
      at_ += 8 * take<std::uint32_t>() + 12;
    }
    tensors_end_ = at_;
  }

  std::span<const Entry> entries() const { return entries_; }
  static bool has_numbers(const Entry& entry) { return entry.element != kText && entry.element != kBool; }
  static double number(const Entry& entry, std::uint64_t i) {
    const std::byte* const at = &entry.value[i * kSizes[entry.element]];
    switch (entry.element) {
      case 0:
        return load_le<std::uint8_t>(at);
      case 1:
        return load_le<std::int8_t>(at);
      case 2:
        return load_le<std::uint16_t>(at);
      case 3:
        return load_le<std::int16_t>(at);
      case 4:
        return load_le<std::uint32_t>(at);
      case 5:
        return load_le<std::int32_t>(at);
      case 6:
        return double{load_le<float>(at)};
      default:
        return load_le<double>(at);
    }
  }

  /// The bytes before the tensors' with a number of one entry in another's place, which may be of a wider type.
  Bytes front_with(const Entry& changed, std::uint64_t place, double other) const {
    Bytes out(file_.begin(), file_.begin() + 24);
    for (const Entry& entry : entries_) {
      if (&entry != &changed) {
        out.insert(out.end(), entry.whole.begin(), entry.whole.end());
        continue;
      }
      put_text(out, entry.key);
      if (entry.type == kArray) {
        put(out, kArray);
        put(out, kDouble);
        put(out, entry.count);
        for (std::uint64_t i = 0; i < entry.count; ++i) put(out, i == place ? other : number(entry, i));
      } else if (other == 0x1p63) {
        put(out, std::uint32_t{10});
        put(out, std::uint64_t{1} << 63);
      } else if (other > 0x1p63) {
        put(out, kDouble);
        put(out, other);
      } else {
        put(out, std::uint32_t{11});
        put(out, static_cast<std::int64_t>(other));
      }
    }
    out.insert(out.end(), file_.begin() + tensors_, file_.begin() + tensors_end_);
    out.resize(GgufWriter::aligned(out.size()));
    return out;
  }
  /// Where the tensors' bytes begin.
  std::size_t data() const { return GgufWriter::aligned(static_cast<std::uint64_t>(tensors_end_)); }

 private:
  static constexpr std::uint32_t kBool = 7, kText = 8, kArray = 9, kDouble = 12;
  static constexpr std::array<std::size_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

  template <class T>
  T take() {
    const T value = load_le<T>(&file_[at_]);
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = take<std::uint64_t>();
    at_ += size;
    return {reinterpret_cast<const char*>(&file_[at_ - size]), size};
  }

  const Bytes& file_;
  std::size_t at_ = 0;
  std::uint64_t n_tensors_ = 0;
  std::vector<Entry> entries_;
  std::ptrdiff_t tensors_ = 0, tensors_end_ = 0;
};

/// A file of two pieces.
convert::ModelLocation file_of(const Bytes& front, std::span<const std::byte> data) {
  convert::ModelLocation place;
  place.name = "model";
  place.head.assign(front.begin(), front.begin() + convert::kHeadBytes);
  place.folder.find = [](const std::string&) -> Result<std::optional<convert::Input>> {
    return std::optional<convert::Input>();
  };
  const auto read = [&front, data](std::uint64_t offset, std::span<std::byte> into) -> Status {
    for (const std::span<const std::byte> piece : {std::span<const std::byte>(front), data}) {
      if (offset < piece.size() && !into.empty()) {
        const std::size_t n = std::min(into.size(), piece.size() - offset);
        std::memcpy(into.data(), &piece[offset], n);
        into = into.subspan(n);
        offset += n;
      }
      offset -= std::min<std::uint64_t>(offset, piece.size());
    }
    return {};
  };
  place.file = convert::Input{"model.gguf", front.size() + data.size(), read};
  return place;
}

TEST(Counts, ThatNoModelHasEndTheConversionOfAGguf) {
  std::size_t n_models = 0;
  for (const auto& entry : fs::directory_iterator(kSource + "/tests/data/gguf")) {
    const Bytes file = read_bytes(entry.path().string());
    const Keys keys(file);
    const std::span<const std::byte> data = std::span(file).subspan(keys.data());
    Bytes front(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(keys.data()));
    const convert::ModelLocation place = file_of(front, data);
    Sweep sweep(entry.path().filename().string(), place);
    ++n_models;
    for (const Keys::Entry& changed : keys.entries()) {
      if (!Keys::has_numbers(changed)) continue;
      constexpr std::uint64_t kShort = 16;  // of longer lists, which are a vocabulary's, the first and the last
      for (std::uint64_t i = 0; i<changed.count; i += changed.count> kShort ? changed.count - 1 : 1) {
        for (const double number : kNumbers) {
          front = keys.front_with(changed, i, number);
          sweep.expect_end(file_of(front, data), changed.key + "[" + std::to_string(i) + "]", number);
        }
      }
    }
    EXPECT_GT(sweep.n_planned(), 5 * kNumbers.size()) << entry.path();
    EXPECT_GT(sweep.n_refused(), sweep.n_planned() / 3) << entry.path();
  }
  EXPECT_GT(n_models, 35u);
}

}  // namespace
}  // namespace qsf::test
