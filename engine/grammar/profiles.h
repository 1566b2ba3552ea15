// The conditions on one value, taken together. A profile is the list of schema nodes that apply at one place of a text,
// with everything that they refer to without entering the value, as a program in the order of evaluation. Profiles and
// the classes of members are made when a text first needs them.
#pragma once

#include <cstdint>
#include <span>

#include "grammar/schema.h"

namespace qsf::grammar {

inline constexpr std::uint32_t kMaxSteps = 4000;  // conditions of a profile
inline constexpr std::uint32_t kMaxRoots = 256;   // nodes that apply at one place
inline constexpr std::uint32_t kMaxRules = 64;    // object or array rules of a profile: bits of a word
inline constexpr std::uint32_t kMaxContains = 4;  // array rules of a profile that count elements
inline constexpr std::uint32_t kNoName = 0xFFFFFFFF;

enum class Status3 : std::uint8_t { no, yes, open };

/// One condition of a profile. Operands are steps before it.
struct ProfileStep {
  NodeOp op = NodeOp::always;
  std::uint32_t a = 0, b = 0, c = 0;
  std::uint32_t slot = 0;  // of a check in its list, a rule among the profile's, or a name among its names
};

struct Profile {
  std::uint32_t first_step = 0, n_steps = 0;
  std::uint32_t first_root = 0, n_roots = 0;                  // of pool: pairs of node and step
  std::uint32_t string = 0, number = 0;                       // states before a string's and a number's text
  std::uint32_t first_rule = 0, n_objects = 0, n_arrays = 0;  // of rules: objects, then arrays
  std::uint32_t least_chars = 0, most_chars = kNoLimit;       // if `joint`
  // Of objects:
  std::uint32_t names = 0, n_names = 0;             // the first in checks' names, or 0; sorted
  std::uint32_t key = 0;                            // the state before a name
  std::uint32_t first_pattern = 0, n_patterns = 0;  // of pool: checks of patterns, from bit 1 on of a name's list
  std::uint32_t key_profile = 0;                    // of names; its strings' checks follow the patterns'
  std::uint32_t n_items = 0;                        // elements with nodes of their own
  std::uint32_t types = 0;                          // types at which no root fails at once
  bool joint = true;                                // every condition must hold
  bool lengths = false;                             // lengths of strings matter
  bool keys_differ = false;                         // unknown names must differ, because members are counted
};

/// A rule of an object or an array in a profile.
struct ProfileRule {
  std::uint32_t rule = 0;                            // of the schema
  std::uint32_t first_required = 0, n_required = 0;  // of pool: names among the profile's
  std::uint32_t first_member = 0, n_members = 0;     // of pool: names among the profile's that have nodes of their own
  std::uint32_t key_root = kNoName;                  // root of key_profile that its names must fulfill
  std::uint32_t contains = kNoName;                  // which of the counters it has
};

/// The conditions on a member or an element: the profile of its value, and the rules that its roots belong to.
struct ValueClass {
  std::uint32_t profile = 0;
  std::uint32_t first_link = 0, n_links = 0;  // of links
  std::uint64_t failing = 0;                  // rules that fail at any such member
  bool counted = false;                       // some link counts elements
};
struct Link {
  std::uint32_t slot = 0, root = 0;
  bool counts = false;  // an element that fulfills the root is counted; else one that does not fails the rule
};

/// The facts about a value that is being read.
struct Facts {
  Type type = Type::null;
  bool final = false;  // the value is complete
  Verdicts strings = {}, numbers = {};
  std::uint32_t chars = 0;
  // Status of each rule and name of the profile, of objects and arrays:
  std::span<const Status3> rules = {};
  const std::uint64_t* seen = nullptr;  // names
};

class Profiles {
 public:
  bool init(Store& store, Terms& terms, Checks& checks, Schema& schema);

  /// Returns the profile of nodes, which are sorted here.
  std::uint32_t of(std::span<std::uint32_t> nodes);
  const Profile& operator[](std::uint32_t id) const { return profiles_[id]; }
  const ProfileRule& rule(const Profile& p, std::uint32_t slot) const { return rules_[p.first_rule + slot]; }
  const ObjectRule& object(const Profile& p, std::uint32_t slot) const { return s_->objects[rule(p, slot).rule]; }
  const ArrayRule& array(const Profile& p, std::uint32_t slot) const {
    return s_->arrays[rule(p, p.n_objects + slot).rule];
  }
  std::uint32_t pooled(std::uint32_t i) const { return pool_[i]; }

  /// Writes the status of each root at the beginning of a value of a type.
  void evaluate_begin(const Profile& p, Type type, Status3* roots) const;
  /// Writes the status of each root.
  void evaluate(const Profile& p, const Facts& facts, Status3* roots) const;

  /// Returns the class of a member with a name among the profile's, or kNoName, and of patterns that match its name.
  std::uint32_t member(std::uint32_t profile, std::uint32_t name, std::uint64_t patterns);
  /// Returns the class of element `i`.
  std::uint32_t element(std::uint32_t profile, std::uint32_t i);
  const ValueClass& value_class(std::uint32_t id) const { return classes_[id]; }
  const Link& link(const ValueClass& c, std::uint32_t i) const { return links_[c.first_link + i]; }
  /// Returns the rules of objects that fail for a name at `key_profile`'s conditions.
  std::uint64_t failing_names(const Profile& p, const Verdicts& verdicts, std::uint32_t chars, bool final) const;

  bool failed() const { return failed_; }

 private:
  struct ClassKey {
    std::uint32_t profile = 0, name = 0;
    std::uint64_t patterns = 0;
  };
  class Builder;

  std::uint32_t make_class(const ClassKey& key, std::span<const Link> links, std::span<const std::uint32_t> nodes);

  Terms* terms_ = nullptr;
  Checks* checks_ = nullptr;
  Schema* s_ = nullptr;
  Table<Profile> profiles_;
  Table<ProfileStep> steps_;
  Table<ProfileRule> rules_;
  Table<ValueClass> classes_;
  Table<ClassKey> class_keys_;
  Table<Link> links_;
  Table<std::uint32_t> pool_;
  Table<std::uint64_t> local_;  // by node: the number of the build and the step in it
  Index by_nodes_, by_class_;
  std::uint32_t builds_ = 0, depth_ = 0;
  bool failed_ = false;
};

}  // namespace qsf::grammar
