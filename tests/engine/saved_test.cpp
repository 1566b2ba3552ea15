// Saved sequences: restored anywhere, a sequence goes on with the bits of one that was never saved, and a file that
// does not fit or is damaged changes nothing.
#include "tests/support/saved.h"

#include <map>

#include "engine/host.h"
#include "engine/variants.h"
#include "qsf/base/bytes.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using Bytes = std::vector<std::byte>;

Ids known(const Session& session, std::uint32_t sequence = 0) {
  const std::span<const std::uint32_t> ids = session.tokens(sequence);
  return {ids.begin(), ids.end()};
}

OpenOptions in_type(KvType kv) {
  OpenOptions options;
  options.kv = kv;
  return options;
}

/// The generation of a session that knows nothing else.
Generation anew(const SmallFile& file, const Ids& ids, std::uint32_t max_tokens, const OpenOptions& options) {
  return Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, max_tokens));
}

Bytes saved_of(Session& session, const HowSaved& how = {}) {
  Result<Bytes> file = saved(session, how);
  EXPECT_TRUE(file) << file.error().sentence;
  return file ? std::move(*file) : Bytes{};
}

void expect_restored(Session& session, std::span<const std::byte> file, const HowSaved& how = {}) {
  const Status status = restored(session, file, how);
  EXPECT_TRUE(status) << status.error().sentence;
}

/// Makes the header's CRC agree with its bytes again.
void repair_header(Bytes& file) { store_le(&file[124], crc32(std::span(file).first(124))); }
/// The same of a payload without a note before it.
void repair_payload(Bytes& file) {
  const auto payload = std::span(file).subspan(kSavedHeaderSize);
  store_le(&file[file.size() - 4], crc32(payload.first(payload.size() - 4)));
}

constexpr std::array kKvTypes{KvType::f32, KvType::f16, KvType::q8, KvType::q4, KvType::q2, KvType::k8v4};

TEST(Saved, GoesOnWithTheSameBits) {
  const Ids first = some_tokens(23, 40), second{7, 3, 11, 9};
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    for (const KvType kv : kKvTypes) {
      Host host(file.bytes, 8 * kMiB, in_type(kv));
      (void)host.generate(greedy(first, 6));
      const Bytes bytes = saved_of(*host.session);
      const Ids tokens = known(*host.session);
      const Generation expected = host.generate(greedy(second, 6));
      for (const std::uint32_t chunk : {1u, 5u, 0u}) {
        const std::string what =
            std::string(variant.name) + ", " + std::string(kv_name(kv)) + ", chunk " + std::to_string(chunk);
        OpenOptions options = in_type(kv);
        options.chunk = chunk;
        options.stream_all = chunk == 1;
        options.max_seq_len = chunk == 0 ? 0 : 48;
        Host other(file.bytes, 8 * kMiB, options);
        expect_restored(*other.session, bytes, {.piece = chunk == 1 ? std::size_t{7} : std::size_t{4096}});
        EXPECT_EQ(known(*other.session), tokens) << what;
        const Generation made = other.generate(greedy(second, 6));
        EXPECT_EQ(other.session->sequence_stats().prompt_tokens, 5u) << "the new ones and one that was not fed";
        EXPECT_EQ(made.tokens, expected.tokens) << what;
        EXPECT_EQ(made.hash, expected.hash) << what;
      }
    }
  }
}

TEST(Saved, GoesOnInAnySequenceNextToOthers) {
  const Ids first = some_tokens(23, 40), second{7, 3, 11, 9}, others = some_tokens(30, 37);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    Host host(file.bytes, 8 * kMiB, {});
    (void)host.generate(greedy(first, 6));
    const Bytes bytes = saved_of(*host.session);
    const Generation expected = host.generate(greedy(second, 6));
    OpenOptions options;
    options.sequences = 3;
    options.chunk = 5;
    Host many(file.bytes, 8 * kMiB, options);
    ASSERT_TRUE(many.session->start(greedy(others, 9), 0));
    int steps = 20;
    many.stop_when = [&] { return --steps == 0; };
    (void)many.pump();  // a pass of the first is under way
    expect_restored(*many.session, bytes, {.sequence = 2});
    ASSERT_TRUE(many.session->start(greedy(second, 6), 2));
    many.stop_when = nullptr;
    while (many.session->end(0) == End::none || many.session->end(2) == End::none) (void)many.pump();
    EXPECT_EQ(many.session->logits_hash(2), expected.hash) << variant.name;
    EXPECT_EQ(many.session->logits_hash(0), anew(file, others, 9, {}).hash) << variant.name;
    const Bytes again = saved_of(*many.session, {.sequence = 2});
    EXPECT_EQ(again, saved_of(*host.session)) << variant.name;
  }
}

