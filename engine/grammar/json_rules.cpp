// The conditions on members and elements in the frames of a JSON text.
#include <algorithm>
#include <array>

#include "grammar/json_machine.h"

namespace qsf::grammar {

Status3 JsonMachine::object_rule(const Profile& p, const Frame& f, std::uint32_t slot, const Trial& t) const {
  if ((t.failed >> slot & 1) != 0) return Status3::no;
  const ProfileRule& own = profiles_->rule(p, slot);
  const ObjectRule& rule = profiles_->object(p, slot);
  std::uint32_t missing = 0;
  for (std::uint32_t i = 0; i < own.n_required; ++i) {
    const std::uint32_t name = profiles_->pooled(own.first_required + i);
    missing += name != t.name && !seen(f, name) ? 1 : 0;
  }
  if (t.count > rule.most || missing > rule.most - t.count) return Status3::no;
  const bool enough = missing == 0 && t.count >= rule.least;
  if (t.final) return enough ? Status3::yes : Status3::no;
  bool settled = rule.n_patterns == 0 && rule.others == kAlwaysNode && rule.names == kAlwaysNode &&
                 rule.most == kNoLimit && (t.pending >> slot & 1) == 0;
  for (std::uint32_t i = 0; i < own.n_members && settled; ++i) {
    const std::uint32_t name = profiles_->pooled(own.first_member + i);
    settled = name == t.name || seen(f, name);
  }
  return enough && settled ? Status3::yes : Status3::open;
}

Status3 JsonMachine::array_rule(const Profile& p, const Frame& f, std::uint32_t slot, const Trial& t) const {
  if ((t.failed >> slot & 1) != 0 || t.count > profiles_->array(p, slot).most) return Status3::no;
  const ArrayRule& rule = profiles_->array(p, slot);
  const std::uint32_t counter = profiles_->rule(p, p.n_objects + slot).contains;
  const std::uint32_t contained = counter == kNoName ? 0 : f.contained[counter];
  if (contained > rule.most_contained) return Status3::no;
  const bool enough = t.count >= rule.least && contained >= rule.least_contained;
  if (t.final) return enough ? Status3::yes : Status3::no;
  const bool settled = t.count >= rule.n_items && rule.others == kAlwaysNode && rule.contains == 0 &&
                       rule.most == kNoLimit && (t.pending >> slot & 1) == 0;
  return enough && settled ? Status3::yes : Status3::open;
}

/// Writes the status of each root of the frame's profile.
void JsonMachine::rules(const Profile& p, const Frame& f, const Trial& t, Status3* roots) const {
  std::array<Status3, 2 * kMaxRules> own;
  const std::uint32_t n = f.object ? p.n_objects : p.n_arrays;
  for (std::uint32_t i = 0; i < n; ++i) own[i] = f.object ? object_rule(p, f, i, t) : array_rule(p, f, i, t);
  std::array<std::uint64_t, 64> names;
  Facts facts;
  facts.type = f.object ? Type::object : Type::array;
  facts.final = t.final;
  facts.rules = {own.data(), n};
  // Only a condition "has" reads the names; sets of more than 4096 names keep the trial's out of sight.
  const std::uint32_t n_words = (p.n_names + 63) / 64;
  if (f.object && n_words <= names.size()) {
    for (std::uint32_t i = 0; i < n_words; ++i) names[i] = words_[f.seen + i];
    if (t.name != kNoName) names[t.name / 64] |= std::uint64_t{1} << t.name % 64;
    facts.seen = names.data();
  }
  profiles_->evaluate(p, facts, roots);
}

/// Whether some end of the text is possible if the frame changes so.
bool JsonMachine::holds(std::uint32_t id, const Trial& t) const {
  const Frame& f = frames_[id];
  const Profile& p = (*profiles_)[f.profile];
  if (f.strict && p.joint && !t.final) {
    const std::uint32_t n = f.object ? p.n_objects : p.n_arrays;
    if (t.failed != 0) return false;
    for (std::uint32_t i = 0; i < n; ++i) {
      if ((f.object ? object_rule(p, f, i, t) : array_rule(p, f, i, t)) == Status3::no) return false;
    }
    return true;
  }
  std::array<Status3, kMaxRoots> roots;
  rules(p, f, t, roots.data());
  return supports(f.parent, roots.data(), f.strict);
}

/// Whether some end of the text is possible if the value in the frame has these roots.
bool JsonMachine::supports(std::uint32_t id, const Status3* roots, bool strict) const {
  if (id == 0) return roots[0] != Status3::no;
  const Frame& f = frames_[id];
  const ValueClass& c = profiles_->value_class(f.value);
  Trial t = trial(f);
  for (std::uint32_t i = 0; i < c.n_links; ++i) {
    const Link& link = profiles_->link(c, i);
    const std::uint64_t rule = std::uint64_t{1} << link.slot;
    if (roots[link.root] == Status3::open) t.pending |= rule;
    if (roots[link.root] != Status3::no) continue;
    if (strict) return false;
    if (!link.counts) t.failed |= rule;
  }
  // A rule that is fulfilled for sure matters only to conditions that are not joint.
  const bool joint = f.strict && (*profiles_)[f.profile].joint;
  return (t.failed == f.failed && (joint || strict)) || holds(id, t);
}

/// Returns the rules that a value of a class may fail.
std::uint64_t JsonMachine::linked(const ValueClass& c) const {
  std::uint64_t rules = 0;
  for (std::uint32_t i = 0; i < c.n_links; ++i) rules |= std::uint64_t{1} << profiles_->link(c, i).slot;
  return rules;
}

/// Whether every root of a class must hold.
bool JsonMachine::is_strict(std::uint32_t id, std::uint32_t value_class) const {
  const Frame& f = frames_[id];
  const ValueClass& c = profiles_->value_class(value_class);
  if (c.counted) return false;
  if (f.strict && (*profiles_)[f.profile].joint) return true;
  if (c.n_links > 16) return false;
  for (std::uint32_t i = 0; i < c.n_links; ++i) {
    Trial t = trial(f);
    t.pending = linked(c);
    const std::uint32_t root = profiles_->link(c, i).root;
    for (std::uint32_t j = 0; j < c.n_links; ++j) {
      if (profiles_->link(c, j).root == root) t.failed |= std::uint64_t{1} << profiles_->link(c, j).slot;
    }
    if (t.failed == f.failed || holds(id, t)) return false;
  }
  return true;
}

/// Expects a value of a class in the innermost frame, which must be a copy that may change.
bool JsonMachine::enter(State& s, std::uint32_t value_class) {
  frames_[s.frame].value = value_class;
  s.profile = profiles_->value_class(value_class).profile;
  s.strict = is_strict(s.frame, value_class);
  return !profiles_->failed();
}

/// Whether a value of a class may have some type. Only a frame whose conditions must all hold excludes all of them.
bool JsonMachine::value_possible(const Frame& f, const ValueClass& c) const {
  return !f.strict || !(*profiles_)[f.profile].joint || c.counted || (*profiles_)[c.profile].types != 0;
}

/// Whether a member may come now.
bool JsonMachine::member_possible(std::uint32_t id, std::uint32_t name, std::uint64_t patterns,
                                  std::uint64_t failing) const {
  return answer({patterns, failing, id, name, 1, false},
                [&] { return find_member_possible(id, name, patterns, failing); });
}
bool JsonMachine::find_member_possible(std::uint32_t id, std::uint32_t name, std::uint64_t patterns,
                                       std::uint64_t failing) const {
  const Frame& f = frames_[id];
  if (name != kNoName && seen(f, name)) return false;
  const ValueClass& c = profiles_->value_class(profiles_->member(f.profile, name, patterns));
  if (!value_possible(f, c)) return false;
  Trial t = trial(f);
  t.failed |= c.failing | failing;
  t.pending = linked(c);
  t.count = f.count + 1;
  t.name = name;
  return holds(id, t);
}

/// Whether a member may come now whatever set of patterns its name matches, and nothing else decides about names.
bool JsonMachine::any_patterns_possible(std::uint32_t id) const {
  constexpr std::uint32_t kMostPatterns = 4;  // whose sets are tried
  const Frame& f = frames_[id];
  const Profile& p = (*profiles_)[f.profile];
  // If every condition must hold, patterns are possible together if each is, and a type is left to their values.
  const bool alone = f.strict && p.joint;
  if (p.key_profile != 0 || (p.n_patterns > kMostPatterns && !alone)) return false;
  std::uint32_t types = ~0u;
  const std::uint64_t end = std::uint64_t{1} << p.n_patterns;
  for (std::uint64_t patterns = 1; patterns < end; patterns = alone ? 2 * patterns : patterns + 1) {
    if (!member_possible(id, kNoName, patterns, 0)) return false;
    if (!alone) continue;
    const ValueClass& c = profiles_->value_class(profiles_->member(f.profile, kNoName, patterns));
    types &= (*profiles_)[c.profile].types;
  }
  return types != 0;
}

/// Whether a member of a name may come now; the first `shared` bytes of the name led to the state `text`.
bool JsonMachine::name_possible(std::uint32_t id, std::uint32_t name, std::uint32_t text, std::uint32_t shared) const {
  const Profile& p = (*profiles_)[frames_[id].profile];
  std::uint64_t patterns = 0, failing = 0;
  if (p.n_patterns != 0 || p.key_profile != 0) {
    const std::string_view bytes = checks_->name(name);
    for (const char byte : bytes.substr(shared)) text = checks_->step(text, static_cast<std::uint8_t>(byte));
    const Verdicts& v = checks_->verdicts(text);
    const auto chars = static_cast<std::uint32_t>(std::count_if(
        bytes.begin(), bytes.end(), [](char c) { return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80; }));
    patterns = v.now >> 1 & ((std::uint64_t{1} << p.n_patterns) - 1);
    failing = profiles_->failing_names(p, v, chars, true);
  }
  return member_possible(id, name - p.names, patterns, failing);
}

/// Whether a member may come now; `open`: one whose name is not among the profile's and that no pattern matches.
bool JsonMachine::key_possible(std::uint32_t id, bool& open) const {
  if (!any_member_possible(id, open)) return false;
  State name;
  name.frame = id;
  name.text = (*profiles_)[frames_[id].profile].key;
  name.key = true;
  name.open = open;
  return may_differ(name);
}

bool JsonMachine::any_member_possible(std::uint32_t id, bool& open) const {
  const Frame& f = frames_[id];
  const Profile& p = (*profiles_)[f.profile];
  open = member_possible(id, kNoName, 0, 0);
  if (open) return true;
  for (std::uint32_t i = 0; i < p.n_patterns; ++i) {
    if (member_possible(id, kNoName, std::uint64_t{1} << i, 0)) return true;
  }
  for (std::uint32_t i = 0; i < p.n_names; ++i) {
    if (name_possible(id, p.names + i, p.key, 0)) return true;
  }
  return false;
}

/// Whether a name that begins with the text so far may come.
bool JsonMachine::key_alive(const State& s) const {
  const Frame& f = frames_[s.frame];
  const Profile& p = (*profiles_)[f.profile];
  const Verdicts& v = checks_->verdicts(s.text);
  const std::uint64_t mask = (std::uint64_t{1} << p.n_patterns) - 1;
  const std::uint64_t failing = profiles_->failing_names(p, v, s.chars, false);
  const std::uint64_t sure = v.yes >> 1 & mask;
  if (p.n_names == 0 && p.n_patterns == 0 && p.key_profile == 0) return s.open;
  if (sure == 0 && failing == 0 ? s.open : member_possible(s.frame, kNoName, sure, failing)) return true;
  for (std::uint32_t i = 0; i < p.n_patterns; ++i) {
    if ((v.no >> (i + 1) & 1) != 0) continue;
    if (member_possible(s.frame, kNoName, sure | std::uint64_t{1} << i, failing)) return true;
  }
  const Checks::Names at = checks_->names_at(s.text, 0);
  for (std::uint32_t i = at.first; i < at.last; ++i) {
    if (name_possible(s.frame, i, s.text, at.shared)) return true;
  }
  return false;
}

bool JsonMachine::is_taken(const Frame& frame, std::uint32_t name_hash) const {
  for (std::uint32_t k = frame.keys; k != 0; k = keys_[k].before) {
    if (keys_[k].hash == name_hash) return true;
  }
  return false;
}

/// Whether a name that begins with the text so far may be another one than those that the object has. A pattern of
/// limited length has few names.
bool JsonMachine::may_differ(const State& s) const {
  constexpr std::uint32_t kMostSteps = 64;
  const Frame& f = frames_[s.frame];
  const Profile& p = (*profiles_)[f.profile];
  if (f.keys == 0 || !p.keys_differ) return true;
  // A pattern that any text may go on to has names without end.
  if (p.n_patterns == 1 && p.key_profile == 0 && checks_->follows_any(s.text, 1) &&
      member_possible(s.frame, kNoName, 1, 0)) {
    return true;
  }
  std::uint32_t steps = kMostSteps;
  return differs(s, steps);
}

/// Looks for such a name, a byte after the other. Returns true if `steps` do not suffice.
bool JsonMachine::differs(const State& s, std::uint32_t& steps) const {
  if (steps-- == 0) return true;
  const NameEnd end = name_end(s);
  const bool is_taken_name = end.name == kNoName && is_taken(frames_[s.frame], s.keys);
  if (!is_taken_name && member_possible(s.frame, end.name, end.patterns, end.failing)) return true;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    State next = s;
    next.text = checks_->step(s.text, static_cast<std::uint8_t>(byte));
    next.keys = static_cast<std::uint32_t>(mix(s.keys, static_cast<std::uint8_t>(byte)));
    ++next.chars;
    if (!key_alive(next)) continue;
    if (byte >= 0x80 || differs(next, steps)) return true;
  }
  return false;
}

