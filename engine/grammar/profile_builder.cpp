// Profiles in the making.
#include <algorithm>
#include <array>

#include "grammar/profiles.h"
#include "qsf/base/heap_sort.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kMaxNameDepth = 8;  // schemas of names of objects that are names

}  // namespace

/// Makes one profile.
class Profiles::Builder {
 public:
  Builder(Profiles& owner, Profile& profile) : o_(owner), p_(profile), stamp_(std::uint64_t{++owner.builds_} << 32) {}

  void build(std::span<const std::uint32_t> nodes) {
    p_.first_step = o_.steps_.size();
    std::array<std::uint32_t, kMaxRoots> roots{};
    for (std::size_t i = 0; i < nodes.size(); ++i) roots[i] = step_of(nodes[i]);
    p_.first_root = o_.pool_.size();
    p_.n_roots = static_cast<std::uint32_t>(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      o_.pool_.add(nodes[i]);
      o_.pool_.add(roots[i]);
    }
    p_.n_steps = o_.steps_.size() - p_.first_step;
    if (p_.n_steps > kMaxSteps || n_strings_ > kMaxChecks || n_numbers_ > kMaxChecks || n_objects_ > kMaxRules ||
        n_arrays_ > kMaxRules) {
      o_.failed_ = true;
      return;
    }
    p_.joint = joint(std::span(roots).first(nodes.size()));
    strings();
    numbers();
    for (std::uint32_t i = 0; i < n_objects_ + n_arrays_; ++i) o_.rules_.add({});  // set below
    p_.first_rule = o_.rules_.size() - n_objects_ - n_arrays_;
    p_.n_objects = n_objects_;
    p_.n_arrays = n_arrays_;
    objects();
    arrays();
  }

 private:
  /// Whether every condition of the roots must hold. A step may be an operand of many others, and is looked at once.
  bool joint(std::span<const std::uint32_t> roots) const {
    std::array<bool, kMaxSteps + 2> needed{};
    for (const std::uint32_t root : roots) needed[root] = true;
    for (std::uint32_t i = p_.n_steps; i-- > 0;) {
      if (!needed[i]) continue;
      const ProfileStep& step = o_.steps_[p_.first_step + i];
      switch (step.op) {
        case NodeOp::any:
        case NodeOp::one:
        case NodeOp::other:
        case NodeOp::branch:
        case NodeOp::has:
          return false;
        case NodeOp::all:
          for (std::uint32_t j = 0; j < step.b; ++j) needed[o_.pool_[step.a + j]] = true;
          break;
        default:
          break;
      }
    }
    return true;
  }

  /// Returns the step of a node, whose operands come first. The schema has no circles.
  std::uint32_t step_of(std::uint32_t id) {
    if ((o_.local_[id] & ~std::uint64_t{0xFFFFFFFF}) == stamp_) return static_cast<std::uint32_t>(o_.local_[id]);
    if (o_.steps_.size() - p_.first_step > kMaxSteps) return 0;
    const SchemaNode node = o_.s_->nodes[id];
    ProfileStep step{node.op, node.a, node.b, node.c, 0};
    switch (node.op) {
      case NodeOp::all:
      case NodeOp::any:
      case NodeOp::one: {
        for (std::uint32_t i = 0; i < node.b; ++i) step_of(o_.s_->lists[node.a + i]);
        step.a = o_.pool_.size();
        for (std::uint32_t i = 0; i < node.b; ++i) o_.pool_.add(step_of(o_.s_->lists[node.a + i]));
        break;
      }
      case NodeOp::other:
        step.a = step_of(node.a);
        break;
      case NodeOp::branch:
        step.a = step_of(node.a);
        step.b = step_of(node.b);
        step.c = step_of(node.c);
        break;
      case NodeOp::string:
        step.slot = slot(strings_, n_strings_, node.a);
        break;
      case NodeOp::number:
        step.slot = slot(numbers_, n_numbers_, node.a);
        break;
      case NodeOp::length:
        p_.lengths = true;
        p_.least_chars = std::max(p_.least_chars, node.a);
        p_.most_chars = std::min(p_.most_chars, node.b);
        break;
      case NodeOp::object:
        step.slot = slot(objects_, n_objects_, node.a);
        break;
      case NodeOp::array:
        step.slot = slot(arrays_, n_arrays_, node.a);
        break;
      case NodeOp::has:
        has_ = true;
        break;
      default:
        break;
    }
    const std::uint32_t made = o_.steps_.add(step) - p_.first_step;
    o_.local_[id] = stamp_ | made;
    return made;
  }
  template <std::size_t N>
  static std::uint32_t slot(std::array<std::uint32_t, N>& list, std::uint32_t& n, std::uint32_t value) {
    for (std::uint32_t i = 0; i < n && i < N; ++i) {
      if (list[i] == value) return i;
    }
    if (n < N) list[n] = value;
    return n++;
  }

