// The expressions of a template.
#include <algorithm>

#include "templates/machine.h"

namespace qsf::templates {

Value Machine::look_up(const Text* name) {
  std::uint32_t passed = 0;
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (++passed % 8 == 0 && !work.spend(1)) return {};
    for (const Variable* v = scope->first; v != nullptr; v = v->next) {
      if (!work.spend(1)) return {};
      if (work.same(v->name->view(), name->view())) return v->value;
    }
  }
  if (!work.spend(1)) return {};
  if (const Value* const found = find(*globals_, name->view()); found != nullptr) return *found;
  if (const Row* const row = find_row(functions(), name->view()); row != nullptr) {
    Value value(Kind::function);
    value.function = work.make<Function>();
    if (value.function == nullptr) return {};
    *value.function = {Value(), row};
    return value;
  }
  return undefined(name);
}

Value Machine::evaluate(const Node* node) {
  if (node == nullptr || !work.spend(1)) return {};
  const Nested nested(work);
  if (!nested) return {};
  work.at = node->at;
  switch (node->op) {
    case Op::constant:
      return node->value;
    case Op::name:
      return look_up(node->value.text);
    case Op::list:
    case Op::tuple:
      return evaluate_list(*node);
    case Op::dict:
      return evaluate_dict(*node);
    case Op::argument:
      return evaluate(node->a);
    case Op::attribute: {
      const Value object = evaluate(node->a);
      return object ? attribute(object, node->value.text) : object;
    }
    case Op::item:
      return evaluate_item(*node);
    case Op::call:
      return evaluate_call(*node, nullptr);
    case Op::filter:
    case Op::test:
      return evaluate_filter(*node);
    case Op::comparison:
      return evaluate_comparison(*node);
    case Op::negation: {
      const Value value = evaluate(node->a);
      return value ? boolean(!is_true(value)) : value;
    }
    case Op::both:
    case Op::either: {
      const Value value = evaluate(node->a);
      return !value || is_true(value) == (node->op == Op::either) ? value : evaluate(node->b);
    }
    case Op::choice: {
      const Value condition = evaluate(node->a);
      if (!condition) return {};
      if (is_true(condition)) return evaluate(node->b);
      return node->c == nullptr ? undefined(nullptr) : evaluate(node->c);
    }
    case Op::negative:
    case Op::positive: {
      const Value value = evaluate(node->a);
      if (!value) return {};
      work.at = node->at;
      return binary(node->op, value, value);
    }
    default: {
      const Value a = evaluate(node->a);
      const Value b = a ? evaluate(node->b) : a;
      if (!b) return {};
      work.at = node->at;
      return binary(node->op, a, b);
    }
  }
}

Value Machine::evaluate_list(const Node& node) {
  std::uint32_t n = 0;
  for (const Node* item = node.a; item != nullptr; item = item->next) ++n;
  const Value made = make_list(node.op == Op::list ? Form::list : Form::tuple, nullptr, n);
  Value* to = made ? made.list->items : nullptr;
  for (const Node* item = node.a; item != nullptr && to != nullptr; item = item->next) {
    *to++ = evaluate(item);
    if (work.failed()) return {};
  }
  return made;
}

Value Machine::evaluate_dict(const Node& node) {
  std::uint32_t n = 0;
  for (const Node* pair = node.a; pair != nullptr; pair = pair->next) ++n;
  Value made(Kind::dict);
  made.dict = make_dict(n);
  for (const Node* pair = node.a; pair != nullptr && !work.failed(); pair = pair->next) {
    const Value key = evaluate(pair->a);
    const Value value = key ? evaluate(pair->b) : key;
    if (value) put(*made.dict, key, value);
  }
  return work.failed() ? Value() : made;
}

Value Machine::evaluate_comparison(const Node& node) {
  Value left = evaluate(node.a);
  for (const Node* operand = node.b; operand != nullptr && left; operand = operand->next) {
    const Value right = evaluate(operand->a);
    if (!right) return {};
    work.at = operand->at;
    const bool holds = compare(operand->op, left, right);
    if (work.failed()) return {};
    if (!holds) return boolean(false);
    left = right;
  }
  return left ? boolean(true) : left;
}

Value Machine::evaluate_item(const Node& node) {
  const Value object = evaluate(node.a);
  if (!object) return {};
  if (node.b->op != Op::slice) {
    const Value key = evaluate(node.b);
    work.at = node.at;
    return key ? item(object, key) : key;
  }
  Value parts[3];
  const Node* const from[]{node.b->a, node.b->b, node.b->c};
  for (int i = 0; i < 3; ++i) {
    parts[i] = from[i] == nullptr ? Value(Kind::none) : evaluate(from[i]);
    if (!parts[i]) return {};
  }
  work.at = node.at;
  return slice(object, parts[0], parts[1], parts[2]);
}

