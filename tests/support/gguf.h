// Writing GGUF files, from the format's description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace qsf::test {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& out, T value) {
  out.resize(out.size() + sizeof value);
  std::memcpy(out.data() + out.size() - sizeof value, &value, sizeof value);
}
inline void put_text(Bytes& out, const std::string& text) {
  put<std::uint64_t>(out, text.size());
  out.resize(out.size() + text.size());
  std::memcpy(out.data() + out.size() - text.size(), text.data(), text.size());
}

enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q5_0 = 6,
  q8_0 = 8,
  q8_1 = 9,
  q4_k = 12,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i16 = 25,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  i2_s = 36,
  mxfp4 = 39,
  nvfp4 = 40,
  q2_0 = 42,
};

/// Tensors come with their data, or with its size only: then the data follows head(), in the same order, each tensor
/// padded to kGgufAlignment.
inline constexpr std::uint64_t kGgufAlignment = 32;

class GgufWriter {
 public:
  void u16(const std::string& name, std::uint16_t value) { scalar(name, 2, value); }
  void u32(const std::string& name, std::uint32_t value) { scalar(name, 4, value); }
  void f32(const std::string& name, float value) { scalar(name, 6, value); }
  void flag(const std::string& name, bool value) { scalar(name, 7, static_cast<std::uint8_t>(value)); }
  void text(const std::string& name, const std::string& value) {
    key(name, kText);
    put_text(values_, value);
  }
  void texts(const std::string& name, const std::vector<std::string>& values) {
    array(name, kText, values.size());
    for (const std::string& value : values) put_text(values_, value);
  }
  void f32s(const std::string& name, const std::vector<float>& values) { scalars(name, 6, values); }
  void i32s(const std::string& name, const std::vector<std::int32_t>& values) { scalars(name, 5, values); }

  /// Innermost extent first, as GGUF has them.
  void tensor(const std::string& name, GgmlType type, const std::vector<std::uint64_t>& shape, Bytes data) {
    const std::uint64_t size = data.size();
    tensors_.push_back({name, type, shape, size, std::move(data)});
  }
  void tensor(const std::string& name, GgmlType type, const std::vector<std::uint64_t>& shape, std::uint64_t size) {
    tensors_.push_back({name, type, shape, size, {}});
  }

  /// Every tensor is written with four extents.
  void pad_shapes() { padded_ = true; }

  /// All that lies before the first tensor's data.
  Bytes head() const {
    Bytes out;
    for (const char c : {'G', 'G', 'U', 'F'}) put(out, c);
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, tensors_.size());
    put<std::uint64_t>(out, n_values_);
    out.insert(out.end(), values_.begin(), values_.end());
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      put_text(out, tensor.name);
      std::vector<std::uint64_t> shape = tensor.shape;
      if (padded_) shape.resize(4, 1);
      put(out, static_cast<std::uint32_t>(shape.size()));
      for (const std::uint64_t extent : shape) put(out, extent);
      put(out, tensor.type);
      put(out, offset);
      offset += aligned(tensor.size);
    }
    out.resize(aligned(out.size()));
    return out;
  }
  /// The whole file, when every tensor came with its data.
  Bytes file() const {
    Bytes out = head();
    for (const Tensor& tensor : tensors_) {
      out.insert(out.end(), tensor.data.begin(), tensor.data.end());
      out.resize(aligned(out.size()));
    }
    return out;
  }

  /// Bytes behind head().
  std::uint64_t data_size() const {
    std::uint64_t size = 0;
    for (const Tensor& tensor : tensors_) size += aligned(tensor.size);
    return size;
  }
  /// The same as `n` files: every n-th tensor in each, the values in the first.
  std::vector<GgufWriter> parts(std::uint16_t n) const {
    std::vector<GgufWriter> out(n);
    out[0].values_ = values_;
    out[0].n_values_ = n_values_;
    for (std::uint16_t i = 0; i < n; ++i) {
      out[i].u16("split.no", i);
      out[i].u16("split.count", n);
      out[i].scalar("split.tensors.count", 5, static_cast<std::int32_t>(tensors_.size()));
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) out[i % n].tensors_.push_back(tensors_[i]);
    return out;
  }

  /// Returns the writer of a sound file with the usual alignment.
  static GgufWriter of(const Bytes& file) {
    GgufWriter out;
    std::size_t at = 8;
    const auto n_tensors = get<std::uint64_t>(file, at), n_values = get<std::uint64_t>(file, at);
    const std::size_t begin = at;
    for (std::uint64_t i = 0; i < n_values; ++i) {
      skip_text(file, at);
      const auto type = get<std::uint32_t>(file, at);
      skip_value(file, at, type);
    }
    out.values_.assign(file.begin() + offset(begin), file.begin() + offset(at));
    out.n_values_ = n_values;
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < n_tensors; ++i) {
      Tensor tensor;
      const auto length = get<std::uint64_t>(file, at);
      tensor.name.assign(reinterpret_cast<const char*>(file.data() + at), length);
      at += length;
      tensor.shape.resize(get<std::uint32_t>(file, at));
      for (std::uint64_t& extent : tensor.shape) extent = get<std::uint64_t>(file, at);
      tensor.type = get<GgmlType>(file, at);
      offsets.push_back(get<std::uint64_t>(file, at));
      out.tensors_.push_back(std::move(tensor));
    }
    const std::uint64_t data = aligned(at);
    offsets.push_back(file.size() - data);
    for (std::size_t i = 0; i < n_tensors; ++i) {  // with its padding
      out.tensors_[i].size = offsets[i + 1] - offsets[i];
      out.tensors_[i].data.assign(file.begin() + offset(data + offsets[i]),
                                  file.begin() + offset(data + offsets[i + 1]));
    }
    return out;
  }

  static std::uint64_t aligned(std::uint64_t size) {
    return (size + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  }

 private:
  static constexpr std::uint32_t kText = 8, kArray = 9;
  struct Tensor {
    std::string name;
    GgmlType type = GgmlType::f32;
    std::vector<std::uint64_t> shape;
    std::uint64_t size = 0;
    Bytes data;
  };

  static std::ptrdiff_t offset(std::uint64_t at) { return static_cast<std::ptrdiff_t>(at); }
  template <class T>
  static T get(const Bytes& from, std::size_t& at) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  static void skip_text(const Bytes& file, std::size_t& at) {
    const auto length = get<std::uint64_t>(file, at);
    at += length;
  }
  static void skip_value(const Bytes& file, std::size_t& at, std::uint32_t type) {
    constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kText) {
      skip_text(file, at);
    } else if (type == kArray) {
      const auto of_each = get<std::uint32_t>(file, at);
      for (auto n = get<std::uint64_t>(file, at); n > 0; --n) skip_value(file, at, of_each);
    } else {
      at += kSizes[type];
    }
  }

  void key(const std::string& name, std::uint32_t type) {
    put_text(values_, name);
    put(values_, type);
    ++n_values_;
  }
  void array(const std::string& name, std::uint32_t type, std::uint64_t n) {
    key(name, kArray);
    put(values_, type);
    put(values_, n);
  }
  template <class T>
  void scalar(const std::string& name, std::uint32_t type, T value) {
    key(name, type);
    put(values_, value);
  }
  template <class T>
  void scalars(const std::string& name, std::uint32_t type, const std::vector<T>& values) {
    array(name, type, values.size());
    for (const T value : values) put(values_, value);
  }

  Bytes values_;
  std::uint64_t n_values_ = 0;
  bool padded_ = false;
  std::vector<Tensor> tensors_;
};

}  // namespace qsf::test