  void strings() {
    // Patterns that must all hold become one, so that texts which cannot fulfill them together are seen at once. Those
    // of different roots may be alternatives.
    std::uint32_t n_terms = 0, merged = kAll;
    for (std::uint32_t i = 0; i < n_strings_; ++i) {
      if ((*o_.checks_)[strings_[i]].kind != CheckKind::term) continue;
      ++n_terms;
      merged = o_.terms_->both(merged, (*o_.checks_)[strings_[i]].first);
    }
    if (p_.joint && p_.n_roots == 1 && n_terms > 1) {
      std::uint32_t n = 0;
      std::array<std::uint32_t, kMaxChecks> slots{};
      for (std::uint32_t i = 0; i < n_strings_; ++i) {
        if ((*o_.checks_)[strings_[i]].kind == CheckKind::term) continue;
        slots[i] = n;
        strings_[n++] = strings_[i];
      }
      for (std::uint32_t i = 0; i < p_.n_steps; ++i) {
        ProfileStep& step = o_.steps_[p_.first_step + i];
        if (step.op != NodeOp::string) continue;
        step.slot = (*o_.checks_)[step.a].kind == CheckKind::term ? n : slots[step.slot];
      }
      strings_[n++] = o_.checks_->term(merged);
      n_strings_ = n;
    }
    p_.string = o_.checks_->begin({strings_.data(), n_strings_});
  }

  void numbers() {
    NumberCheck syntax;  // bit 0 of a number's verdicts
    std::array<std::uint32_t, kMaxChecks> list{o_.checks_->number(syntax)};
    if (n_numbers_ >= kMaxChecks) {
      o_.failed_ = true;
      return;
    }
    std::copy(numbers_.begin(), numbers_.begin() + n_numbers_, list.begin() + 1);
    p_.number = o_.checks_->begin({list.data(), n_numbers_ + 1});
  }

  void objects() {
    if (n_objects_ == 0 && !has_) return;
    // All names that matter, sorted, and each once.
    const std::uint32_t mark = o_.terms_->mark();
    for (std::uint32_t i = 0; i < n_objects_; ++i) {
      const ObjectRule& rule = o_.s_->objects[objects_[i]];
      for (std::uint32_t m = 0; m < rule.n_members; ++m) {
        o_.terms_->push(o_.s_->members[rule.first_member + m].name);
      }
      for (std::uint32_t r = 0; r < rule.n_required; ++r) o_.terms_->push(o_.s_->lists[rule.first_required + r]);
    }
    for (std::uint32_t i = 0; i < p_.n_steps; ++i) {
      const ProfileStep& step = o_.steps_[p_.first_step + i];
      if (step.op == NodeOp::has) o_.terms_->push(step.a);
    }
    const std::uint32_t n = o_.terms_->mark() - mark;
    auto* const names = o_.terms_->store().take_values<std::string_view>(n + 1);
    if (names == nullptr) return;
    for (std::uint32_t i = 0; i < n; ++i) names[i] = o_.s_->names[o_.terms_->marked(mark + i)];
    o_.terms_->drop(mark);
    heap_sort(std::span(names, n));
    p_.n_names = static_cast<std::uint32_t>(std::unique(names, names + n) - names);
    names_ = {names, p_.n_names};
    std::array<std::uint32_t, kMaxChecks> list{};
    std::uint32_t n_list = 0;
    if (p_.n_names > kMaxNames) o_.failed_ = true;
    const std::uint32_t check = o_.checks_->names(names_);
    p_.names = (*o_.checks_)[check].first;
    list[n_list++] = check;
    for (std::uint32_t i = 0; i < p_.n_steps; ++i) {
      ProfileStep& step = o_.steps_[p_.first_step + i];
      if (step.op == NodeOp::has) step.slot = position(step.a);
    }
    // Patterns, and the conditions on names.
    p_.first_pattern = o_.pool_.size();
    std::array<std::uint32_t, kMaxRules> name_nodes{};
    std::uint32_t n_name_nodes = 0;
    for (std::uint32_t i = 0; i < n_objects_; ++i) {
      const ObjectRule& rule = o_.s_->objects[objects_[i]];
      for (std::uint32_t m = 0; m < rule.n_patterns; ++m) {
        const std::uint32_t pattern = o_.s_->members[rule.first_pattern + m].name;
        bool known = false;
        for (std::uint32_t j = 1; j < n_list; ++j) known = known || list[j] == pattern;
        if (known) continue;
        if (n_list == kMaxChecks) {
          o_.failed_ = true;
          return;
        }
        list[n_list++] = pattern;
        o_.pool_.add(pattern);
      }
      if (rule.names != kAlwaysNode) name_nodes[n_name_nodes++] = rule.names;
      p_.keys_differ = p_.keys_differ || rule.least != 0;
    }
    p_.n_patterns = n_list - 1;
    rules();
    if (n_name_nodes != 0) {
      const std::uint32_t own = o_.of({name_nodes.data(), n_name_nodes});
      p_.key_profile = own;
      const Profile& key = o_.profiles_[own];
      const std::uint32_t n_own = o_.checks_->list_size(key.string);
      if (n_list + n_own > kMaxChecks) {
        o_.failed_ = true;
        return;
      }
      for (std::uint32_t i = 0; i < n_own; ++i) list[n_list++] = o_.checks_->listed(key.string, i);
      for (std::uint32_t i = 0; i < n_objects_; ++i) {
        const ObjectRule& rule = o_.s_->objects[objects_[i]];
        for (std::uint32_t r = 0; r < key.n_roots && rule.names != kAlwaysNode; ++r) {
          if (o_.pool_[key.first_root + 2 * r] == rule.names) o_.rules_[p_.first_rule + i].key_root = r;
        }
      }
    }
    p_.key = o_.checks_->begin({list.data(), n_list});
  }
  void rules() {
    for (std::uint32_t i = 0; i < n_objects_; ++i) {
      const ObjectRule& rule = o_.s_->objects[objects_[i]];
      ProfileRule& made = o_.rules_[p_.first_rule + i];
      made = {};
      made.rule = objects_[i];
      made.first_required = o_.pool_.size();
      made.n_required = rule.n_required;
      for (std::uint32_t r = 0; r < rule.n_required; ++r) {
        o_.pool_.add(position(o_.s_->lists[rule.first_required + r]));
      }
      made.first_member = o_.pool_.size();
      made.n_members = rule.n_members;
      for (std::uint32_t m = 0; m < rule.n_members; ++m) {
        o_.pool_.add(position(o_.s_->members[rule.first_member + m].name));
      }
    }
  }
  std::uint32_t position(std::uint32_t name) const {
    return static_cast<std::uint32_t>(std::lower_bound(names_.begin(), names_.end(), o_.s_->names[name]) -
                                      names_.begin());
  }

