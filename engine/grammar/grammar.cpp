#include "qsf/grammar/grammar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "grammar/gbnf.h"
#include "grammar/json_machine.h"
#include "grammar/mask_cache.h"
#include "grammar/masks.h"
#include "grammar/regex_reader.h"
#include "qsf/base/try.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kTermMemo = 1u << 15, kCheckMemo = 1u << 14;
constexpr std::uint32_t kFrames = 4096;  // frames that may gather before those in use are moved together

}  // namespace

struct Grammar::Impl {
  explicit Impl(std::span<std::byte> memory) : store(memory) {}

  bool failed() const { return terms.failed() || profiles.failed(); }
  Error error() const {
    if (!profiles.failed()) return terms.error();
    return make_error(ErrorCode::unsupported,
                      "the schema has more conditions at one place than the {} choices, {} patterns and {} objects "
                      "that can be followed",
                      kMaxSteps, kMaxChecks, kMaxRules);
  }
  bool step(std::uint8_t byte) {
    if (is_json) {
      JsonState next;
      if (!json.step(state, byte, next)) return false;
      state = next;
      return true;
    }
    return TermMachine(terms).step(term, byte, term);
  }

  Store store;
  Terms terms;
  Checks checks;
  Schema schema;
  Profiles profiles;
  JsonMachine json;
  JsonState state;
  std::uint32_t term = 0, first_term = 0;
  bool is_json = false;
  MaskCache masks;
  std::array<JsonState, TokenTrie::kMaxToken + 1> states;
  std::array<std::uint32_t, TokenTrie::kMaxToken + 1> term_states;
};

std::size_t Grammar::memory_for(std::size_t n_tokens) { return kLeastMemory + MaskCache::memory_for(n_tokens); }

Result<Grammar::Impl*> Grammar::begin(std::string_view text, std::span<std::byte> memory) {
  if (text.size() > kMaxText) {
    return make_error(ErrorCode::bad_input, "the grammar has {} bytes; at most {} are read", text.size(), kMaxText);
  }
  Store store(memory);
  void* const at = store.take(sizeof(Impl));
  if (memory.size() < kLeastMemory || at == nullptr) {
    return make_error(ErrorCode::out_of_memory, "a grammar needs {} bytes of memory or more, not {}", kLeastMemory,
                      memory.size());
  }
  Impl* const impl = new (at) Impl(memory.subspan(store.used()));
  if (!impl->terms.init(impl->store, kTermMemo) || !impl->checks.init(impl->store, impl->terms, kCheckMemo)) {
    return impl->terms.error();
  }
  return impl;
}

Result<Grammar> Grammar::of_term(Impl* impl, const Result<std::uint32_t>& term) {
  if (!term) return term.error();
  impl->first_term = *term;
  if (impl->failed()) return impl->error();
  if (!impl->terms.alive(*term)) return make_error(ErrorCode::bad_input, "the grammar allows no text");
  Grammar made;
  made.impl_ = impl;
  made.reset();
  return made;
}

Result<Grammar> Grammar::gbnf(std::string_view text, std::span<std::byte> memory) {
  QSF_LET(impl, begin(text, memory));
  return of_term(impl, read_gbnf(text, impl->terms));
}

Result<Grammar> Grammar::regex(std::string_view text, std::span<std::byte> memory) {
  QSF_LET(impl, begin(text, memory));
  return of_term(impl, read_regex(text, Match::whole, impl->terms));
}

Result<Grammar> Grammar::choices(std::span<const std::string_view> texts, std::span<std::byte> memory) {
  QSF_LET(impl, begin({}, memory));
  const std::uint32_t mark = impl->terms.mark();
  for (const std::string_view text : texts) impl->terms.push(impl->terms.text(text));
  return of_term(impl, impl->terms.join(mark));
}

