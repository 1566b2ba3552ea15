// The type of keys and values and the policy by which positions are evicted, as texts: docs/reference/cli.md has both.
#pragma once

#include <string_view>

#include "qsf/engine.h"

namespace qsf {

/// Sets the type of keys and values by its name. Fails with bad_argument for another text.
Status set_kv_type(std::string_view name, OpenOptions& options);
/// Sets the options of a policy: all, window:N, sinks:A+N, h2o:N or snapkv:N. Fails with bad_argument for another text.
Status set_kv_policy(std::string_view policy, OpenOptions& options);

}  // namespace qsf