JsonMachine::NameEnd JsonMachine::name_end(const State& s) const {
  const Profile& p = (*profiles_)[frames_[s.frame].profile];
  const Verdicts& v = checks_->verdicts(s.text);
  NameEnd end{kNoName, v.now >> 1 & ((std::uint64_t{1} << p.n_patterns) - 1),
              profiles_->failing_names(p, v, s.chars, true)};
  if (p.names != 0 && (v.now & 1) != 0) end.name = checks_->names_at(s.text, 0).first - p.names;
  return end;
}

bool JsonMachine::end_key(State& s) {
  Frame f = frames_[s.frame];
  const Profile& p = (*profiles_)[f.profile];
  const auto [name, patterns, failing] = name_end(s);
  if (!member_possible(s.frame, name, patterns, failing)) return false;
  if (name == kNoName && p.keys_differ) {
    if (is_taken(f, s.keys)) return false;
    f.keys = keys_.add({s.keys, f.keys});
  }
  const std::uint32_t value_class = profiles_->member(f.profile, name, patterns);
  f.failed |= profiles_->value_class(value_class).failing | failing;
  ++f.count;
  if (name != kNoName) {
    const std::uint32_t n_words = (p.n_names + 63) / 64, before = f.seen;
    f.seen = words_.size();
    for (std::uint32_t i = 0; i < n_words; ++i) words_.add(words_[before + i]);
    if (f.seen + name / 64 < words_.size()) words_[f.seen + name / 64] |= std::uint64_t{1} << name % 64;
  }
  const std::uint32_t made = frames_.add(f);
  if (made == 0) return false;
  s.frame = made;
  s.mode = Mode::colon;
  return enter(s, value_class);
}

