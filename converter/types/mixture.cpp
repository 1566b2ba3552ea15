#include "converter/types/mixture.h"

#include <algorithm>
#include <array>

#include "converter/types/written_type.h"

namespace qsf::convert {
namespace {

// The rules are those of llama-quantize for models other than Falcon, as of its release b7000. An output that is the
// embedding too has the row of the head.
constexpr std::array kQ2Small{
    MixtureRow{Role::head, Share::all, "q6_k"},           MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"},  MixtureRow{Role::attn_v, Share::grouped, "q4_k"},
    MixtureRow{Role::ffn_down, Share::first_8th, "q4_k"},
};
constexpr std::array kQ3Small{
    MixtureRow{Role::head, Share::all, "q6_k"},
    MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_o, Share::eight_ways, "q5_k"},
};
constexpr std::array kQ3Medium{
    MixtureRow{Role::head, Share::all, "q6_k"},
    MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_o, Share::eight_ways, "q5_k"},
    MixtureRow{Role::attn_v, Share::first_2, "q5_k"},
    MixtureRow{Role::attn_v, Share::all, "q4_k"},
    MixtureRow{Role::ffn_down, Share::first_16th, "q5_k"},
    MixtureRow{Role::ffn_down, Share::all, "q4_k"},
    MixtureRow{Role::attn_o, Share::all, "q4_k"},
};
constexpr std::array kQ3Large{
    MixtureRow{Role::head, Share::all, "q6_k"},          MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"}, MixtureRow{Role::attn_v, Share::all, "q5_k"},
    MixtureRow{Role::ffn_down, Share::all, "q5_k"},      MixtureRow{Role::attn_o, Share::all, "q5_k"},
};
constexpr std::array kQ4Small{
    MixtureRow{Role::head, Share::all, "q6_k"},          MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"}, MixtureRow{Role::attn_o, Share::eight_ways, "q5_k"},
    MixtureRow{Role::attn_v, Share::first_4, "q5_k"},    MixtureRow{Role::ffn_down, Share::first_8th, "q5_k"},
};
constexpr std::array kQ4Medium{
    MixtureRow{Role::head, Share::all, "q6_k"},          MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"}, MixtureRow{Role::attn_o, Share::eight_ways, "q5_k"},
    MixtureRow{Role::attn_v, Share::more, "q6_k"},       MixtureRow{Role::ffn_down, Share::more, "q6_k"},
};
constexpr std::array kQ5Small{
    MixtureRow{Role::head, Share::all, "q6_k"},
    MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"},
};
constexpr std::array kQ5Medium{
    MixtureRow{Role::head, Share::all, "q6_k"},          MixtureRow{Role::attn_v, Share::eight_ways, "q8_0"},
    MixtureRow{Role::attn_k, Share::eight_ways, "q8_0"}, MixtureRow{Role::attn_v, Share::more, "q6_k"},
    MixtureRow{Role::ffn_down, Share::more, "q6_k"},
};
constexpr std::array kMixtures{
    Mixture{"q2_k_s", "q2_k", 21, kQ2Small},  Mixture{"q3_k_s", "q3_k", 11, kQ3Small},
    Mixture{"q3_k_m", "q3_k", 12, kQ3Medium}, Mixture{"q3_k_l", "q3_k", 13, kQ3Large},
    Mixture{"q4_k_s", "q4_k", 14, kQ4Small},  Mixture{"q4_k_m", "q4_k", 15, kQ4Medium},
    Mixture{"q5_k_s", "q5_k", 16, kQ5Small},  Mixture{"q5_k_m", "q5_k", 17, kQ5Medium},
};

/// The role whose rows hold for a role.
constexpr Role counted_as(Role role) {
  return role == Role::expert_down || role == Role::shared_down ? Role::ffn_down : role;
}

bool holds(Share share, const MixedModel& model, std::uint32_t i, std::uint32_t n) {
  switch (share) {
    case Share::all:
      return true;
    case Share::first_2:
      return i < 2;
    case Share::first_4:
      return i < 4;
    case Share::first_16th:
      return i < n / 16;
    case Share::first_8th:
      return i < n / 8;
    case Share::more:
      return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    case Share::grouped:
      return model.heads_per_kv >= 4;
    case Share::eight_ways:
      return model.n_experts == 8;
  }
  return false;
}

}  // namespace

std::span<const Mixture> mixtures() { return kMixtures; }

const Mixture* find_mixture(std::string_view name) {
  const auto* const at = std::ranges::find(kMixtures, lowered(name), &Mixture::name);
  return at != kMixtures.end() ? at : nullptr;
}

std::optional<FormatId> type_in(const Mixture& mixture, const MixedModel& model, Role role, std::uint32_t i,
                                std::uint32_t n) {
  for (const MixtureRow& row : mixture.rows) {
    if (row.role == counted_as(role) && holds(row.share, model, i, n)) return written_id(row.type);
  }
  return {};
}

}  // namespace qsf::convert
