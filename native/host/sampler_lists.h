// The lists of a SamplerOptions with their memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qsf/run/sampling.h"

namespace qsf {

class SamplerLists {
 public:
  SamplerLists() = default;
  SamplerLists(const SamplerLists&) = delete;  // the options view this object
  SamplerLists& operator=(const SamplerLists&) = delete;

  /// Sets the samplers by their names, separated by semicolons, in the order in which they are applied; none for an
  /// empty text. The names that llama.cpp's programs have for them are understood too. Fails with bad_argument, and
  /// changes nothing, for an unknown name or one that is given twice.
  Status set_samplers(std::string_view names);
  void set_biases(std::vector<TokenBias> biases) { biases_ = std::move(biases); }
  void set_breakers(std::vector<std::string> texts);
  void use_default_samplers() { samplers_.assign(kAllSamplers.begin(), kAllSamplers.end()); }
  void use_default_breakers() { views_.assign(kDryBreakers.begin(), kDryBreakers.end()); }

  /// Returns options with these lists, valid until this object changes.
  SamplerOptions with(const SamplerOptions& numbers) const;

 private:
  std::vector<SamplerKind> samplers_{kAllSamplers.begin(), kAllSamplers.end()};
  std::vector<TokenBias> biases_;
  std::vector<std::string> breakers_;
  std::vector<std::string_view> views_{kDryBreakers.begin(), kDryBreakers.end()};  // of breakers_, or the default
};

}  // namespace qsf
