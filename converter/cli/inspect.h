// The contents of a QSF file as text for people, with every checksum checked.
#pragma once

#include <cstdio>

#include "converter/readers/qsf/tables.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Prints header, sections, metadata, index, tensors and segments to `out`, then checks all bytes. Returns the first
/// damage; everything readable before it is printed.
Status inspect(const Input& file, std::FILE* out);

}  // namespace qsf::convert
