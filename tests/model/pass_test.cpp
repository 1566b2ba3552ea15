// Whose kernels a pass multiplies with.
#include "model/pass.h"

#include <gtest/gtest.h>

namespace qsf {
namespace {

TEST(Pass, TakesTheKernelsThatWereChosenForAFormatAndBatch) {
  if (!kChoosesKernels) GTEST_SKIP() << "there is one instruction set";
  const std::span<const Kernels* const> all = available_kernels();
  const std::size_t last = all.size() - 1;
  Pass pass;
  for (std::size_t format = 0; format < kFormats.size(); ++format) {
    pass.use_kernel(format, Batch::one, format % all.size());
    pass.use_kernel(format, Batch::many, last - format % all.size());
  }
  for (std::size_t format = 0; format < kFormats.size(); ++format) {
    EXPECT_EQ(&pass.product_kernels(format, 1), all[format % all.size()]) << kFormats[format].name;
    for (const std::uint32_t n : {2u, 3u, 32u, 4096u}) {
      EXPECT_EQ(&pass.product_kernels(format, n), all[last - format % all.size()]) << kFormats[format].name << " " << n;
    }
  }
}

}  // namespace
}  // namespace qsf
