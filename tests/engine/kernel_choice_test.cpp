// Products of one column, and of many, by kernels that were chosen for them: the same bits, whichever.
#include <array>

#include "engine/host.h"
#include "engine/variants.h"
#include "file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

/// By batch; empty for none.
using Chosen = std::array<std::string_view, kBatchNames.size()>;

Generation run_with(const SmallFile& file, FormatId format, std::string_view isa, const Chosen& chosen) {
  OpenOptions options = with_logits();
  options.isa = isa;
  Host host(file.bytes, 16 * kMiB, options);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].empty()) continue;
    EXPECT_TRUE(host.session->use_kernel(format, static_cast<Batch>(i), chosen[i]));
  }
  return host.generate(all_logits(some_tokens(9, 40), 12));
}

TEST(KernelChoice, AnyInstructionSetGivesTheSameBits) {
  for (const Format& format : kFormats) {
    if (format.rounding == Rounding::elsewhere) continue;  // the file would have zeros
    SmallOptions small;
    small.format = format.id;
    const SmallFile file = small_file(small);
    const Generation expected = run_with(file, format.id, "scalar", {});
    ASSERT_EQ(expected.error.code, ErrorCode::none) << format.name << ": " << expected.error.sentence;
    for (std::size_t i = 0; !instruction_set(i).empty(); ++i) {
      const std::string_view isa = instruction_set(i);
      for (const Chosen& chosen : {Chosen{isa, ""}, Chosen{"", isa}, Chosen{"scalar", isa}}) {
        const Generation run = run_with(file, format.id, "", chosen);
        EXPECT_EQ(run.tokens, expected.tokens) << format.name << " " << chosen[0] << " " << chosen[1];
        EXPECT_EQ(run.logits, expected.logits) << format.name << " " << chosen[0] << " " << chosen[1];
      }
    }
  }
}

TEST(KernelChoice, UnknownOnesAreRefused) {
  const SmallFile file = small_file({});
  Host host(file.bytes, 16 * kMiB, {});
  for (const Batch batch : {Batch::one, Batch::many}) {
    EXPECT_TRUE(host.session->use_kernel(FormatId::f32, batch, "scalar"));
    EXPECT_EQ(error_of(host.session->use_kernel(FormatId::f32, batch, "sse9")).code, ErrorCode::bad_argument);
    EXPECT_EQ(error_of(host.session->use_kernel(FormatId::inherit, batch, "scalar")).code, ErrorCode::bad_argument);
  }
  const Batch unknown = static_cast<Batch>(kBatchNames.size());
  EXPECT_EQ(error_of(host.session->use_kernel(FormatId::f32, unknown, "scalar")).code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace qsf::test