Result<Grammar> Grammar::json_schema(std::string_view schema, std::span<std::byte> memory, Integers integers) {
  QSF_LET(impl, begin(schema, memory));
  QSF_LET(document, json::Document::read(schema, impl->store));
  QSF_TRY(read_schema(document, integers, impl->store, impl->terms, impl->checks, impl->schema));
  impl->is_json = true;
  const bool fits = impl->profiles.init(impl->store, impl->terms, impl->checks, impl->schema) &&
                    impl->json.init(impl->store, impl->checks, impl->profiles, impl->schema.root);
  if (!fits || impl->failed()) return impl->error();
  Grammar made;
  made.impl_ = impl;
  made.reset();
  bool any = false;
  JsonState next;
  for (std::uint32_t byte = 0; byte < 256 && !any; ++byte) {
    any = byte > ' ' && impl->json.step(impl->state, static_cast<std::uint8_t>(byte), next);
  }
  if (impl->failed()) return impl->error();
  if (!any) return make_error(ErrorCode::bad_input, "the schema allows no value");
  return made;
}

Result<Grammar> Grammar::json(std::span<std::byte> memory) { return json_schema("true", memory); }

void Grammar::reset() {
  impl_->term = impl_->first_term;
  if (!impl_->is_json) return;
  impl_->state = impl_->json.begin();
  impl_->json.release({1, 1, 1});
}

Result<bool> Grammar::accept(std::string_view bytes) {
  Impl& impl = *impl_;
  const JsonState state = impl.state;
  const std::uint32_t term = impl.term;
  const JsonMachine::Mark mark = impl.json.mark();
  bool follows = true;
  for (const char byte : bytes) {
    impl.terms.rest();
    follows = impl.step(static_cast<std::uint8_t>(byte));
    if (!follows || impl.failed()) break;
  }
  if (impl.failed()) return impl.error();
  if (!follows) {
    impl.state = state;
    impl.term = term;
    if (impl.is_json) impl.json.release(mark);
  } else if (impl.is_json && impl.json.mark().frames > kFrames) {
    impl.json.compact(impl.state);
  }
  return follows;
}

bool Grammar::can_end() const {
  if (!impl_->is_json) return impl_->terms.nullable(impl_->term);
  const JsonMachine::Mark mark = impl_->json.mark();
  const bool can = impl_->json.can_end(impl_->state);
  impl_->json.release(mark);
  return can;
}

/// One computation of a mask.
class Grammar::Masking {
 public:
  Masking(Impl& impl, const TokenTrie& trie, std::span<std::uint64_t> bits) : impl_(impl), trie_(trie), bits_(bits) {}

  void run() {
    if (trie_.nodes().empty()) return;
    cached_ = impl_.masks.prepare(impl_.store, trie_);
    if (impl_.is_json) {
      json();
    } else {
      term(impl_.term);
    }
    for (const TokenTrie::Twin& twin : trie_.twins()) {
      if ((bits_[twin.token / 64] >> twin.token % 64 & 1) != 0) visit(twin.other);
    }
  }

 private:
  static bool stay(std::uint32_t, std::uint8_t, const JsonState&) { return false; }
  static bool stay_in(std::uint32_t, std::uint8_t, std::uint32_t) { return false; }
  void visit(std::uint32_t token) { bits_[token / 64] |= std::uint64_t{1} << token % 64; }
  std::uint32_t all() const { return static_cast<std::uint32_t>(trie_.nodes().size()); }
  std::uint32_t end_of(std::uint32_t node) const { return node + trie_.nodes()[node].size; }

  // JSON

