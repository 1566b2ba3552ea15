// The policy by which positions are evicted, as text: docs/reference/cli.md has its forms.
#pragma once

#include <string_view>

#include "qsf/engine.h"

namespace qsf {

/// Sets the options of a policy: all, window:N, sinks:A+N, h2o:N or snapkv:N. Fails with bad_argument for another text.
Status set_kv_policy(std::string_view policy, OpenOptions& options);

}  // namespace qsf
