// Layers that keep a state of a sequence: stopped anywhere, taken back anywhere, in any company, a sequence goes on
// with the bits of one that was fed the same tokens anew.
#include <thread>

#include "engine/host.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

std::vector<Named> with_states() {
  std::vector<Named> all = variants();
  std::erase_if(all, [](const Named& variant) {
    for (std::uint32_t layer = 0; layer < variant.options.n_layers && variant.options.shape; ++layer) {
      LayerKind kind;
      variant.options.shape(layer, kind);
      if (kind.mixer == Mixer::short_conv || kind.has_state()) return false;
    }
    return true;
  });
  // Windows whose rings come round, between the states.
  for (std::size_t i = 0, n = all.size(); i < n; ++i) {
    all.push_back(all[i]);
    all.back().options.window = 6;
  }
  return all;
}

OpenOptions in_chunks(std::uint32_t chunk) {
  OpenOptions options = with_logits();
  options.chunk = chunk;
  return options;
}

/// What a session that knows nothing else makes of the tokens.
Generation anew(const SmallFile& file, const Ids& ids, std::uint32_t max_tokens) {
  return Host(file.bytes, 8 * kMiB, with_logits()).generate(greedy(ids, max_tokens));
}

Ids known(const Host& host) {
  const std::span<const std::uint32_t> ids = host.session->tokens();
  return {ids.begin(), ids.end()};
}

TEST(States, AreThereForEveryMixerThatHasThem) {
  const std::vector<Named> all = with_states();
  EXPECT_GE(all.size(), 12u);
  for (std::uint32_t value = 0; value < 256; ++value) {
    LayerKind wanted;
    wanted.mixer = static_cast<Mixer>(value);
    if (wanted.mixer != Mixer::short_conv && !wanted.has_state()) continue;
    const auto has = [&](const Named& variant) {
      for (std::uint32_t layer = 0; layer < variant.options.n_layers; ++layer) {
        LayerKind kind;
        variant.options.shape(layer, kind);
        if (kind.mixer == wanted.mixer) return true;
      }
      return false;
    };
    EXPECT_EQ(std::ranges::count_if(all, has) % 2, 0) << value;
    EXPECT_GT(std::ranges::count_if(all, has), 0) << value;
  }
}

TEST(States, SameBitsOnAnyNumberOfThreads) {
  const auto run_on_threads = [](void*, void (*task)(void*, std::uint32_t), void* context, std::uint32_t n) {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < n; ++i) threads.emplace_back(task, context, i);
    for (std::thread& thread : threads) thread.join();
  };
  for (const Named& variant : with_states()) {
    const SmallFile file = small_file(variant.options);
    const Ids ids = some_tokens(19, 40);
    const std::string expected = anew(file, ids, 5).hash;
    for (const std::uint32_t threads : {2u, 3u, 8u}) {
      OpenOptions options = with_logits();
      options.workers = {run_on_threads, nullptr, threads};
      EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, 5)).hash, expected) << variant.name;
    }
  }
}

TEST(States, AStoppedSequenceGoesOnWhereItWas) {
  for (const Named& variant : with_states()) {
    const SmallFile file = small_file(variant.options);
    const Ids first = some_tokens(19, 40), second{7, 3, 11};
    for (int stop_after = 3; stop_after < 500; stop_after += 37) {
      Host host(file.bytes, 8 * kMiB, in_chunks(8));
      int steps = 0;
      host.stop_when = [&] { return ++steps == stop_after; };
      (void)host.generate(greedy(first, 6));
      host.session->stop();
      host.stop_when = nullptr;
      const std::uint32_t fed = host.session->sequence_stats().position;
      const Ids all = joined(known(host), second);
      const Generation run = host.generate(greedy(second, 6));
      EXPECT_EQ(host.session->sequence_stats().prompt_tokens, all.size() - fed) << "nothing is fed again";
      const Generation expected = anew(file, all, 6);
      EXPECT_EQ(run.tokens, expected.tokens) << variant.name << ", step " << stop_after;
      EXPECT_EQ(run.hash, expected.hash) << variant.name << ", step " << stop_after;
    }
  }
}

