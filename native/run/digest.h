// The digest of a model's bytes, checked before the model is used.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "native/sources/source.h"

namespace qsf::run {

/// Whether the text is a SHA-256 in hexadecimal: 64 digits, in any case.
bool is_digest(std::string_view text);

/// Reads the whole file or address once. Returns bad_checksum if its SHA-256 is another than `digest`, an is_digest().
/// Other errors: those of the source, cancelled.
Status check_digest(const std::string& model, const std::string& digest, const SourceOptions& options,
                    const std::atomic<bool>& cancel);

}  // namespace qsf::run