TEST(Saved, GoesBackAsOneThatWasComputed) {
  const Ids first = some_tokens(21, 40), second{9, 8, 2, 6, 5}, third{4, 30};
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    OpenOptions options;
    options.chunk = 4;
    Host host(file.bytes, 8 * kMiB, options);
    (void)host.generate(greedy(first, 4));
    (void)host.generate(greedy(second, 5));
    const Bytes bytes = saved_of(*host.session);
    ASSERT_EQ(host.session->tokens().size(), 35u);
    for (std::uint32_t n = 0; n <= 35; n += n < 19 ? 6 : 1) {
      Host other(file.bytes, 8 * kMiB, {});
      expect_restored(*other.session, bytes);
      ASSERT_TRUE(other.session->rewind(n));
      const Ids all = joined(known(*other.session), third);
      const Generation made = other.generate(greedy(third, 4)), expected = anew(file, all, 4, {});
      EXPECT_EQ(made.tokens, expected.tokens) << variant.name << ", back to " << n;
      EXPECT_EQ(made.hash, expected.hash) << variant.name << ", back to " << n;
    }
  }
}

// After more positions than are exact, and back to positions whose exact ones are saved, and to others.
TEST(Saved, RotatedTypesGoOnAndBack) {
  SmallOptions o;
  o.max_seq_len = 400;
  const SmallFile file = small_file(o);
  const Ids first = some_tokens(150, 40), second{7, 3, 11, 9};
  for (const KvType kv : {KvType::k8v4, KvType::k3v3}) {
    Host host(file.bytes, 8 * kMiB, in_type(kv));
    (void)host.generate(greedy(first, 6));
    const Bytes bytes = saved_of(*host.session);
    for (const std::uint32_t n : {40u, 130u, 143u, 149u, 156u}) {
      Host other(file.bytes, 8 * kMiB, in_type(kv));
      expect_restored(*other.session, bytes);
      ASSERT_TRUE(other.session->rewind(n));
      const Ids all = joined(known(*other.session), second);
      const Generation made = other.generate(greedy(second, 4)), expected = anew(file, all, 4, in_type(kv));
      EXPECT_EQ(made.hash, expected.hash) << kv_name(kv) << ", back to " << n;
      EXPECT_EQ(other.session->sequence_stats().prompt_tokens < 25, n > 140) << n;
    }
  }
}

TEST(Saved, KeepsWhatAnAnswerIsTakenBackTo) {
  for (const char* name : {"plain", "window", "Mamba-2"}) {
    const std::vector<Named> all = variants();
    const auto variant = std::ranges::find(all, std::string_view(name), &Named::name);
    ASSERT_NE(variant, all.end());
    const SmallFile file = small_file(variant->options);
    Host host(file.bytes, 8 * kMiB, {}), other(file.bytes, 8 * kMiB, {});
    (void)host.generate(greedy(some_tokens(21, 40), 4));
    (void)host.generate(greedy(Ids{9, 8, 2}, 5));
    expect_restored(*other.session, saved_of(*host.session));
    // The second turn began to be fed at 24: the last token of the first answer had not been.
    for (Session* session : {host.session, other.session}) {
      ASSERT_TRUE(session->rewind(25));
      EXPECT_EQ(session->sequence_stats().position, std::string_view(name) == "Mamba-2" ? 24u : 25u) << name;
    }
  }
}