bool JsonMachine::push(State& s, bool object) {
  Frame f;
  f.parent = s.frame;
  f.profile = s.profile;
  f.strict = s.strict;
  f.object = object;
  f.depth = static_cast<std::uint8_t>(s.frame == 0 ? 1 : frames_[s.frame].depth + 1);
  if (f.depth > kMaxFrames) return false;
  const Profile& p = (*profiles_)[f.profile];
  if (object && p.n_names != 0) {
    f.seen = words_.size();
    for (std::uint32_t i = 0; i < (p.n_names + 63) / 64; ++i) words_.add(0);
  }
  s.frame = frames_.add(f);
  s.mode = object ? Mode::first_key : Mode::first_item;
  return s.frame != 0 && holds(s.frame, trial(f));
}

/// Ends the innermost frame.
bool JsonMachine::close(State& s) {
  const Frame& f = frames_[s.frame];
  Trial t = trial(f);
  t.final = true;
  std::array<Status3, kMaxRoots> roots;
  rules((*profiles_)[f.profile], f, t, roots.data());
  s.strict = f.strict;
  s.frame = f.parent;
  return complete(s, roots.data());
}

/// Takes a value whose roots are known.
bool JsonMachine::complete(State& s, const Status3* roots) {
  if (!supports(s.frame, roots, s.strict)) return false;
  s.spaces = 0;
  s.mode = s.frame == 0 ? Mode::done : Mode::after;
  if (s.frame == 0) return true;
  Frame f = frames_[s.frame];
  const ValueClass& c = profiles_->value_class(f.value);
  bool changed = false;
  for (std::uint32_t i = 0; i < c.n_links; ++i) {
    const Link& link = profiles_->link(c, i);
    const bool yes = roots[link.root] == Status3::yes;
    if (link.counts && yes) {
      const Profile& p = (*profiles_)[f.profile];
      ++f.contained[profiles_->rule(p, p.n_objects + link.slot).contains];
      changed = true;
    } else if (!link.counts && !yes) {
      f.failed |= std::uint64_t{1} << link.slot;
      changed = true;
    }
  }
  if (!changed) return true;
  s.frame = frames_.add(f);
  return s.frame != 0 && (!c.counted || holds(s.frame, trial(f)));
}