  void json() {
    const JsonMachine::Mark mark = impl_.json.mark();
    const JsonState& state = impl_.state;
    const std::uint32_t left = impl_.json.chars_left(state);
    if (state.mode == Mode::string && state.utf8 == 0 && impl_.json.is_free(state, trie_.most_chars())) {
      copy(trie_.in_string(), left);
      for (const TokenTrie::Exit& exit : trie_.exits()) {
        if (exit.chars > left) continue;
        JsonState from = state;
        impl_.json.pass(from, trie_.before(exit));
        from.chars += exit.chars;
        walk_json(exit.node, end_of(exit.node), from);
      }
    } else if (state.mode == Mode::string && state.utf8 == 0 && cached_ && impl_.json.is_local(state) &&
               local(state, left)) {
      // done
    } else {
      walk_json(0, all(), state);
    }
    impl_.json.release(mark);
  }
  void walk_json(std::uint32_t begin, std::uint32_t end, const JsonState& from) {
    walk(trie_, begin, end, impl_.json, from, std::span(impl_.states), [&](std::uint32_t t) { visit(t); }, stay);
  }
  /// Allows the tokens of a mask that have at most `left` characters.
  void copy(std::span<const std::uint64_t> mask, std::uint32_t left) {
    for (std::size_t w = 0; w < bits_.size(); ++w) {
      std::uint64_t word = mask[w];
      for (std::uint64_t rest = left < trie_.most_chars() ? word : 0; rest != 0; rest &= rest - 1) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(rest));
        if (trie_.chars()[64 * w + bit] > left) word &= ~(std::uint64_t{1} << bit);
      }
      bits_[w] = word;
    }
  }
  /// Goes on where a token leaves a string or begins an escape in it.
  void leave(const JsonState& state, const MaskCache::Exit& exit, std::uint32_t left) {
    if (exit.chars > left) return;
    JsonState from = state;
    from.text = exit.state;
    from.chars += exit.chars;
    walk_json(exit.node, end_of(exit.node), from);
  }
  /// Takes the part inside of the string from the cache. Returns false if it has too many exits.
  bool local(const JsonState& state, std::uint32_t left) {
    MaskCache::Entry& entry = impl_.masks.find(state.text);
    if (entry.key == 0) {
      JsonState from = state;
      from.chars = 0;
      impl_.json.unlimited = true;  // the lengths are looked at below
      walk(
          trie_, 0, all(), impl_.json, from, std::span(impl_.states),
          [&](std::uint32_t t) { entry.mask[t / 64] |= std::uint64_t{1} << t % 64; },
          [&](std::uint32_t node, std::uint8_t byte, const JsonState& at) {
            if (at.utf8 != 0 || (byte != '"' && byte != '\\')) return false;
            entry.add({node, at.text, at.chars});
            return true;
          });
      impl_.json.unlimited = false;
      entry.key = state.text;
    }
    if (!entry.whole) return false;
    copy(entry.mask, left);
    for (std::uint32_t i = 0; i < entry.n_exits; ++i) leave(state, entry.exits[i], left);
    return true;
  }

  // Terms

  /// Allows the tokens of a term: each alternative by itself, its first part from the cache.
  void term(std::uint32_t term) {
    std::uint32_t parts = 0;
    for (std::uint32_t t = term; impl_.terms.op(t) == TermOp::alt; t = impl_.terms.second(t)) ++parts;
    if (!cached_ || parts > kMaxParts) {
      walk_term(0, all(), term);
      return;
    }
    for (; impl_.terms.op(term) == TermOp::alt; term = impl_.terms.second(term)) part(impl_.terms.first(term));
    part(term);
  }
  void walk_term(std::uint32_t begin, std::uint32_t end, std::uint32_t from) {
    TermMachine machine(impl_.terms);
    walk(trie_, begin, end, machine, from, std::span(impl_.term_states), [&](std::uint32_t t) { visit(t); }, stay_in);
  }
  void part(std::uint32_t term) {
    if (term <= kEmpty) return;
    const bool cat = impl_.terms.op(term) == TermOp::cat;
    const std::uint32_t head = cat ? impl_.terms.first(term) : term;
    const std::uint32_t rest = cat ? impl_.terms.second(term) : kEmpty;
    if (!impl_.terms.alive(rest)) return;  // the head alone has texts that nothing can follow
    MaskCache::Entry& entry = impl_.masks.find(head);
    if (entry.key == 0) {
      ExitMachine machine{TermMachine(impl_.terms), impl_.terms, entry};
      walk(
          trie_, 0, all(), machine, head, std::span(impl_.term_states),
          [&](std::uint32_t t) { entry.mask[t / 64] |= std::uint64_t{1} << t % 64; },
          [&](std::uint32_t node, std::uint8_t, std::uint32_t) {
            machine.node = node;
            return false;
          });
      entry.key = head;
    }
    if (!entry.whole) {
      walk_term(0, all(), term);
      return;
    }
    for (std::size_t w = 0; w < bits_.size(); ++w) bits_[w] |= entry.mask[w];
    if (rest == kEmpty) return;
    for (std::uint32_t i = 0; i < entry.n_exits; ++i) {
      walk_term(entry.exits[i].node + 1, end_of(entry.exits[i].node), rest);
    }
    if (impl_.terms.nullable(head)) walk_term(0, all(), rest);
  }
  /// Follows a term, and notes the nodes after which it may end.
  struct ExitMachine {
    using State = std::uint32_t;
    TermMachine machine;
    Terms& terms;
    MaskCache::Entry& entry;
    std::uint32_t node = 0;

    bool step(State from, std::uint8_t byte, State& to) {
      if (!machine.step(from, byte, to)) return false;
      if (terms.nullable(to)) entry.add({node, 0, 0});
      return true;
    }
  };

  static constexpr std::uint32_t kMaxParts = 4;

  Impl& impl_;
  const TokenTrie& trie_;
  std::span<std::uint64_t> bits_;
  bool cached_ = false;
};