TEST(Saved, TheFirstTokensAreSavedAlone) {
  const Ids first = some_tokens(21, 40), second{9, 8, 2};
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    Host host(file.bytes, 8 * kMiB, {});
    (void)host.generate(greedy(first, 5));
    for (const std::uint32_t n : {0u, 1u, 13u, 20u, 21u, 26u}) {
      Host other(file.bytes, 8 * kMiB, {});
      expect_restored(*other.session, saved_of(*host.session, {.n_tokens = n}));
      const Ids all = joined(Ids(host.session->tokens().begin(), host.session->tokens().begin() + n), second);
      EXPECT_EQ(other.generate(greedy(second, 4)).hash, anew(file, all, 4, {}).hash) << variant.name << ", " << n;
    }
    EXPECT_EQ(error_of(host.session->begin_save({}, 27)).code, ErrorCode::bad_argument);
  }
}

// The same tokens are the same bytes, however they were computed and by whatever pieces they left.
TEST(Saved, TheBytesDependOnNothingElse) {
  const Ids first = some_tokens(23, 40);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    Bytes expected;
    for (std::size_t i = 0; !instruction_set(i).empty() || i < 4; ++i) {
      OpenOptions options;
      options.isa = instruction_set(i);
      options.chunk = i == 1 ? 23 : 0;
      options.stream_all = i == 2;
      options.max_seq_len = i == 3 ? 31 : 0;
      options.sequences = i == 2 ? 2 : 1;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_NE(host.session, nullptr);
      (void)host.generate(greedy(first, 6));
      const Bytes bytes = saved_of(*host.session, {.piece = i == 0 ? 1 : 1000 * i});
      if (expected.empty()) expected = bytes;
      const bool has_states = load_le<std::uint64_t>(&bytes[88]) != 0;
      if (has_states && (i == 1 || i == 3)) continue;  // the checkpoint is before the last pass of the prompt
      EXPECT_EQ(bytes, expected) << variant.name << ", " << i;
    }
    Host host(file.bytes, 8 * kMiB, {});
    expect_restored(*host.session, expected);
    EXPECT_EQ(saved_of(*host.session), expected) << variant.name << ", restored and saved again";
  }
}

TEST(Saved, HasTheHostsNote) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {}), other(file.bytes, 8 * kMiB, {});
  (void)host.generate(greedy(some_tokens(9, 40), 2));
  constexpr std::string_view kNote = R"({"messages":[]})";
  const Bytes bytes = saved_of(*host.session, {.note = kNote});
  const Result<SavedHeader> header = read_saved_header(bytes, bytes.size());
  ASSERT_TRUE(header) << header.error().sentence;
  const auto note = std::span(bytes).subspan(kSavedHeaderSize, header->note.bytes);
  EXPECT_EQ(std::memcmp(note.data(), kNote.data(), kNote.size()), 0);
  EXPECT_TRUE(check_note(*header, note));
  EXPECT_EQ(error_of(check_note(*header, note.first(3))).code, ErrorCode::bad_checksum);
  const Bytes changed(kNote.size());
  EXPECT_EQ(error_of(check_note(*header, changed)).code, ErrorCode::bad_checksum);
  expect_restored(*other.session, bytes);
  EXPECT_EQ(known(*other.session), known(*host.session));
  EXPECT_EQ(error_of(host.session->begin_save({kMaxNoteBytes + 1, 0})).code, ErrorCode::bad_argument);
}

TEST(Saved, AnEmptySequenceAndOneThatIsNotComputed) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {}), other(file.bytes, 8 * kMiB, {});
  (void)other.generate(greedy(some_tokens(9, 40), 2));
  expect_restored(*other.session, saved_of(*host.session));
  EXPECT_TRUE(other.session->tokens().empty());
  const Ids ids = some_tokens(12, 40);
  ASSERT_TRUE(host.session->start(greedy(ids, 2)));
  host.session->stop();
  const Bytes bytes = saved_of(*host.session);
  expect_restored(*other.session, bytes);
  EXPECT_EQ(other.session->sequence_stats().position, 0u);
  EXPECT_EQ(other.generate(greedy(Ids{3}, 3)).hash, anew(file, joined(ids, {3}), 3, {}).hash);
}

/// A session with a sequence that goes on, to see that a refusal changed nothing.
struct Untouched {
  explicit Untouched(const SmallFile& file, const OpenOptions& options = {})
      : file(file), options(options), host(file.bytes, 8 * kMiB, options) {
    (void)host.generate(greedy(ids, 3));
    tokens = known(*host.session);
  }

