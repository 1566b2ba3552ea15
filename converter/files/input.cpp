#include "converter/files/input.h"

#include <algorithm>
#include <cstring>

#include "qsf/base/try.h"

namespace qsf::convert {

namespace {

Status check_range(const Input& input, std::uint64_t offset, std::uint64_t size) {
  if (offset <= input.size && size <= input.size - offset) return {};
  return make_error(ErrorCode::truncated, "{:.100}: {} bytes from {} on are not there, it has {}", input.name, size,
                    offset, input.size);
}

}  // namespace

Status Input::read(std::uint64_t offset, std::span<std::byte> into) const {
  QSF_TRY(check_range(*this, offset, into.size()));
  return into.empty() ? Status() : read_at(offset, into);
}

Input input_of(std::string name, std::span<const std::byte> bytes) {
  const auto copy = [bytes](std::uint64_t offset, std::span<std::byte> into) -> Status {
    std::memcpy(into.data(), bytes.data() + offset, into.size());
    return {};
  };
  return {std::move(name), bytes.size(), copy};
}

Result<std::vector<std::byte>> read_range(const Input& input, std::uint64_t offset, std::uint64_t size) {
  QSF_TRY(check_range(input, offset, size));
  std::vector<std::byte> bytes(size);
  QSF_TRY(input.read(offset, bytes));
  return bytes;
}

Result<std::vector<std::byte>> read_head(const Input& input, std::uint64_t size) {
  return read_range(input, 0, std::min(size, input.size));
}

}  // namespace qsf::convert
