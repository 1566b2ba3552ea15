// The statements of a template.
#include <algorithm>

#include "templates/machine.h"

namespace qsf::templates {
namespace {

constexpr Text kLoop{.bytes = "loop", .origins = nullptr, .size = 4, .points = 4, .origin = Origin::own, .safe = false};

}  // namespace

void Machine::run(const Node* body, const Variables& variables, const Sink& sink) {
  const auto read = [this](std::string_view text, Origin origin) {
    return text.empty() ? Value(Kind::none) : read_json(text, origin);
  };
  const Value given[]{read(variables.special, Origin::own), read_json(variables.values, Origin::input),
                      read(variables.more, Origin::input)};
  if (work.failed()) return;
  std::uint32_t n = 0;
  for (const Value& from : given) {
    if (!from.is(Kind::dict) && (!from.is(Kind::none) || &from == &given[1])) {
      work.fail_with(ErrorCode::bad_input, "the variables of a chat template must be a JSON object", nullptr,
                     format_kinds<>());
      return;
    }
    n += from.is(Kind::dict) ? from.dict->size : 0;
  }
  globals_ = make_dict(n);
  if (globals_ == nullptr) return;
  for (const Value& from : given) {
    for (std::uint32_t i = 0; from.is(Kind::dict) && i < from.dict->size; ++i) {
      put(*globals_, from.dict->pairs[i].key, from.dict->pairs[i].value);
    }
  }
  scope_ = nullptr;
  if (push() == nullptr) return;
  Writer out(work, sink);
  execute(body, out);
}

Scope* Machine::push() {
  Scope* const made = work.make<Scope>();
  if (made == nullptr) return nullptr;
  made->parent = scope_;
  return scope_ = made;
}

void Machine::set(const Text* name, const Value& value) {
  for (Variable* v = scope_->first; v != nullptr; v = v->next) {
    if (work.same(v->name->view(), name->view())) {
      v->value = value;
      return;
    }
    if (!work.spend(1)) return;
  }
  Variable* const made = work.make<Variable>();
  if (made == nullptr) return;
  *made = {name, value, scope_->first};
  scope_->first = made;
}

void Machine::assign(const Node* target, const Value& value) {
  if (work.failed()) return;
  work.at = target->at;
  if (target->op == Op::name) return set(target->value.text, value);
  if (target->op == Op::space_target) {
    const Value space = look_up(target->value.text);
    if (!space.is(Kind::space)) {
      work.fail("'{:.60}' is no namespace, so its attributes cannot be set", target->value.text->view());
      return;
    }
    return put(*space.dict, target->a->value, value);
  }
  const Nested nested(work);
  const Items parts = items(value);
  const Value* part = parts.begin();
  const Node* to = target->a;
  for (; to != nullptr && part != parts.end() && nested; to = to->next) assign(to, *part++);
  if (!work.failed() && (to != nullptr || part != parts.end())) {
    work.fail("{} values do not fit the names on the left", parts.n);
  }
}

Flow Machine::execute(const Node* list, Writer& out) {
  const Nested nested(work);
  Flow flow = Flow::normal;
  for (const Node* node = list; node != nullptr && nested && flow == Flow::normal; node = node->next) {
    if (!work.spend(1)) break;
    work.at = node->at;
    flow = execute_one(*node, out);
  }
  return flow;
}

Flow Machine::execute_in_scope(const Node* list, Writer& out) {
  Scope* const outer = scope_;
  const Flow flow = push() == nullptr ? Flow::normal : execute(list, out);
  scope_ = outer;
  return flow;
}

Value Machine::captured(const Node* body) {
  Writer out(work);
  execute_in_scope(body, out);
  return out.finish();
}

Value Machine::filtered(const Node* filters, const Value& operand) {
  if (filters == nullptr || !operand) return operand;
  const Nested nested(work);
  if (!nested) return {};
  const Value inner = filtered(filters->a, operand);
  Arguments arguments;
  if (!inner || !read_arguments(filters->b, arguments)) return {};
  work.at = filters->at;
  if (filters->op != Op::filter || filters->row == nullptr) return work.fail("there is no such filter");
  return call_row(*filters->row, inner, arguments);
}

Value Machine::make_macro(const Node& node, const Node* parameters, const Text* name) {
  Value value(Kind::macro);
  value.macro = work.make<Macro>();
  if (value.macro == nullptr) return {};
  *value.macro = {name, &node, parameters, scope_};
  return value;
}

Flow Machine::execute_one(const Node& node, Writer& out) {
  switch (node.op) {
    case Op::output:
      out.add(*node.value.text);
      break;
    case Op::print:
      if (const Value value = evaluate(node.a)) write(out, value, {});
      break;
    case Op::condition:
      for (const Node* branch = &node; branch != nullptr && !work.failed(); branch = branch->d) {
        const Value value = evaluate(branch->a);
        if (!value) break;
        if (is_true(value)) return execute(branch->b, out);
        if (branch->c != nullptr) return execute(branch->c, out);
      }
      break;
    case Op::loop:
      if (const Value iterable = evaluate(node.b)) return execute_loop(node, out, iterable, scope_, 0);
      break;
    case Op::set:
      if (const Value value = evaluate(node.b)) assign(node.a, value);
      break;
    case Op::set_block:
      if (const Value value = filtered(node.c, captured(node.b))) assign(node.a, value);
      break;
    case Op::filter_block:
      if (const Value value = filtered(node.a, captured(node.b))) {
        value.is_text() ? out.add(*value.text) : void(work.fail("the filter of a block makes no text"));
      }
      break;
    case Op::macro:
      if (const Value macro = make_macro(node, node.a, node.value.text)) set(node.value.text, macro);
      break;
    case Op::call_block:
      if (const Value value = evaluate_call(*node.a, &node)) write(out, value, {});
      break;
    case Op::with: {
      Scope* const outer = scope_;
      Scope* const inner = push();
      for (const Node* set = node.a; set != nullptr && inner != nullptr && !work.failed(); set = set->next) {
        scope_ = outer;
        const Value value = evaluate(set->b);
        scope_ = inner;
        if (value) assign(set->a, value);
      }
      const Flow flow = execute(node.b, out);
      scope_ = outer;
      return flow;
    }
    case Op::block:
      return execute_in_scope(node.b, out);
    case Op::leave:
      return Flow::leave;
    case Op::go_on:
      return Flow::go_on;
    default:
      break;
  }
  return Flow::normal;
}

Flow Machine::execute_loop(const Node& node, Writer& out, const Value& iterable, Scope* scope, std::uint32_t depth) {
  Scope* const outer = scope_;
  scope_ = scope;
  Items all = items(iterable);
  if (node.d->b != nullptr && all.n > 0) {
    Value* const kept = work.make<Value>(all.n);
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < all.n && !work.failed(); ++i) {
      scope_ = scope;
      if (push() == nullptr) break;
      assign(node.a, all.at[i]);
      const Value keeps = evaluate(node.d->b);
      if (keeps && is_true(keeps)) kept[n++] = all.at[i];
    }
    scope_ = scope;
    all = {kept, n};
  }
  Flow flow = Flow::normal;
  if (all.n == 0 && !work.failed()) flow = execute_in_scope(node.d->a, out);
  Loop* const loop = all.n == 0 ? nullptr : work.make<Loop>();
  if (loop != nullptr) *loop = {&node, scope, all.at, all.n, 0, depth, nullptr};
  for (std::uint32_t i = 0; loop != nullptr && i < all.n && !work.failed(); ++i) {
    scope_ = scope;
    loop->at = i;
    Value value(Kind::loop);
    value.loop = loop;
    if (push() == nullptr) break;
    set(&kLoop, value);
    assign(node.a, all.at[i]);
    flow = execute(node.c, out);
    if (flow == Flow::leave) break;
  }
  scope_ = outer;
  return all.n == 0 ? flow : Flow::normal;
}

