// A host in memory for tests: gives a session the bytes it asks for and collects what it says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "qsf/base/checksum.h"
#include "qsf/engine.h"

namespace qsf::test {

inline constexpr std::uint64_t kMiB = 1u << 20;

/// What one generation gave.
struct Generation {
  std::vector<std::uint32_t> tokens;
  std::vector<float> logits;  // of Step::logits
  std::vector<float> embedding;
  std::string text;
  std::string hash;  // of the logits, when asked for
  Error error;
};

inline std::vector<std::uint32_t> joined(std::vector<std::uint32_t> a, const std::vector<std::uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Lends real threads, each task on the next of them.
inline void run_on_threads(void*, void (*task)(void*, std::uint32_t), void* argument, std::uint32_t n) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < n; ++i) threads.emplace_back(task, argument, i);
  for (std::thread& thread : threads) thread.join();
}

class Host {
 public:
  /// Opens the file's bytes; they must outlive the host.
  Host(std::span<const std::byte> file, std::uint64_t budget, const OpenOptions& options,
       std::function<bool(const ReadRequest&)> is_late = {})
      : late(std::move(is_late)), file_(file) {
    const std::uint64_t bytes = budget > kHostReserve ? budget - kHostReserve : 0;
    memory_.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
    const Result<Session*> opened =
        open_session(std::as_writable_bytes(std::span(memory_)).first(bytes), file.size(), options);
    if (!opened) {
      error = opened.error();
      return;
    }
    session = *opened;
    pump();
  }

  /// Steps until something ends: serves requests, collects tokens and logits.
  Generation pump() {
    Generation run;
    while (true) {
      const Step step = session->step();
      bool served = false;
      while (const auto request = session->next_request()) {
        if (late && late(*request)) {
          waiting_.push_back(*request);
        } else {
          serve(*request);
          served = true;
        }
      }
      if (step == Step::need_bytes && !served) {
        for (const ReadRequest& request : std::exchange(waiting_, {})) serve(request);
      }
      switch (step) {
        case Step::working:
        case Step::need_bytes:
          if (stop_when && stop_when()) return run;
          continue;
        case Step::logits:
          run.logits.insert(run.logits.end(), session->logits().begin(), session->logits().end());
          continue;
        case Step::embedding:
          run.embedding.insert(run.embedding.end(), session->embedding().begin(), session->embedding().end());
          continue;
        case Step::token:
          run.tokens.push_back(session->token());
          run.text += session->piece();
          if (stop_when && stop_when()) return run;
          continue;
        case Step::done:
          run.text += session->piece();
          run.hash = session->logits_hash();
          return run;
        case Step::ready:
          return run;
        case Step::error:
          run.error = error = session->error();
          return run;
      }
    }
  }

  /// Takes one step, and serves the requests that follow it.
  Step step() {
    const Step step = session->step();
    while (const auto request = session->next_request()) {
      serve(*request);
      EXPECT_TRUE(completed_) << completed_.error().sentence;
    }
    return step;
  }

  Generation generate(const Prompt& prompt) {
    Generation failed;
    failed.error = error;
    if (session == nullptr || error.code != ErrorCode::none) return failed;
    if (const Status status = session->start(prompt); !status) {
      failed.error = status.error();
      return failed;
    }
    return pump();
  }

  Generation embed(const EmbedPrompt& prompt) {
    Generation failed;
    failed.error = error;
    if (session == nullptr || error.code != ErrorCode::none) return failed;
    if (const Status status = session->embed(prompt); !status) {
      failed.error = status.error();
      return failed;
    }
    return pump();
  }

  std::size_t of_blocks = 0, in_place = 0;  // requests of whole blocks; those that lie there as in the file's
  std::size_t of_mapped = 0;                // of bytes that are where they are wanted
  Session* session = nullptr;
  Error error;
  std::function<bool()> stop_when;                // asked after every step
  std::function<bool(const ReadRequest&)> fault;  // true: the read fails
  std::function<bool(const ReadRequest&)> late;   // true: served when the session can do nothing without it

 private:
  void serve(const ReadRequest& r) {
    if (fault && fault(r)) {
      session->fail(r.ticket, make_error(ErrorCode::io_error, "the test's fault"));
      return;
    }
    ASSERT_LE(r.offset + r.size, file_.size());
    if (r.blocks) {  // whatever lies around the bytes in the file
      const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(r.into), before = begin % kBlock;
      std::memset(r.into - before, 0xa5, align_up(before + r.size, kBlock));
      ++of_blocks;
      in_place += (r.offset - begin) % kBlock == 0 ? 1 : 0;
    }
    if (r.into == file_.data() + r.offset) {
      ++of_mapped;
    } else {
      std::memcpy(r.into, file_.data() + r.offset, r.size);
    }
    completed_ = session->complete(r.ticket);
  }

  std::span<const std::byte> file_;
  Status completed_;  // of the last request
  /// An arena leaves out the bytes before its alignment, so that a plan would depend on the allocator.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;
  std::vector<ReadRequest> waiting_;
};

/// The most likely tokens, nothing added to the ids.
inline Prompt greedy(std::span<const std::uint32_t> ids, std::uint32_t max_tokens) {
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = max_tokens;
  prompt.sampler.temperature = 0;
  prompt.ignore_eos = true;
  prompt.hash_logits = true;
  return prompt;
}

}  // namespace qsf::test
