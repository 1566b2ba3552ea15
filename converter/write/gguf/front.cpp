#include "converter/write/gguf/front.h"

#include "qsf/base/align.h"
#include "qsf/base/bytes.h"
#include "qsf/file/layout.h"

namespace qsf::convert {
namespace {

constexpr std::uint32_t kVersion = 3;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  store_le(&out[at], value);
}

void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  put_bytes(out, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

void GgufFront::begin(const std::string& key, GgufType type) {
  keys_.insert(key);
  put_text(values_, key);
  put(values_, static_cast<std::uint32_t>(type));
}

template <class T>
void GgufFront::scalar(const std::string& key, GgufType type, T value) {
  begin(key, type);
  put(values_, value);
}

template <class T>
void GgufFront::list(const std::string& key, GgufType element, std::span<const T> values) {
  begin(key, GgufType::array);
  put(values_, static_cast<std::uint32_t>(element));
  put(values_, std::uint64_t{values.size()});
  for (const T value : values) put(values_, value);
}

template void GgufFront::scalar(const std::string&, GgufType, std::uint32_t);
template void GgufFront::scalar(const std::string&, GgufType, std::uint8_t);
template void GgufFront::scalar(const std::string&, GgufType, float);
template void GgufFront::list(const std::string&, GgufType, std::span<const std::int32_t>);
template void GgufFront::list(const std::string&, GgufType, std::span<const float>);

void GgufFront::text(const std::string& key, std::string_view value) {
  begin(key, GgufType::text);
  put_text(values_, value);
}

void GgufFront::texts(const std::string& key, std::span<const std::string> values) {
  begin(key, GgufType::array);
  put(values_, static_cast<std::uint32_t>(GgufType::text));
  put(values_, std::uint64_t{values.size()});
  for (const std::string& value : values) put_text(values_, value);
}

void GgufFront::bytes(const std::string& key, std::string_view values) {
  begin(key, GgufType::array);
  put(values_, static_cast<std::uint32_t>(GgufType::u8));
  put(values_, std::uint64_t{values.size()});
  put_bytes(values_, std::as_bytes(std::span(values.data(), values.size())));
}

void GgufFront::tensor(std::string_view name, std::span<const std::uint64_t> shape, std::uint32_t type,
                       std::uint64_t offset) {
  put_text(tensors_, name);
  put(tensors_, static_cast<std::uint32_t>(shape.size()));
  for (std::size_t d = shape.size(); d-- > 0;) put(tensors_, shape[d]);
  put(tensors_, type);
  put(tensors_, offset);
  ++n_tensors_;
}

std::vector<std::byte> GgufFront::whole() const {
  std::vector<std::byte> out;
  put(out, tag("GGUF"));
  put(out, kVersion);
  put(out, n_tensors_);
  put(out, std::uint64_t{keys_.size()});
  put_bytes(out, values_);
  put_bytes(out, tensors_);
  out.resize(align_up(out.size(), kGgufAlignment));
  return out;
}

}  // namespace qsf::convert
