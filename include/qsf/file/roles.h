// What the format knows of each role: where such a tensor lies, its shape, and whether a model can be without it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "qsf/file/layout.h"

namespace qsf {

enum class Place : std::uint8_t { embedding, layer, final };
enum class Extent : std::uint8_t { one, dim, heads, kv_heads, head_dim, ffn_dim, vocab };
enum class Need : std::uint8_t { always, optional, untied, unsupported };

/// A matrix streams in segments of its own; a vector lies with the section's others in a resident segment.
struct RoleRule {
  Role role;
  Place place;
  bool matrix;
  Extent rows;
  Extent cols;
  Need need;
};

inline constexpr std::array<RoleRule, kRoleNames.size()> kRoleRules{{
    {Role::attn_q, Place::layer, true, Extent::heads, Extent::dim, Need::always},
    {Role::attn_k, Place::layer, true, Extent::kv_heads, Extent::dim, Need::always},
    {Role::attn_v, Place::layer, true, Extent::kv_heads, Extent::dim, Need::always},
    {Role::attn_o, Place::layer, true, Extent::dim, Extent::heads, Need::always},
    {Role::ffn_gate, Place::layer, true, Extent::ffn_dim, Extent::dim, Need::always},
    {Role::ffn_up, Place::layer, true, Extent::ffn_dim, Extent::dim, Need::always},
    {Role::ffn_down, Place::layer, true, Extent::dim, Extent::ffn_dim, Need::always},
    {Role::attn_norm, Place::layer, false, Extent::one, Extent::dim, Need::always},
    {Role::ffn_norm, Place::layer, false, Extent::one, Extent::dim, Need::always},
    {Role::attn_q_bias, Place::layer, false, Extent::one, Extent::heads, Need::optional},
    {Role::attn_k_bias, Place::layer, false, Extent::one, Extent::kv_heads, Need::optional},
    {Role::attn_v_bias, Place::layer, false, Extent::one, Extent::kv_heads, Need::optional},
    {Role::attn_o_bias, Place::layer, false, Extent::one, Extent::dim, Need::optional},
    {Role::ffn_bias, Place::layer, false, Extent::one, Extent::dim, Need::unsupported},
    {Role::attn_q_norm, Place::layer, false, Extent::one, Extent::head_dim, Need::optional},
    {Role::attn_k_norm, Place::layer, false, Extent::one, Extent::head_dim, Need::optional},
    {Role::token_embd, Place::embedding, true, Extent::vocab, Extent::dim, Need::always},
    {Role::final_norm, Place::final, false, Extent::one, Extent::dim, Need::always},
    {Role::head, Place::final, true, Extent::vocab, Extent::dim, Need::untied},
}};
static_assert([] {
  for (std::size_t i = 0; i < kRoleRules.size(); ++i) {
    if (kRoleRules[i].role != static_cast<Role>(i)) return false;
  }
  return true;
}());

/// `role` must be one of kRoleNames.
constexpr const RoleRule& rule_of(Role role) { return kRoleRules[static_cast<std::size_t>(role)]; }
constexpr std::string_view role_name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

constexpr std::uint32_t n_weight_sections(const Header& h) { return h.n_layers + 2; }
constexpr Place place_of(const Header& h, std::uint32_t section) {
  return section == 0 ? Place::embedding : section <= h.n_layers ? Place::layer : Place::final;
}

/// `h` must have been checked: the products stay below 2^32.
constexpr std::uint32_t extent(const Header& h, Extent e) {
  switch (e) {
    case Extent::one:
      return 1;
    case Extent::dim:
      return h.dim;
    case Extent::heads:
      return h.n_heads * h.head_dim;
    case Extent::kv_heads:
      return h.n_kv_heads * h.head_dim;
    case Extent::head_dim:
      return h.head_dim;
    case Extent::ffn_dim:
      return h.ffn_dim;
    case Extent::vocab:
      return h.vocab_size;
  }
  return 0;
}

/// Bytes of the header in front of a tensor's data: none for the final norm.
constexpr std::uint32_t header_bytes(Role role) { return role == Role::final_norm ? 0 : kTensorHeaderSize; }
/// The flag byte of the final section lies behind the final norm.
constexpr std::uint32_t trailer_bytes(Role role) { return role == Role::final_norm ? 1 : 0; }
inline constexpr std::byte kTiedByte{0xff};
inline constexpr std::byte kSeparateByte{0x00};

/// The type byte of a layer index entry or of the header: the one format of all matrices, or mixed. Given the formats
/// of the matrices one by one.
class CommonFormat {
 public:
  void add(FormatId format) {
    common_ = n_ == 0 || format == common_ ? format : FormatId::mixed;
    ++n_;
  }
  FormatId get() const { return n_ == 0 ? FormatId::mixed : common_; }

 private:
  FormatId common_ = FormatId::mixed;
  std::uint64_t n_ = 0;
};

}  // namespace qsf