  /// Expects that the file is refused. Gives the error.
  Error refuses(std::span<const std::byte> bytes) {
    const Error error = error_of(restored(*host.session, bytes));
    EXPECT_NE(error.code, ErrorCode::none);
    EXPECT_NE(error.code, ErrorCode::internal) << error.sentence;
    EXPECT_NE(error.sentence[0], 0);
    EXPECT_EQ(known(*host.session), tokens) << error.sentence;
    EXPECT_EQ(host.session->sequence_stats().position, tokens.size() - 1) << error.sentence;
    return error;
  }
  void expect_goes_on() {
    EXPECT_EQ(host.generate(greedy(Ids{5}, 3)).hash, anew(file, joined(tokens, {5}), 3, options).hash);
  }

  const SmallFile& file;
  OpenOptions options;
  Ids ids = some_tokens(11, 40, 9), tokens;
  Host host;
};

Bytes some_saved(const SmallFile& file, const OpenOptions& options = {}) {
  Host host(file.bytes, 8 * kMiB, options);
  (void)host.generate(greedy(some_tokens(23, 40), 6));
  return saved_of(*host.session);
}

TEST(Saved, AFileThatIsCutOrChangedIsRefused) {
  for (const char* name : {"plain", "delta nets, gated attention"}) {
    const std::vector<Named> all = variants();
    const SmallFile file = small_file(std::ranges::find(all, std::string_view(name), &Named::name)->options);
    const Bytes bytes = some_saved(file);
    Untouched session(file);
    for (std::size_t size = 0; size < bytes.size(); size += size < 2 * kSavedHeaderSize ? 1 : 97) {
      const ErrorCode code = session.refuses(std::span(bytes).first(size)).code;
      EXPECT_EQ(code, size < 4 ? ErrorCode::bad_magic : ErrorCode::truncated) << size;
    }
    Bytes longer = bytes;
    longer.push_back({});
    EXPECT_EQ(session.refuses(longer).code, ErrorCode::bad_header);
    for (std::size_t at = 0; at < bytes.size(); at += at < kSavedHeaderSize + 8 ? 1 : 89) {
      for (const int bit : {0, 5, 7}) {
        Bytes flipped = bytes;
        flipped[at] ^= std::byte{1} << bit;
        const ErrorCode code = session.refuses(flipped).code;
        const bool is_token = at >= kSavedHeaderSize && at < kSavedHeaderSize + 29 * 4;
        EXPECT_TRUE(code == ErrorCode::bad_checksum || (is_token && code == ErrorCode::bad_token) ||
                    (at < 4 && code == ErrorCode::bad_magic) || (at < 8 && code == ErrorCode::bad_version))
            << at << " " << static_cast<int>(code);
      }
    }
    session.expect_goes_on();
  }
}

TEST(Saved, NoFieldOfTheHeaderIsBelieved) {
  for (const char* name : {"plain", "window", "short convolutions"}) {
    const std::vector<Named> all = variants();
    const SmallFile file = small_file(std::ranges::find(all, std::string_view(name), &Named::name)->options);
    const Bytes bytes = some_saved(file);
    Untouched session(file);
    for (std::size_t at = 0; at < 124; at += 4) {
      const auto is = load_le<std::uint32_t>(&bytes[at]);
      for (const std::uint32_t value : {0u, 1u, is - 1, is + 1, is ^ 0x80000000u, 0x7fffffffu, ~0u, is / 2, 2 * is}) {
        if (value == is) continue;
        Bytes changed = bytes;
        store_le(&changed[at], value);
        repair_header(changed);
        // These say how far the sequence goes back, which some other file of the same size may say too.
        const Result<SavedHeader> header = read_saved_header(changed, changed.size());
        if (header && (at == 56 || at == 60)) continue;
        if (at == 72) continue;  // the CRC of the note, which is the host's
        (void)session.refuses(changed);
      }
    }
    session.expect_goes_on();
  }
}

