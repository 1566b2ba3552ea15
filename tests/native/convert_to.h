// A conversion in the process of a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "converter/conversion/conversion.h"
#include "converter/readers/inputs.h"
#include "qsf/formats/format.h"

namespace qsf::test {

/// Writes a model as qsf-convert does: as .qsf, or as GGUF if the path says so.
inline void convert_to(const std::string& from, const std::string& path, std::string_view type = "") {
  const Result<convert::LoadedModel> model = convert::open_model(from);
  ASSERT_TRUE(model) << model.error().sentence;
  convert::Options options;
  options.gguf = path.ends_with(".gguf");
  if (!type.empty()) options.matrices = find_format(type)->id;
  Result<convert::Conversion> conversion = convert::Conversion::begin(*model, options, path);
  ASSERT_TRUE(conversion) << conversion.error().sentence;
  Result<convert::Conversion::Step> step = convert::Conversion::Step::working;
  while (step && *step != convert::Conversion::Step::done) step = conversion->step();
  ASSERT_TRUE(step) << step.error().sentence;
}

}  // namespace qsf::test
