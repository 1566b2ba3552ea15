// Operators on values, as Python defines them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "templates/machine.h"
#include "templates/text.h"

namespace qsf::templates {
namespace {

std::string_view sign_of(Op op) {
  constexpr std::pair<Op, std::string_view> kSigns[]{
      {Op::add, "+"},       {Op::subtract, "-"}, {Op::multiply, "*"}, {Op::divide, "/"},   {Op::divide_whole, "//"},
      {Op::remainder, "%"}, {Op::power, "**"},   {Op::negative, "-"}, {Op::positive, "+"},
  };
  const auto* const found = std::ranges::find(kSigns, op, &std::pair<Op, std::string_view>::first);
  return found == std::end(kSigns) ? std::string_view("?") : found->second;
}

/// Computes with 64 bits. Returns false if the result does not fit.
bool compute(Op op, std::int64_t a, std::int64_t b, std::int64_t& out) {
  switch (op) {
    case Op::add:
      return !__builtin_add_overflow(a, b, &out);
    case Op::subtract:
      return !__builtin_sub_overflow(a, b, &out);
    case Op::multiply:
      return !__builtin_mul_overflow(a, b, &out);
    case Op::negative:
      return !__builtin_sub_overflow(std::int64_t{0}, a, &out);
    case Op::positive:
      out = a;
      return true;
    case Op::divide_whole:
    case Op::remainder: {
      if (b == -1) {
        out = 0;
        return op == Op::remainder || !__builtin_sub_overflow(std::int64_t{0}, a, &out);
      }
      const std::int64_t rest = a % b;
      const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
      out = op == Op::remainder ? rest + (other_sign ? b : 0) : a / b - (other_sign ? 1 : 0);
      return true;
    }
    default: {
      out = 1;
      if (a == 0 || a == 1) {
        out = b == 0 ? 1 : a;
        return true;
      }
      for (std::int64_t i = 0; i < b; ++i) {
        if (i > 64 && a != -1) return false;
        if (a == -1) {
          out = b % 2 == 0 ? 1 : -1;
          return true;
        }
        if (__builtin_mul_overflow(out, a, &out)) return false;
      }
      return true;
    }
  }
}

double compute(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::divide_whole:
    case Op::remainder: {
      const double rest = std::fmod(a, b);
      const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
      if (op == Op::remainder) return rest == 0 ? std::copysign(0, b) : rest + (other_sign ? b : 0);
      const double exact = (a - rest) / b - (other_sign ? 1 : 0), below = std::floor(exact);
      return exact == 0 ? std::copysign(0, a / b) : below + (exact - below > 0.5 ? 1 : 0);
    }
    case Op::negative:
      return -a;
    default:
      return a;
  }
}

/// Returns a number below, equal to or above 0; 2 if one of them is no number.
int order_of_numbers(const Value& a, const Value& b) {
  const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; };
  if (a.is_whole() && b.is_whole()) return order(a.whole(), b.whole());
  if (b.is_whole()) {
    const int other = order_of_numbers(b, a);
    return other == 2 ? 2 : -other;
  }
  const int nearly = order(a.number(), b.number());
  // An int whose float is equal may be a neighbour of it; at 2^63, it is below.
  if (nearly != 0 || !a.is_whole()) return nearly;
  return b.number() >= 0x1p63 ? -1 : order(a.whole(), static_cast<std::int64_t>(b.number()));
}

}  // namespace

bool Machine::is_true(const Value& value) {
  switch (value.kind) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::text:
      return value.text->size != 0;
    case Kind::list:
      return value.list->form == Form::lazy || value.list->size != 0;
    case Kind::dict:
      return value.dict->size != 0;
    default:
      return true;
  }
}

Value Machine::arithmetic(Op op, const Value& a, const Value& b) {
  const bool divides = op == Op::divide || op == Op::divide_whole || op == Op::remainder;
  if (divides && b.number() == 0) return work.fail("a number is divided by zero");
  const bool whole_result = a.is_whole() && b.is_whole() && op != Op::divide && (op != Op::power || b.whole() >= 0);
  if (whole_result) {
    std::int64_t result = 0;
    if (!compute(op, a.whole(), b.whole(), result)) return work.fail("a whole number does not fit in 64 bits");
    return integer(result);
  }
  if (op != Op::power) return real(compute(op, a.number(), b.number()));
  const double exponent = b.number();
  if (exponent != std::floor(exponent) || std::abs(exponent) > 2000) {
    return work.fail("a power has an exponent that is not whole or above 2000");
  }
  work.spend(static_cast<std::uint64_t>(std::abs(exponent)) / 16);
  if (exponent < 0 && a.number() == 0) return work.fail("a number is divided by zero");
  double power = 1;
  for (int i = 0; i < static_cast<int>(std::abs(exponent)); ++i) power *= a.number();
  if (exponent > 0 && std::isinf(power) && std::isfinite(a.number())) return work.fail("a power is too large");
  return real(exponent < 0 ? 1 / power : power);
}

Value Machine::repeated(const Value& value, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (value.is_text()) {
    Writer out(work);
    if (value.text->size != 0) {
      for (std::int64_t i = 0; i < times && work.spend(1); ++i) out.add(*value.text);
    }
    return out.finish();
  }
  const List& list = *value.list;
  if (list.size != 0 && times > 0x7fffffff / list.size) return work.fail("a list would have too many items");
  const auto n = static_cast<std::uint32_t>(list.size * times);
  const Value made = make_list(list.form, nullptr, n);
  for (std::uint32_t i = 0; made && i < n; ++i) made.list->items[i] = list.items[i % list.size];
  return made;
}