TEST(Saved, TokensAreCheckedBeforeAnythingChanges) {
  const SmallFile file = small_file();
  Bytes bytes = some_saved(file);
  store_le(&bytes[kSavedHeaderSize + 4 * 28], 40u);  // the last of them
  repair_payload(bytes);
  Untouched session(file);
  const Error error = session.refuses(bytes);
  EXPECT_EQ(error.code, ErrorCode::bad_token);
  EXPECT_STREQ(error.sentence, "token 40 of the saved sequence is not in the vocabulary of 40");
  session.expect_goes_on();
}

TEST(Saved, NumbersThatAreNoneEndTheGeneration) {
  const SmallFile file = small_file();
  Bytes bytes = some_saved(file, in_type(KvType::f32));
  const std::size_t begin = kSavedHeaderSize + 4 * 29;
  std::fill(bytes.begin() + begin, bytes.end() - 4, std::byte{0xff});
  repair_payload(bytes);
  Host host(file.bytes, 8 * kMiB, in_type(KvType::f32));
  expect_restored(*host.session, bytes);
  EXPECT_EQ(host.generate(greedy(Ids{3}, 2)).error.code, ErrorCode::not_finite);
}

TEST(Saved, AnotherModelTypeOrContextIsRefused) {
  SmallOptions o;
  const SmallFile file = small_file(o);
  o.seed = 2;
  const SmallFile other = small_file(o);
  const Bytes bytes = some_saved(file, in_type(KvType::f16));
  Untouched of_other(other, in_type(KvType::f16)), of_type(file, in_type(KvType::q8));
  const Error model = of_other.refuses(bytes), type = of_type.refuses(bytes);
  EXPECT_EQ(model.code, ErrorCode::mismatch);
  EXPECT_NE(std::string(model.sentence).find("another model"), std::string::npos) << model.sentence;
  EXPECT_EQ(type.code, ErrorCode::mismatch);
  EXPECT_STREQ(type.sentence,
               "the saved sequence has keys and values in f16, and this session in 8bit: a session with kv f16 would "
               "do");
  OpenOptions shorter = in_type(KvType::f16);
  shorter.max_seq_len = 28;
  Untouched of_context(file, shorter);
  const Error context = of_context.refuses(bytes);
  EXPECT_EQ(context.code, ErrorCode::context_full);
  EXPECT_STREQ(context.sentence,
               "the saved sequence has 29 tokens, and the context has room for 28: a context (max_seq_len) of more "
               "than 29 would do");
  of_other.expect_goes_on();
  of_type.expect_goes_on();
  of_context.expect_goes_on();
  shorter.max_seq_len = 29;
  Host full(file.bytes, 8 * kMiB, shorter);
  expect_restored(*full.session, bytes);
  EXPECT_EQ(error_of(full.session->start(greedy(Ids{3}, 2))).code, ErrorCode::context_full);
}

// Some models rotate keys in another way in contexts that are longer than their usual one.
TEST(Saved, AnotherKindOfContextIsRefused) {
  SmallOptions o;
  o.rope_divisors = {1, 1.5f, 3, 8, 2, 4, 6, 9};
  o.model.long_rope_from = 32;
  const SmallFile file = small_file(o);
  OpenOptions usual, longer;
  usual.max_seq_len = 32;
  longer.max_seq_len = 33;
  Untouched in_usual(file, usual), in_longer(file, longer);
  const Error too_long = in_longer.refuses(some_saved(file, usual)),
              too_short = in_usual.refuses(some_saved(file, longer));
  EXPECT_EQ(too_long.code, ErrorCode::mismatch);
  EXPECT_NE(std::string(too_long.sentence).find("of at most 32 would do"), std::string::npos) << too_long.sentence;
  EXPECT_EQ(too_short.code, ErrorCode::mismatch);
  EXPECT_NE(std::string(too_short.sentence).find("of more than 32 would do"), std::string::npos) << too_short.sentence;
  in_usual.expect_goes_on();
  in_longer.expect_goes_on();
}