  void arrays() {
    std::uint32_t n_counters = 0;
    for (std::uint32_t i = 0; i < n_arrays_; ++i) {
      const ArrayRule& rule = o_.s_->arrays[arrays_[i]];
      ProfileRule& made = o_.rules_[p_.first_rule + n_objects_ + i];
      made = {};
      made.rule = arrays_[i];
      if (rule.contains != 0) made.contains = n_counters++;
      p_.n_items = std::max(p_.n_items, rule.n_items);
    }
    if (n_counters > kMaxContains) o_.failed_ = true;
  }

  Profiles& o_;
  Profile& p_;
  std::uint64_t stamp_;
  std::array<std::uint32_t, kMaxChecks> strings_{}, numbers_{};
  std::array<std::uint32_t, kMaxRules> objects_{}, arrays_{};
  std::uint32_t n_strings_ = 0, n_numbers_ = 0, n_objects_ = 0, n_arrays_ = 0;
  std::span<std::string_view> names_;
  bool has_ = false;
};

std::uint32_t Profiles::of(std::span<std::uint32_t> nodes) {
  heap_sort(nodes);
  nodes = nodes.first(static_cast<std::size_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin()));
  if (nodes.size() > kMaxRoots) failed_ = true;
  if (failed_) return 0;
  std::uint64_t hash = nodes.size();
  for (const std::uint32_t node : nodes) hash = mix(hash, node);
  const auto same = [&](std::uint32_t i) {
    if (profiles_[i].n_roots != nodes.size()) return false;
    for (std::uint32_t j = 0; j < nodes.size(); ++j) {
      if (pool_[profiles_[i].first_root + 2 * j] != nodes[j]) return false;
    }
    return true;
  };
  if (const std::uint32_t found = by_nodes_.find(hash, same); found != Index::kNone) return found;
  if (++depth_ > kMaxNameDepth) failed_ = true;
  Profile made;
  if (!failed_) Builder(*this, made).build(nodes);
  --depth_;
  if (failed_ || terms_->failed()) return 0;
  std::array<Status3, kMaxRoots> roots{};
  for (std::uint32_t type = 0; type < kTypes; ++type) {
    evaluate_begin(made, static_cast<Type>(type), roots.data());
    if (std::find(roots.begin(), roots.begin() + made.n_roots, Status3::no) == roots.begin() + made.n_roots) {
      made.types |= 1u << type;
    }
  }
  return by_nodes_.find_or(hash, [](std::uint32_t) { return false; }, [&] { return profiles_.add(made); });
}

}  // namespace qsf::grammar