Value Machine::added(const Value& a, const Value& b) {
  if (a.is_text()) {
    const bool safe = a.text->safe || b.text->safe;  // then the other text is escaped
    Writer out(work);
    for (const Text* part : {a.text, b.text}) {
      if (safe && !part->safe) {
        write_escaped(out, *part);
      } else {
        out.add(*part);
      }
    }
    const Value made = out.finish();
    return made && safe ? mark_safe(*this, made) : made;
  }
  const Value made = make_list(a.list->form, nullptr, a.list->size + b.list->size);
  if (!made) return {};
  std::copy_n(b.list->items, b.list->size, std::copy_n(a.list->items, a.list->size, made.list->items));
  return made;
}

Value Machine::binary(Op op, const Value& a, const Value& b) {
  if (op == Op::join) {
    Writer out(work);
    write(out, a, {});
    write(out, b, {});
    return out.finish();
  }
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  const auto is_list = [](const Value& v) { return v.is(Kind::list) && v.list->form <= Form::tuple; };
  if (op == Op::remainder && a.is_text()) return format_percent(*this, *a.text, b);
  if (op == Op::add && a.is_text() && b.is_text()) return added(a, b);
  if (op == Op::add && is_list(a) && is_list(b) && a.list->form == b.list->form) return added(a, b);
  if (op == Op::multiply && b.is_whole() && (a.is_text() || is_list(a))) return repeated(a, b.whole());
  if (op == Op::multiply && a.is_whole() && (b.is_text() || is_list(b))) return repeated(b, a.whole());
  for (const Value& value : {a, b}) {
    if (value.is(Kind::undefined) && value.text != nullptr) {
      return work.fail("'{:.60}' is undefined", value.text->view());
    }
  }
  return work.fail("'{}' does not work for {} and {}", sign_of(op), type_name(a), type_name(b));
}

bool Machine::equal(const Value& a, const Value& b) {
  const Nested nested(work);
  if (!nested || !work.spend(1)) return false;
  if (a.is_number() && b.is_number()) return order_of_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::text:
      return work.same(a.text->view(), b.text->view());
    case Kind::list: {
      if (a.list == b.list) return true;
      if (a.list->size != b.list->size || a.list->form != b.list->form) return false;
      for (std::uint32_t i = 0; i < a.list->size; ++i) {
        if (!equal(a.list->items[i], b.list->items[i])) return false;
      }
      return true;
    }
    case Kind::dict: {
      if (a.dict->size != b.dict->size) return false;
      for (std::uint32_t i = 0; i < a.dict->size; ++i) {
        const Pair& pair = a.dict->pairs[i];
        if (!contains(b, pair.key) || !equal(item(b, pair.key), pair.value)) return false;
      }
      return true;
    }
    default:
      return a.list == b.list;  // the same object
  }
}

int Machine::order(const Value& a, const Value& b) {
  const Nested nested(work);
  if (!nested || !work.spend(1)) return 0;
  if (a.is_number() && b.is_number()) return order_of_numbers(a, b) % 2;
  if (a.is_text() && b.is_text()) {
    work.spend(std::min(a.text->size, b.text->size) / 32);
    return a.text->view().compare(b.text->view());
  }
  if (a.is(Kind::list) && b.is(Kind::list) && a.list->form == b.list->form) {
    for (std::uint32_t i = 0; i < std::min(a.list->size, b.list->size); ++i) {
      if (!equal(a.list->items[i], b.list->items[i])) return order(a.list->items[i], b.list->items[i]);
    }
    return a.list->size < b.list->size ? -1 : a.list->size > b.list->size ? 1 : 0;
  }
  work.fail("values of type {} and {} have no order", type_name(a), type_name(b));
  return 0;
}

bool Machine::contains(const Value& container, const Value& value) {
  if (container.is_text()) {
    if (!value.is_text()) {
      work.fail("a value of type {} is searched for in a text", type_name(value));
      return false;
    }
    return search(container.text->view(), value.text->view()) != std::string_view::npos;
  }
  if (container.is(Kind::dict) && value.is_text()) {
    return find(*container.dict, value.text->view()) != nullptr;
  }
  for (const Value& one : items(container)) {
    if (equal(one, value)) return true;
    if (work.failed()) return false;
  }
  return false;
}

bool Machine::compare(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::equal:
      return equal(a, b);
    case Op::unequal:
      return !equal(a, b);
    case Op::in:
      return contains(b, a);
    case Op::not_in:
      return !contains(b, a);
    default:
      break;
  }
  if (a.is_number() && b.is_number() && (std::isnan(a.number()) || std::isnan(b.number()))) return false;
  const int order_of = order(a, b);
  return op == Op::less         ? order_of < 0
         : op == Op::less_equal ? order_of <= 0
         : op == Op::greater    ? order_of > 0
                                : order_of >= 0;
}

std::uint32_t* Machine::sorted(const Value* values, std::uint32_t n, bool descending) {
  auto* from = work.make<std::uint32_t>(n);
  auto* to = work.make<std::uint32_t>(n);
  if (work.failed()) return nullptr;
  for (std::uint32_t i = 0; i < n; ++i) from[i] = i;
  for (std::uint32_t width = 1; width < n; width *= 2) {  // merges neighbouring runs
    for (std::uint32_t begin = 0; begin < n; begin += 2 * width) {
      const std::uint32_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      std::uint32_t left = begin, right = middle;
      for (std::uint32_t i = begin; i < end; ++i) {
        const bool takes_right =
            left == middle || (right < end && (descending ? order(values[from[left]], values[from[right]]) < 0
                                                          : order(values[from[right]], values[from[left]]) < 0));
        if (work.failed()) return nullptr;
        to[i] = takes_right ? from[right++] : from[left++];
      }
    }
    std::swap(from, to);
  }
  return from;
}

}  // namespace qsf::templates
