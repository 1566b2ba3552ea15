#include "grammar/profiles.h"

#include <algorithm>
#include <array>

namespace qsf::grammar {
namespace {

Status3 status(bool yes, bool no) { return yes ? Status3::yes : no ? Status3::no : Status3::open; }

}  // namespace

bool Profiles::init(Store& store, Terms& terms, Checks& checks, Schema& schema) {
  terms_ = &terms;
  checks_ = &checks;
  s_ = &schema;
  const bool fits = profiles_.init(store) && steps_.init(store) && rules_.init(store) && classes_.init(store) &&
                    class_keys_.init(store) && links_.init(store) && pool_.init(store) && local_.init(store) &&
                    by_nodes_.init(store) && by_class_.init(store);
  if (!fits) return false;
  while (local_.size() < schema.nodes.size() && !store.full()) local_.add(0);
  return !store.full();
}

void Profiles::evaluate(const Profile& p, const Facts& f, Status3* roots) const {
  std::array<Status3, kMaxSteps + 1> out;
  const auto of_check = [&](const Verdicts& v, std::uint32_t slot) {
    if (f.final) return status((v.now >> slot & 1) != 0, true);
    return status((v.yes >> slot & 1) != 0, (v.no >> slot & 1) != 0);
  };
  const auto negated = [](Status3 s) {
    return s == Status3::open ? s : s == Status3::yes ? Status3::no : Status3::yes;
  };
  for (std::uint32_t i = 0; i < p.n_steps; ++i) {
    const ProfileStep& step = steps_[p.first_step + i];
    Status3 made = Status3::yes;
    switch (step.op) {
      case NodeOp::always:
        break;
      case NodeOp::never:
        made = Status3::no;
        break;
      case NodeOp::all:
      case NodeOp::any: {
        const Status3 end = step.op == NodeOp::all ? Status3::no : Status3::yes;
        made = negated(end);
        for (std::uint32_t j = 0; j < step.b && made != end; ++j) {
          const Status3 part = out[pool_[step.a + j]];
          if (part == end || part == Status3::open) made = part;
        }
        break;
      }
      case NodeOp::one: {
        std::uint32_t yes = 0, open = 0;
        for (std::uint32_t j = 0; j < step.b; ++j) {
          const Status3 part = out[pool_[step.a + j]];
          yes += part == Status3::yes ? 1 : 0;
          open += part == Status3::open ? 1 : 0;
        }
        made = status(yes == 1 && open == 0, yes > 1 || yes + open == 0);
        break;
      }
      case NodeOp::other:
        made = negated(out[step.a]);
        break;
      case NodeOp::branch: {
        const Status3 condition = out[step.a], then = out[step.b], otherwise = out[step.c];
        made = condition == Status3::yes  ? then
               : condition == Status3::no ? otherwise
               : then == otherwise        ? then
                                          : Status3::open;
        break;
      }
      case NodeOp::type:
        made = status((step.a >> static_cast<std::uint32_t>(f.type) & 1) != 0, true);
        break;
      case NodeOp::string:
        if (f.type == Type::string) made = of_check(f.strings, step.slot);
        break;
      case NodeOp::number:
        if (f.type == Type::number) made = of_check(f.numbers, step.slot);
        break;
      case NodeOp::length:
        if (f.type == Type::string) {
          const bool over = f.chars > step.b;
          made = f.final ? status(!over && f.chars >= step.a, true)
                         : status(f.chars >= step.a && step.b == kNoLimit, over);
        }
        break;
      case NodeOp::object:
        if (f.type == Type::object) made = f.rules[step.slot];
        break;
      case NodeOp::array:
        if (f.type == Type::array) made = f.rules[step.slot];
        break;
      case NodeOp::has: {
        const bool has =
            f.type == Type::object && f.seen != nullptr && (f.seen[step.slot / 64] >> step.slot % 64 & 1) != 0;
        made = status(has, f.type != Type::object || f.final);
        break;
      }
    }
    out[i] = made;
  }
  for (std::uint32_t i = 0; i < p.n_roots; ++i) roots[i] = out[pool_[p.first_root + 2 * i + 1]];
}

void Profiles::evaluate_begin(const Profile& p, Type type, Status3* roots) const {
  std::array<Status3, 2 * kMaxRules> rules;
  rules.fill(Status3::open);
  Facts facts;
  facts.type = type;
  facts.rules = rules;
  facts.strings = checks_->verdicts(p.string);
  facts.numbers = checks_->verdicts(p.number).from(1);
  evaluate(p, facts, roots);
}

std::uint64_t Profiles::failing_names(const Profile& p, const Verdicts& verdicts, std::uint32_t chars,
                                      bool final) const {
  if (p.key_profile == 0) return 0;
  const Profile& key = profiles_[p.key_profile];
  const std::uint32_t shift = 1 + p.n_patterns;
  Facts facts;
  facts.type = Type::string;
  facts.final = final;
  facts.chars = chars;
  facts.strings = verdicts.from(shift);
  std::array<Status3, kMaxRoots> roots;
  evaluate(key, facts, roots.data());
  std::uint64_t failing = 0;
  for (std::uint32_t i = 0; i < p.n_objects; ++i) {
    const std::uint32_t root = rules_[p.first_rule + i].key_root;
    if (root != kNoName && roots[root] == Status3::no) failing |= std::uint64_t{1} << i;
  }
  return failing;
}

std::uint32_t Profiles::make_class(const ClassKey& key, std::span<const Link> links,
                                   std::span<const std::uint32_t> nodes) {
  std::array<std::uint32_t, kMaxRoots> sorted{};
  std::copy(nodes.begin(), nodes.end(), sorted.begin());
  ValueClass made;
  made.profile = of({sorted.data(), nodes.size()});
  if (failed_) return 0;
  const Profile& p = profiles_[made.profile];
  made.first_link = links_.size();
  made.n_links = static_cast<std::uint32_t>(links.size());
  // Which roots fail for every type.
  std::uint32_t open = 0;
  std::array<bool, kMaxRoots> possible{};
  std::array<Status3, kMaxRoots> roots;
  for (std::uint32_t type = 0; type < kTypes && open < p.n_roots; ++type) {
    evaluate_begin(p, static_cast<Type>(type), roots.data());
    for (std::uint32_t i = 0; i < p.n_roots; ++i) {
      if (roots[i] == Status3::no || possible[i]) continue;
      possible[i] = true;
      ++open;
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link link = links[i];
    for (std::uint32_t r = 0; r < p.n_roots; ++r) {
      if (pool_[p.first_root + 2 * r] == nodes[i]) link.root = r;
    }
    if (!link.counts && !possible[link.root]) made.failing |= std::uint64_t{1} << link.slot;
    made.counted = made.counted || link.counts;
    links_.add(link);
  }
  const std::uint32_t id = classes_.add(made);
  class_keys_.add(key);
  return id;
}

std::uint32_t Profiles::member(std::uint32_t profile, std::uint32_t name, std::uint64_t patterns) {
  const std::uint64_t hash = mix(mix(mix(1, profile), name), patterns);
  const auto same = [&](std::uint32_t i) {
    return class_keys_[i].profile == profile && class_keys_[i].name == name && class_keys_[i].patterns == patterns;
  };
  if (const std::uint32_t found = by_class_.find(hash, same); found != Index::kNone) return found;
  const Profile p = profiles_[profile];
  std::array<Link, kMaxRoots> links;
  std::array<std::uint32_t, kMaxRoots> nodes;
  std::uint32_t n = 0;
  for (std::uint32_t slot = 0; slot < p.n_objects; ++slot) {
    const std::uint32_t id = rules_[p.first_rule + slot].rule;
    const ObjectRule& rule = s_->objects[id];
    bool matched = false;
    const auto link = [&](std::uint32_t node) {
      matched = true;
      if (node == kAlwaysNode) return;
      if (n == kMaxRoots) {
        failed_ = true;
        return;
      }
      nodes[n] = node;
      links[n++] = {slot, 0, false};
    };
    if (name != kNoName && rule.n_members != 0) {
      const std::string_view text = checks_->name(p.names + name);
      // The number of the name is found by its text, since a profile's names are its own.
      for (std::uint32_t m = rule.first_member; m < rule.first_member + rule.n_members; ++m) {
        if (s_->names[s_->members[m].name] == text) {
          link(s_->members[m].node);
          break;
        }
      }
    }
    for (std::uint32_t m = rule.first_pattern; m < rule.first_pattern + rule.n_patterns; ++m) {
      for (std::uint32_t j = 0; j < p.n_patterns; ++j) {
        if ((patterns >> j & 1) != 0 && pool_[p.first_pattern + j] == s_->members[m].name) link(s_->members[m].node);
      }
    }
    if (!matched) link(rule.others);
  }
  if (failed_) return 0;
  return by_class_.find_or(
      hash, [](std::uint32_t) { return false; },
      [&] { return make_class({profile, name, patterns}, {links.data(), n}, {nodes.data(), n}); });
}

std::uint32_t Profiles::element(std::uint32_t profile, std::uint32_t i) {
  const Profile p = profiles_[profile];
  i = std::min(i, p.n_items);
  const std::uint64_t kElement = ~std::uint64_t{0};
  const std::uint64_t hash = mix(mix(2, profile), i);
  const auto same = [&](std::uint32_t c) {
    return class_keys_[c].profile == profile && class_keys_[c].name == i && class_keys_[c].patterns == kElement;
  };
  if (const std::uint32_t found = by_class_.find(hash, same); found != Index::kNone) return found;
  std::array<Link, kMaxRoots> links;
  std::array<std::uint32_t, kMaxRoots> nodes;
  std::uint32_t n = 0;
  for (std::uint32_t slot = 0; slot < p.n_arrays; ++slot) {
    const ArrayRule& rule = array(p, slot);
    const std::uint32_t node = i < rule.n_items ? s_->lists[rule.first_item + i] : rule.others;
    if (node != kAlwaysNode) {
      nodes[n] = node;
      links[n++] = {slot, 0, false};
    }
    if (rule.contains != 0) {
      nodes[n] = rule.contains;
      links[n++] = {slot, 0, true};
    }
  }
  return by_class_.find_or(
      hash, [](std::uint32_t) { return false; },
      [&] { return make_class({profile, i, kElement}, {links.data(), n}, {nodes.data(), n}); });
}

}  // namespace qsf::grammar