TEST(States, ASequenceThatWasTakenBackIsOneThatWasNotThere) {
  for (const Named& variant : with_states()) {
    const SmallFile file = small_file(variant.options);
    const Ids first = some_tokens(21, 40), second{9, 8, 2, 6, 5}, third{4, 30};
    for (const std::uint32_t chunk : {1u, 4u, 32u}) {
      Host host(file.bytes, 8 * kMiB, in_chunks(chunk));
      for (std::uint32_t n = 0; n <= 34; n += n < 19 ? 6 : 1) {
        ASSERT_TRUE(host.session->rewind(0));
        (void)host.generate(greedy(first, 4));
        (void)host.generate(greedy(second, 5));
        ASSERT_EQ(host.session->tokens().size(), 35u);
        ASSERT_TRUE(host.session->rewind(n));
        const Ids all = joined(known(host), third);
        const Generation run = host.generate(greedy(third, 4)), expected = anew(file, all, 4);
        EXPECT_EQ(run.tokens, expected.tokens) << variant.name << ", back to " << n << ", chunk " << chunk;
        EXPECT_EQ(run.hash, expected.hash) << variant.name << ", back to " << n << ", chunk " << chunk;
      }
    }
  }
}

TEST(States, AnAnswerIsTakenBackWithoutFeedingWhatWasBeforeIt) {
  const Named variant = with_states().front();
  const SmallFile file = small_file(variant.options);
  const Ids first = some_tokens(21, 40), second{9, 8, 2};
  Host host(file.bytes, 8 * kMiB, in_chunks(32));
  (void)host.generate(greedy(first, 4));
  (void)host.generate(greedy(second, 5));
  // Where the second turn began to be fed: the last token of the first answer had not been.
  ASSERT_TRUE(host.session->rewind(25));
  EXPECT_EQ(host.session->sequence_stats().position, 24u);
  ASSERT_TRUE(host.session->rewind(20));
  EXPECT_EQ(host.session->sequence_stats().position, 0u) << "there is no checkpoint before it";
}

TEST(States, EachSequenceHasItsOwn) {
  for (const Named& variant : with_states()) {
    const SmallFile file = small_file(variant.options);
    const Ids a = some_tokens(23, 40), b = some_tokens(17, 37);
    for (const std::uint32_t chunk : {3u, 32u}) {
      OpenOptions options = in_chunks(chunk);
      options.sequences = 2;
      for (int steps = 1; steps < 200; steps += 23) {
        Host host(file.bytes, 8 * kMiB, options);
        ASSERT_TRUE(host.session->start(greedy(a, 9), 0));
        ASSERT_TRUE(host.session->start(greedy(b, 20), 1));
        int left = steps;
        host.stop_when = [&] { return --left == 0; };
        while (left > 0 && host.session->end(1) == End::none) (void)host.pump();
        // The other's columns may still be on their way when this one begins anew.
        ASSERT_TRUE(host.session->rewind(0, 1));
        ASSERT_TRUE(host.session->start(greedy(a, 9), 1));
        host.stop_when = nullptr;
        while (host.session->end(0) == End::none || host.session->end(1) == End::none) (void)host.pump();
        const Generation alone = anew(file, a, 9);
        const Ids expected = joined(a, alone.tokens);
        for (const std::uint32_t sequence : {0u, 1u}) {
          const std::span<const std::uint32_t> is = host.session->tokens(sequence);
          EXPECT_EQ(Ids(is.begin(), is.end()), expected) << variant.name << ", step " << steps;
          EXPECT_EQ(host.session->logits_hash(sequence), alone.hash) << variant.name << ", step " << steps;
        }
      }
    }
  }
}

TEST(States, AreTakenFromTheArenaAtOpen) {
  for (const Named& variant : with_states()) {
    const SmallFile file = small_file(variant.options);
    const auto memory = [&](std::uint32_t sequences) {
      OpenOptions options = with_logits();
      options.sequences = sequences;
      Host host(file.bytes, 8 * kMiB, options);
      std::uint64_t all = 0, of_memory = 0;
      for (const MemoryRegion& region : host.session->memory_map()) {
        all += region.bytes;
        if (region.region == Region::kv_cache) of_memory = region.bytes;
      }
      EXPECT_EQ(all, 8 * kMiB);
      return of_memory;
    };
    EXPECT_GT(memory(1), 0u) << variant.name;
    EXPECT_EQ(memory(3), 3 * memory(1)) << variant.name;
  }
}

}  // namespace
}  // namespace qsf::test
