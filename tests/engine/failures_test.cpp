// Reads that fail: at once, late, while another generation runs, or for segments that nobody needs.
#include <deque>

#include "engine/host.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

const Error kLost = make_error(ErrorCode::io_error, "the disk was pulled out");

/// A session whose reads end when and how the test says.
class Slow {
 public:
  explicit Slow(const SmallFile& file, OpenOptions options = {}) : file_(file.bytes), memory_(8 * kMiB) {
    session = *open_session(memory_, file_.size(), options);
    while (session->step() != Step::ready) {
      collect();
      serve_all();
    }
  }
  void collect() {
    while (const auto r = session->next_request()) reads.push_back(*r);
  }
  void serve(const ReadRequest& r) {
    std::memcpy(r.into, file_.data() + r.offset, r.size);
    EXPECT_TRUE(session->complete(r.ticket));
  }
  void serve_all() {
    for (; !reads.empty(); reads.pop_front()) serve(reads.front());
  }
  void fail_all() {
    for (; !reads.empty(); reads.pop_front()) session->fail(reads.front().ticket, kLost);
  }
  /// Steps until something is told, ending reads.
  Step run(void (Slow::*end)() = &Slow::serve_all) {
    while (true) {
      const Step step = session->step();
      collect();
      if (step == Step::token) continue;
      if (step != Step::working && step != Step::need_bytes) return step;
      (this->*end)();
    }
  }

  Session* session = nullptr;
  std::deque<ReadRequest> reads;

 private:
  std::span<const std::byte> file_;
  std::vector<std::byte> memory_;
};

struct Failures : ::testing::Test {
  SmallFile file = small_file();
  std::vector<std::uint32_t> ids = some_tokens(5, 40);
  std::string expected = [this] {
    Slow sound(file);
    EXPECT_TRUE(sound.session->start(greedy(ids, 6)));
    EXPECT_EQ(sound.run(), Step::done);
    return std::string(sound.session->logits_hash());
  }();

  /// Begins a generation and steps until reads are under way.
  void begin(Slow& slow) {
    ASSERT_TRUE(slow.session->start(greedy(ids, 6)));
    while (slow.reads.size() < 2) {
      ASSERT_NE(slow.session->step(), Step::error);
      slow.collect();
    }
  }
  void expect_sound(Slow& slow) {
    ASSERT_TRUE(slow.session->rewind(0));
    ASSERT_TRUE(slow.session->start(greedy(ids, 6)));
    ASSERT_EQ(slow.run(), Step::done) << slow.session->error().sentence;
    EXPECT_EQ(slow.session->logits_hash(), expected);
  }
};

OpenOptions streamed() {
  OpenOptions options;
  options.stream_all = true;
  options.ring_slots = 3;
  return options;
}

TEST_F(Failures, AllReadsOfAGenerationFailing) {
  for (const OpenOptions& options : {OpenOptions{}, streamed()}) {
    Slow slow(file, options);
    begin(slow);
    slow.fail_all();
    EXPECT_EQ(slow.run(), Step::error);
    EXPECT_STREQ(slow.session->error().sentence, kLost.sentence);
    EXPECT_EQ(slow.session->end(), End::error);
    EXPECT_EQ(slow.session->step(), Step::error);
    expect_sound(slow);
  }
}

TEST_F(Failures, OneMoreAfterTheErrorWasTold) {
  for (const OpenOptions& options : {OpenOptions{}, streamed()}) {
    Slow slow(file, options);
    begin(slow);
    const ReadRequest late = slow.reads.back();
    slow.reads.pop_back();
    ASSERT_EQ(slow.run(&Slow::fail_all), Step::error);
    slow.session->fail(late.ticket, kLost);
    expect_sound(slow);
  }
}

// Of segments that stay: what is streamed may be asked for again meanwhile.
TEST_F(Failures, OneOfAnEarlierGenerationWhileTheNextRuns) {
  Slow slow(file);
  begin(slow);
  std::deque<ReadRequest> late(slow.reads.begin() + 1, slow.reads.end());
  slow.reads.resize(1);
  slow.fail_all();
  ASSERT_EQ(slow.run(), Step::error);
  ASSERT_TRUE(slow.session->rewind(0));
  ASSERT_TRUE(slow.session->start(greedy(ids, 6)));
  for (int i = 0; i < 3; ++i) slow.session->step();
  for (const ReadRequest& r : late) slow.session->fail(r.ticket, kLost);
  ASSERT_EQ(slow.run(), Step::done) << slow.session->error().sentence;
  EXPECT_EQ(slow.session->logits_hash(), expected);
}

TEST_F(Failures, ASegmentThatIsNotNeeded) {
  OpenOptions options;
  options.stream_all = true;
  options.ring_slots = 3;
  Slow slow(file, options);
  begin(slow);
  // Whatever is read ahead fails once; a generation that is stopped needs none of it.
  slow.session->stop();
  slow.fail_all();
  EXPECT_EQ(slow.session->end(), End::cancelled);
  EXPECT_EQ(slow.session->step(), Step::ready);
}

TEST_F(Failures, DuringPreload) {
  Slow slow(file);
  ASSERT_TRUE(slow.session->preload());
  EXPECT_EQ(slow.session->step(), Step::need_bytes);
  slow.collect();
  ASSERT_FALSE(slow.reads.empty());
  slow.fail_all();
  EXPECT_EQ(slow.run(), Step::error);
  expect_sound(slow);
}

TEST_F(Failures, ChecksumsAreComputedOnceASession) {
  for (const bool recheck : {false, true}) {
    OpenOptions options = streamed();
    options.recheck = recheck;
    SmallFile changing = file;
    Host host(changing.bytes, 8 * kMiB, options);
    ASSERT_EQ(host.generate(greedy(ids, 3)).error.code, ErrorCode::none);
    // A byte of every segment of weights changes under the session.
    for (const SegmentEntry& s : host.session->segments()) {
      if ((s.flags & kSegmentVectors) == 0) changing.bytes[s.offset + s.stored_size - 1] ^= std::byte{1};
    }
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_EQ(host.generate(greedy(ids, 3)).error.code, recheck ? ErrorCode::bad_checksum : ErrorCode::none);
  }
}

}  // namespace
}  // namespace qsf::test
