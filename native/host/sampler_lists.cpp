#include "native/host/sampler_lists.h"

#include <algorithm>
#include <array>
#include <utility>

#include "qsf/base/try.h"

namespace qsf {
namespace {

/// Names that llama.cpp's programs have for samplers, in addition to those that are the same.
constexpr std::array<std::pair<std::string_view, SamplerKind>, 5> kOtherNames{{{"typ_p", SamplerKind::typical_p},
                                                                               {"typical", SamplerKind::typical_p},
                                                                               {"typ", SamplerKind::typical_p},
                                                                               {"nucleus", SamplerKind::top_p},
                                                                               {"temp", SamplerKind::temperature}}};

/// Returns a sampler by any of its names, in which a dash stands for an underscore too.
std::optional<SamplerKind> named(std::string_view given) {
  std::string name(given);
  std::ranges::replace(name, '-', '_');
  const auto other = std::ranges::find(kOtherNames, std::string_view(name), &decltype(kOtherNames)::value_type::first);
  return other != kOtherNames.end() ? other->second : find_sampler(name);
}

}  // namespace

Status SamplerLists::set_samplers(std::string_view names) {
  std::vector<SamplerKind> read;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(';'));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    const std::optional<SamplerKind> kind = named(name);
    if (!kind) {
      std::string known;
      for (const std::string_view each : kSamplerNames) known.append(known.empty() ? "" : ", ").append(each);
      return make_error(ErrorCode::bad_argument, "there is no sampler '{:.40}', only {}", name, known);
    }
    read.push_back(*kind);
  }
  SamplerOptions checked;
  checked.samplers = read;
  QSF_TRY(check(checked));
  samplers_ = std::move(read);
  return {};
}

void SamplerLists::set_breakers(std::vector<std::string> texts) {
  breakers_ = std::move(texts);
  views_.assign(breakers_.begin(), breakers_.end());
}

SamplerOptions SamplerLists::with(const SamplerOptions& numbers) const {
  SamplerOptions options = numbers;
  options.samplers = samplers_;
  options.logit_bias = biases_;
  options.dry_sequence_breakers = views_;
  return options;
}

}  // namespace qsf
