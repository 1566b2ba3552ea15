// Products of one column by kernels that were chosen for them: the same bits, whichever.
#include "engine/host.h"
#include "engine/variants.h"
#include "file/small_file.h"

namespace qsf::test {
namespace {

Generation run_with(const testing::SmallFile& file, FormatId format, std::string_view isa, std::string_view alone) {
  OpenOptions options = with_logits();
  options.isa = isa;
  Host host(file.bytes, 16 * kMiB, options);
  if (!alone.empty()) {
    EXPECT_TRUE(host.session->use_kernel(format, alone));
  }
  return host.generate(all_logits(some_tokens(9, 40), 12));
}

TEST(KernelChoice, AnyInstructionSetGivesTheSameBits) {
  for (const Format& format : kFormats) {
    testing::SmallOptions small;
    small.format = format.id;
    const testing::SmallFile file = testing::small_file(small);
    const Generation expected = run_with(file, format.id, "scalar", "");
    ASSERT_EQ(expected.error.code, ErrorCode::none) << format.name << ": " << expected.error.sentence;
    for (std::size_t i = 0; !instruction_set(i).empty(); ++i) {
      const Generation run = run_with(file, format.id, "", instruction_set(i));
      EXPECT_EQ(run.tokens, expected.tokens) << format.name << " " << instruction_set(i);
      EXPECT_EQ(run.logits, expected.logits) << format.name << " " << instruction_set(i);
    }
  }
}

TEST(KernelChoice, UnknownOnesAreRefused) {
  const testing::SmallFile file = testing::small_file({});
  Host host(file.bytes, 16 * kMiB, {});
  EXPECT_EQ(host.session->use_kernel(FormatId::f32, "sse9").error().code, ErrorCode::bad_argument);
  EXPECT_EQ(host.session->use_kernel(FormatId::inherit, "scalar").error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace qsf::test