Status Grammar::mask(const TokenTrie& trie, std::span<std::uint64_t> bits) {
  Impl& impl = *impl_;
  if (bits.size() != mask_words(trie.n_tokens())) {
    return make_error(ErrorCode::bad_argument, "the mask has {} words, not {}", bits.size(),
                      mask_words(trie.n_tokens()));
  }
  std::fill(bits.begin(), bits.end(), 0);
  impl.terms.rest();
  Masking(impl, trie, bits).run();
  return impl.failed() ? Status(impl.error()) : Status();
}

std::size_t Grammar::forced(std::span<char> out) {
  Impl& impl = *impl_;
  const JsonState state = impl.state;
  const std::uint32_t term = impl.term;
  const JsonMachine::Mark mark = impl.json.mark();
  std::size_t n = 0;
  while (n < out.size() && !can_end()) {
    const JsonState here = impl.state;
    const std::uint32_t here_term = impl.term;
    const bool in_string = here.mode == Mode::string;
    std::uint32_t only = 0, found = 0;
    bool space = false;
    for (std::uint32_t byte = 0; byte < 256 && found < 2; ++byte) {
      impl.terms.rest();
      const bool follows = impl.step(static_cast<std::uint8_t>(byte));
      impl.state = here;
      impl.term = here_term;
      const bool is_blank = byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
      space = space || (follows && byte == ' ');
      if (!follows || (impl.is_json && (in_string ? byte == '\\' : is_blank))) continue;
      only = byte;
      ++found;
    }
    if (impl.is_json && !in_string && space && n > 0 && (out[n - 1] == ':' || out[n - 1] == ',')) {
      only = ' ';
      found = 1;
    }
    if (found != 1 || impl.failed()) break;
    (void)impl.step(static_cast<std::uint8_t>(only));
    out[n++] = static_cast<char>(only);
  }
  impl.state = state;
  impl.term = term;
  if (impl.is_json) impl.json.release(mark);
  return n;
}

std::uint64_t Grammar::steps() const { return impl_->terms.steps(); }

std::size_t Grammar::used() const { return sizeof(Impl) + impl_->store.used(); }

}  // namespace qsf::grammar