void JsonMachine::compact(State& s) {
  // The chain of frames, and the values that they refer to, from the innermost on.
  std::array<Frame, kMaxFrames> chain;
  std::uint32_t n = 0;
  for (std::uint32_t id = s.frame; id != 0; id = frames_[id].parent) chain[n++] = frames_[id];
  // Words and keys move to the front in the order in which they were made, which is that of the frames.
  std::uint32_t words = 1, keys = 1, parent = 0;
  for (std::uint32_t i = n; i-- > 0;) {
    Frame& f = chain[i];
    const Profile& p = (*profiles_)[f.profile];
    const std::uint32_t n_words = f.object ? (p.n_names + 63) / 64 : 0;
    for (std::uint32_t j = 0; j < n_words; ++j) words_[words + j] = words_[f.seen + j];
    if (n_words != 0) f.seen = words;
    words += n_words;
    // Names are chained from the last to the first, and are numbered from the first on.
    spare_.shrink(1);
    for (std::uint32_t k = f.keys; k != 0; k = keys_[k].before) spare_.add(keys_[k].hash);
    const std::uint32_t count = spare_.size() - 1;
    for (std::uint32_t j = 0; j < count; ++j) keys_[keys + j] = {spare_[count - j], j == 0 ? 0 : keys + j - 1};
    if (count != 0) f.keys = keys + count - 1;
    keys += count;
    f.parent = parent;
    frames_[++parent] = f;
  }
  s.frame = parent;
  forget();
  frames_.shrink(n + 1);
  words_.shrink(words);
  keys_.shrink(keys);
}

}  // namespace qsf::grammar
