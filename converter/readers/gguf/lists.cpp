// Numbers of layers that GGUF stores as lists among its keys, and other sources as tensors.
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "converter/readers/gguf/gguf.h"
#include "qsf/base/bytes.h"

namespace qsf::convert {
namespace {

constexpr std::array<std::string_view, 4> kLists{"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};

}  // namespace

Status add_gguf_lists(Gguf& gguf) {
  for (const std::string_view key : kLists) {
    if (!gguf.values.contains(key)) continue;
    const auto list = gguf.numbers(key);
    if (!list || list->size() > kMaxLayers) {
      return make_error(ErrorCode::bad_input, "GGUF: the key {:.60} is no list of numbers", key);
    }
    for (std::size_t layer = 0; layer < list->size(); ++layer) {
      const auto number = static_cast<float>((*list)[layer]);
      if (!std::isfinite(number)) {
        return make_error(ErrorCode::bad_input, "GGUF: number {} of {:.60} is not finite", layer, key);
      }
      LoadedTensor& out = gguf.tensors.emplace_back();
      out.name = "blk." + std::to_string(layer) + "." + std::string(key);
      out.type = "F32";
      out.format = FormatId::f32;
      out.shape = {1};
      out.rows_of = [number](std::uint32_t, std::uint32_t, std::span<std::byte> to) -> Status {
        if (to.size() != sizeof number) return make_error(ErrorCode::internal, "{} bytes for one number", to.size());
        store_le(to.data(), std::bit_cast<std::uint32_t>(number));
        return {};
      };
    }
  }
  return {};
}

}  // namespace qsf::convert