bool Machine::read_arguments(const Node* list, Arguments& out) {
  out = {};
  if (list == nullptr) return true;
  // Counts first, because a list of further arguments may have any length.
  std::uint32_t n = 0, n_named = 0;
  for (const Node* node = list; node != nullptr; node = node->next) ++n;
  Value* const evaluated = work.make<Value>(n);
  std::uint32_t i = 0, n_values = 0;
  for (const Node* node = list; node != nullptr && !work.failed(); node = node->next, ++i) {
    evaluated[i] = evaluate(node->a);
    if (node->op == Op::spread && evaluated[i]) {
      const Items more = items(evaluated[i]);
      evaluated[i] = make_list(Form::tuple, more.at, more.n);
      n_values += more.n;
    } else if (node->op == Op::spread_named) {
      if (evaluated[i] && !evaluated[i].is(Kind::dict)) work.fail("named arguments are no dict");
      if (!work.failed()) n_named += evaluated[i].dict->size;
    } else {
      (node->value.is_text() ? n_named : n_values) += 1;
    }
  }
  if (work.failed()) return false;
  Value* const values = work.make<Value>(n_values);
  Pair* const named = work.make<Pair>(n_named);
  if (work.failed()) return false;
  i = 0;
  for (const Node* node = list; node != nullptr; node = node->next, ++i) {
    const Value& value = evaluated[i];
    if (node->op == Op::spread) {
      for (const Value& one : Items{value.list->items, value.list->size}) values[out.n++] = one;
    } else if (node->op == Op::spread_named) {
      for (std::uint32_t j = 0; j < value.dict->size; ++j) {
        if (!value.dict->pairs[j].key.is_text()) {
          work.fail("the name of an argument is no text");
          return false;
        }
        named[out.n_named++] = value.dict->pairs[j];
      }
    } else if (node->value.is_text()) {
      named[out.n_named++] = {node->value, value};
    } else {
      values[out.n++] = value;
    }
  }
  out.values = values;
  out.named = named;
  return true;
}

Value Machine::evaluate_call(const Node& node, const Node* block) {
  const Value function = evaluate(node.a);
  Arguments arguments;
  if (!function || !read_arguments(node.b, arguments)) return {};
  if (block != nullptr) {
    Pair* const named = work.make<Pair>(arguments.n_named + 1);
    const Value caller = make_macro(*block, block->c, nullptr);
    if (!caller || named == nullptr) return {};
    std::copy_n(arguments.named, arguments.n_named, named);
    named[arguments.n_named++] = {work.text_value("caller"), caller};
    arguments.named = named;
  }
  work.at = node.at;
  if (function.is(Kind::undefined) && node.a->op == Op::attribute) {
    return work.fail("'{:.60}' is not a method of this value", node.a->value.text->view());
  }
  return call(function, arguments);
}

Value Machine::call(const Value& function, const Arguments& arguments) {
  switch (function.kind) {
    case Kind::function:
      return call_row(*function.function->row, function.function->self, arguments);
    case Kind::macro:
      return call_macro(*function.macro, arguments);
    case Kind::loop:
      if (arguments.n == 1) return call_loop(*function.loop, arguments.values[0]);
      return work.fail("a loop is called with {} arguments, not 1", arguments.n);
    case Kind::joiner: {
      Cycler& joiner = *function.cycler;
      return joiner.at++ == 0 ? work.text_value("") : joiner.items->items[0];
    }
    case Kind::undefined:
      if (function.text != nullptr) return work.fail("'{:.60}' is undefined and is called", function.text->view());
      [[fallthrough]];
    default:
      return work.fail("a value of type {} is called", type_name(function));
  }
}

Value Machine::call_row(const Row& row, const Value& self, const Arguments& given) {
  if (!work.spend(1)) return {};
  Value bound[kMostParameters];
  std::uint32_t n = 0, used = 0;
  bool takes_more = false;
  for (std::string_view left = row.parameters; !left.empty();) {
    std::string_view name = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), name.size() + 1));
    if (name == "*") {
      takes_more = true;
      break;
    }
    const bool optional = name.starts_with('?');
    if (optional) name.remove_prefix(1);
    bound[n] = given[n];
    if (const Pair* const found = bound[n] ? nullptr : named(given, name); found != nullptr) {
      bound[n] = found->value;
      ++used;
    }
    if (!bound[n] && !optional) return work.fail("'{:.40}' needs its argument '{:.40}'", row.name, name);
    ++n;
  }
  if (!takes_more && (given.n > n || used < given.n_named)) {
    return work.fail("'{:.40}' is called with an argument that it does not have", row.name);
  }
  const Value result = row.run(*this, {self, bound, given, row});
  return work.failed() ? Value() : result;
}

Value Machine::evaluate_filter(const Node& node) {
  const bool is_test = node.op == Op::test;
  if (node.row == nullptr) {
    return work.fail("there is no {} '{:.40}'", is_test ? "test" : "filter", node.value.text->view());
  }
  const Value operand = evaluate(node.a);
  Arguments arguments;
  if (!operand || !read_arguments(node.b, arguments)) return {};
  work.at = node.at;
  return call_row(*node.row, operand, arguments);
}

const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

const Row* find_filter(std::string_view name) {
  for (const std::span<const Row> rows : {method_filters(), text_filters(), list_filters()}) {
    if (const Row* const row = find_row(rows, name); row != nullptr) return row;
  }
  return nullptr;
}

}  // namespace qsf::templates