Value Machine::call_loop(const Loop& loop, const Value& iterable) {
  if ((loop.node->flags & kRecursive) == 0) return work.fail("a loop is called but is not recursive");
  const Nested nested(work);
  Writer out(work);
  if (nested) execute_loop(*loop.node, out, iterable, loop.scope, loop.depth + 1);
  return out.finish();
}

Value Machine::call_macro(const Macro& macro, const Arguments& arguments) {
  const Nested nested(work);
  Scope* const outer = scope_;
  scope_ = macro.scope;
  if (!nested || push() == nullptr) return {};
  std::uint32_t n = 0, used = 0;
  for (const Node* p = macro.parameters; p != nullptr && !work.failed(); p = p->next, ++n) {
    const Text* const name = p->value.text;
    const Pair* const given = named(arguments, name->view());
    if (n < arguments.n) {
      if (given != nullptr) work.fail("'{:.60}' is given twice", name->view());
      set(name, arguments.values[n]);
    } else if (given != nullptr) {
      ++used;
      set(name, given->value);
    } else {
      set(name, p->a == nullptr ? undefined(name) : evaluate(p->a));
    }
  }
  const std::uint8_t flags = macro.node->flags;
  const std::string_view title = macro.name == nullptr ? "caller" : macro.name->view();
  if ((flags & kUsesVarargs) != 0) {
    const std::uint32_t begin = std::min(n, arguments.n);
    set(work.text("varargs"), make_list(Form::tuple, arguments.values + begin, arguments.n - begin));
  } else if (arguments.n > n) {
    work.fail("the macro '{:.60}' takes at most {} arguments, not {}", title, n, arguments.n);
  }
  const Pair* const caller = named(arguments, "caller");
  if ((flags & kUsesCaller) != 0 && caller != nullptr) {
    ++used;
    set(caller->key.text, caller->value);
  }
  if ((flags & kUsesKwargs) != 0) {
    Value rest(Kind::dict);
    rest.dict = make_dict(arguments.n_named);
    for (std::uint32_t i = 0; rest.dict != nullptr && i < arguments.n_named; ++i) {
      const Pair& pair = arguments.named[i];
      bool is_parameter = &pair == caller && (flags & kUsesCaller) != 0;
      for (const Node* p = macro.parameters; p != nullptr && !is_parameter && work.spend(1); p = p->next) {
        is_parameter = work.same(p->value.text->view(), pair.key.text->view());
      }
      if (!is_parameter) put(*rest.dict, pair.key, pair.value);
    }
    if (rest.dict != nullptr) set(work.text("kwargs"), rest);
  } else if (used < arguments.n_named) {
    work.fail("the macro '{:.60}' has no parameter for a named argument", title);
  }
  Writer out(work);
  execute(macro.node->b, out);
  scope_ = outer;
  return out.finish();
}

}  // namespace qsf::templates