TEST(Saved, ASequenceThatChangesMeanwhileIsNeitherSavedNorReplaced) {
  const SmallFile file = small_file();
  const Bytes bytes = some_saved(file);
  const auto header = std::span(bytes).first(kSavedHeaderSize), payload = std::span(bytes).subspan(kSavedHeaderSize);
  Bytes buffer(100);
  Host host(file.bytes, 8 * kMiB, {});
  Session& session = *host.session;
  EXPECT_EQ(error_of(session.save(buffer)).code, ErrorCode::bad_state);
  EXPECT_EQ(error_of(session.restore(payload)).code, ErrorCode::bad_state);
  EXPECT_EQ(error_of(session.begin_save({}, kAllTokens, 1)).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(session.begin_restore(header, bytes.size(), 1)).code, ErrorCode::bad_argument);
  (void)host.generate(greedy(some_tokens(23, 40), 6));
  ASSERT_TRUE(session.begin_save());
  ASSERT_TRUE(session.save(buffer));
  ASSERT_TRUE(session.begin_restore(header, bytes.size()));
  ASSERT_TRUE(session.restore(payload.first(100)));
  ASSERT_TRUE(session.start(greedy(Ids{3}, 2)));
  EXPECT_EQ(error_of(session.save(buffer)).code, ErrorCode::bad_state);
  EXPECT_EQ(error_of(session.restore(payload.subspan(100))).code, ErrorCode::bad_state);
  EXPECT_EQ(error_of(session.begin_restore(header, bytes.size())).code, ErrorCode::bad_state) << "it runs";
  session.stop();
  ASSERT_TRUE(session.begin_restore(header, bytes.size()));
  const Bytes more(payload.size() + 1);
  EXPECT_EQ(error_of(session.restore(more)).code, ErrorCode::bad_argument);
}

TEST(Saved, AFileThatChangesBetweenItsTwoReadingsLeavesAnEmptySequence) {
  const SmallFile file = small_file();
  const Bytes bytes = some_saved(file);
  const auto header = std::span(bytes).first(kSavedHeaderSize), payload = std::span(bytes).subspan(kSavedHeaderSize);
  for (const std::size_t at : {std::size_t{3}, std::size_t{200}, payload.size() - 1}) {
    Untouched session(file);
    ASSERT_TRUE(session.host.session->begin_restore(header, bytes.size()));
    const Result<bool> checked = session.host.session->restore(payload);
    ASSERT_TRUE(checked && !*checked);
    Bytes changed(payload.begin(), payload.end());
    changed[at] ^= std::byte{1};
    EXPECT_FALSE(session.host.session->restore(changed));
    EXPECT_TRUE(session.host.session->tokens().empty());
    const Ids ids = some_tokens(9, 40);
    EXPECT_EQ(session.host.generate(greedy(ids, 3)).hash, anew(file, ids, 3, {}).hash);
  }
}

// A stopped sequence whose columns are still in a pass of others is not restored into.
TEST(Saved, WaitsForAPassThatStillWrites) {
  const SmallFile file = small_file();
  const Bytes bytes = some_saved(file);
  OpenOptions options;
  options.sequences = 2;
  Host host(file.bytes, 8 * kMiB, options);
  ASSERT_TRUE(host.session->start(greedy(some_tokens(9, 40), 9), 0));
  ASSERT_TRUE(host.session->start(greedy(some_tokens(12, 40), 9), 1));
  int steps = 12;
  host.stop_when = [&] { return --steps == 0; };
  (void)host.pump();
  host.session->stop(1);
  EXPECT_EQ(error_of(restored(*host.session, bytes, {.sequence = 1})).code, ErrorCode::bad_state);
  host.stop_when = nullptr;
  while (host.session->end(0) == End::none) (void)host.pump();
  expect_restored(*host.session, bytes, {.sequence = 1});
  ASSERT_TRUE(host.session->start(greedy(Ids{3}, 3), 1));
  while (host.session->end(1) == End::none) (void)host.pump();
  Host alone(file.bytes, 8 * kMiB, {});
  expect_restored(*alone.session, bytes);
  EXPECT_EQ(host.session->logits_hash(1), alone.generate(greedy(Ids{3}, 3)).hash);
}

TEST(Saved, ModelsThatOnlyEmbedKeepNothing) {
  SmallOptions o;
  o.shape = [](std::uint32_t, LayerKind& kind) { kind.bidirectional = 1; };
  const SmallFile file = small_file(o);
  Host host(file.bytes, 8 * kMiB, {});
  ASSERT_NE(host.session, nullptr);
  EXPECT_EQ(error_of(host.session->begin_save()).code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace qsf::test
