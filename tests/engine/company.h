// Sequences that guess next to each other: those that are stopped or begin in between disturb no other.
#pragma once

#include <array>

#include "engine/host.h"
#include "engine/variants.h"

namespace qsf::test {

/// Expects four sequences with guesses to write the text of one alone, with every width of a pass. `few` columns are
/// the fewest here that have room for a guess in each sequence.
inline void expect_text_of_one(const SmallFile& file, OpenOptions options, std::uint32_t few) {
  const auto ids = some_tokens(9, 40);
  const Generation expected = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 60));
  options.sequences = 4;
  for (const std::uint32_t chunk : {2u, 4u, few, 0u}) {
    for (const std::uint32_t interval : {3u, 7u, 1000u}) {
      options.chunk = chunk;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
      Session& session = *host.session;
      std::array<std::vector<std::uint32_t>, 4> tokens;
      for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(session.start(greedy(ids, 60), i));
      std::uint32_t steps = 0;
      for (Step step = Step::working; step != Step::ready;) {
        step = host.step();
        ASSERT_NE(step, Step::error) << session.error().sentence;
        if (step == Step::token) tokens[session.sequence()].push_back(session.token());
        if (++steps % interval != 0 || tokens[0].size() > 50) continue;
        session.stop(3);
        Prompt again = greedy(ids, 60);
        again.anew = true;
        ASSERT_TRUE(session.start(again, 3));
        tokens[3].clear();
      }
      for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(tokens[i], expected.tokens) << chunk << " " << interval << " " << i;
        if (chunk == few || chunk == 0) {
          EXPECT_GT(session.sequence_stats(i).right_tokens, 0u) << chunk << " " << interval;
        }
      }
      if (interval != 1000) {
        EXPECT_EQ(tokens[3], expected.tokens) << chunk;
      }
    }
  }
}

}  // namespace qsf::test
