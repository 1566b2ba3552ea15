#include "converter/recipes.h"

#include <charconv>
#include <cstdio>

namespace qsf::convert {
namespace {

constexpr std::string_view kLayerMark = "{}";

std::string_view pattern_of(const TensorName& line, Naming naming) {
  return naming == Naming::hugging_face ? line.hugging_face : line.gguf;
}

/// The number in `name` where `pattern` has {}, 0 when the pattern has none; empty when they do not match.
std::optional<std::uint32_t> match(std::string_view pattern, std::string_view name) {
  const std::size_t mark = pattern.find(kLayerMark);
  if (mark == std::string_view::npos) return name == pattern ? std::optional<std::uint32_t>(0) : std::nullopt;
  const std::string_view front = pattern.substr(0, mark);
  const std::string_view back = pattern.substr(mark + kLayerMark.size());
  if (name.size() <= front.size() + back.size() || !name.starts_with(front) || !name.ends_with(back)) return {};
  const char* begin = name.data() + front.size();
  const char* end = name.data() + name.size() - back.size();
  std::uint32_t layer = 0;
  const auto [stop, error] = std::from_chars(begin, end, layer);
  if (error != std::errc() || stop != end || (*begin == '0' && end - begin > 1)) return {};
  return layer;
}

}  // namespace

const Recipe* find_recipe(std::string_view name) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name) return &recipe;
  }
  return nullptr;
}

Use use_of(const Recipe& recipe, Role role) {
  switch (role) {
    case Role::attn_q_bias:
    case Role::attn_k_bias:
    case Role::attn_v_bias:
      return recipe.qkv_bias;
    case Role::attn_o_bias:
      return recipe.o_bias;
    case Role::attn_q_norm:
    case Role::attn_k_norm:
      return recipe.qk_norm;
    case Role::ffn_bias:
      return Use::never;
    case Role::head:
      return Use::optional;
    default:
      return Use::always;
  }
}

std::optional<TensorPlace> place_of_name(Naming naming, std::string_view name) {
  for (const TensorName& line : kTensorNames) {
    if (const auto layer = match(pattern_of(line, naming), name)) return TensorPlace{*layer, line.role};
  }
  return {};
}

NameText name_of(Naming naming, Role role, std::uint32_t layer) {
  NameText out{};
  for (const TensorName& line : kTensorNames) {
    if (line.role != role) continue;
    const std::string_view pattern = pattern_of(line, naming);
    const std::size_t mark = pattern.find(kLayerMark);
    if (mark == std::string_view::npos) {
      std::snprintf(out.text, sizeof out.text, "%.*s", static_cast<int>(pattern.size()), pattern.data());
    } else {
      const std::string_view back = pattern.substr(mark + kLayerMark.size());
      std::snprintf(out.text, sizeof out.text, "%.*s%u%.*s", static_cast<int>(mark), pattern.data(), layer,
                    static_cast<int>(back.size()), back.data());
    }
    break;
  }
  return out;
}

bool ignored_name(std::string_view name) {
  for (const std::string_view ending : kIgnoredEndings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace qsf::convert
