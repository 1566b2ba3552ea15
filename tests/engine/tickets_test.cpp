// Tickets that are not under way: refused, whatever the session does, and of no effect.
#include <optional>

#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

const Error kLost = make_error(ErrorCode::io_error, "the disk was pulled out");

class Tickets : public ::testing::Test {
 protected:
  SmallFile file_ = small_file();
  std::vector<std::byte> memory_ = std::vector<std::byte>(8 * kMiB);
  Session* session_ = *open_session(memory_, file_.bytes.size(), {});

  void read(const ReadRequest& r) { std::memcpy(r.into, file_.bytes.data() + r.offset, r.size); }
  void serve(const ReadRequest& r) {
    read(r);
    EXPECT_TRUE(session_->complete(r.ticket));
  }
  void expect_refused(std::uint32_t ticket) {
    const Error error = error_of(session_->complete(ticket));
    EXPECT_EQ(error.code, ErrorCode::bad_argument);
    EXPECT_EQ(std::string(error.sentence), "ticket " + std::to_string(ticket) + " was not asked for");
    session_->fail(ticket, kLost);
  }
  /// Serves all that is asked for; before and after each read its ticket, and those next to it, are refused.
  Step run_to_end() {
    while (true) {
      const Step step = session_->step();
      while (const auto r = session_->next_request()) {
        serve(*r);
        expect_refused(r->ticket);
      }
      if (step != Step::working && step != Step::need_bytes && step != Step::token) return step;
    }
  }
};

TEST_F(Tickets, OfAnOpeningAreRefusedBeforeAndAfter) {
  std::optional<ReadRequest> header = session_->next_request();
  ASSERT_TRUE(header);
  for (std::uint32_t i = 1; i < 9; ++i) expect_refused(header->ticket + i);
  for (std::uint32_t segment = 0; segment < 9; ++segment) expect_refused(segment);
  serve(*header);
  expect_refused(header->ticket);
  ASSERT_EQ(session_->step(), Step::working);
  // Two reads, of which the session hands out one.
  const std::optional<ReadRequest> first = session_->next_request();
  ASSERT_TRUE(first);
  expect_refused(first->ticket + 1);
  serve(*first);
  expect_refused(first->ticket);
  ASSERT_EQ(run_to_end(), Step::ready) << session_->error().sentence;
  for (std::uint32_t i = 0; i < 9; ++i) expect_refused(header->ticket + i);
  EXPECT_EQ(session_->step(), Step::ready);
}

TEST_F(Tickets, OfSegmentsAreRefusedBeforeAndAfter) {
  ASSERT_EQ(run_to_end(), Step::ready);
  const auto n = static_cast<std::uint32_t>(session_->segments().size());
  for (const std::uint32_t ticket : {0u, n - 1, n, n + 1, 0x7fffffffu}) expect_refused(ticket);
  const std::vector<std::uint32_t> ids = some_tokens(5, 40);
  ASSERT_TRUE(session_->start(greedy(ids, 6)));
  ASSERT_EQ(run_to_end(), Step::done) << session_->error().sentence;
  Host sound(file_.bytes, 8 * kMiB, {});
  EXPECT_EQ(session_->logits_hash(), sound.generate(greedy(ids, 6)).hash);
}

TEST_F(Tickets, OfReadsThatFailedAreRefused) {
  ASSERT_EQ(run_to_end(), Step::ready);
  ASSERT_TRUE(session_->start(greedy(some_tokens(5, 40), 6)));
  std::optional<ReadRequest> r;
  while (!(r = session_->next_request())) ASSERT_NE(session_->step(), Step::error);
  session_->fail(r->ticket, kLost);
  read(*r);
  expect_refused(r->ticket);
}

}  // namespace
}  // namespace qsf::test
