#include "converter/files/pickle.h"

#include <array>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::size_t kMaxMarks = 1024;
constexpr std::size_t kMaxText = 64 << 10;

constexpr std::array kPickleGlobals{
    GlobalName{"collections", "OrderedDict", PickleGlobal::ordered_dict},
    GlobalName{"torch._utils", "_rebuild_tensor_v2", PickleGlobal::rebuild_tensor},
    GlobalName{"torch._utils", "_rebuild_tensor_v3", PickleGlobal::rebuild_tensor_typed},
    GlobalName{"torch._utils", "_rebuild_parameter", PickleGlobal::rebuild_parameter},
    GlobalName{"torch", "DoubleStorage", PickleGlobal::type, "F64"},
    GlobalName{"torch", "FloatStorage", PickleGlobal::type, "F32"},
    GlobalName{"torch", "HalfStorage", PickleGlobal::type, "F16"},
    GlobalName{"torch", "BFloat16Storage", PickleGlobal::type, "BF16"},
    GlobalName{"torch", "LongStorage", PickleGlobal::type, "I64"},
    GlobalName{"torch", "IntStorage", PickleGlobal::type, "I32"},
    GlobalName{"torch", "ShortStorage", PickleGlobal::type, "I16"},
    GlobalName{"torch", "CharStorage", PickleGlobal::type, "I8"},
    GlobalName{"torch", "ByteStorage", PickleGlobal::type, "U8"},
    GlobalName{"torch", "BoolStorage", PickleGlobal::type, "BOOL"},
    GlobalName{"torch.storage", "UntypedStorage"},
    GlobalName{"torch", "float8_e4m3fn", PickleGlobal::type, "F8_E4M3"},
    GlobalName{"torch", "float8_e5m2", PickleGlobal::type, "F8_E5M2"},
    GlobalName{"torch", "float8_e4m3fnuz", PickleGlobal::type, "F8_E4M3FNUZ"},
    GlobalName{"torch", "float8_e5m2fnuz", PickleGlobal::type, "F8_E5M2FNUZ"},
    GlobalName{"torch", "float8_e8m0fnu", PickleGlobal::type, "F8_E8M0"},
    GlobalName{"torch", "uint16", PickleGlobal::type, "U16"},
    GlobalName{"torch", "uint32", PickleGlobal::type, "U32"},
    GlobalName{"torch", "uint64", PickleGlobal::type, "U64"},
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, std::string_view file) : reader_(bytes), file_(file) {
    out_.bytes = bytes;
    // Values without elements exist only once.
    out_.values = {
        {}, {.kind = PickleKind::boolean}, {.kind = PickleKind::boolean, .number = 1}, {.kind = PickleKind::tuple}};
  }

  Result<Pickle> run();

  Status skip_protocol();
  Status none() { return push(kNone); }
  Status no() { return push(kFalse); }
  Status yes() { return push(kTrue); }
  Status empty_tuple() { return push(kEmptyTuple); }
  Status empty_list() { return container(PickleKind::list); }
  Status empty_dict() { return container(PickleKind::dict); }
  Status int4() { return number(reader_.read<std::int32_t>()); }
  Status int1() { return number(reader_.read<std::uint8_t>()); }
  Status int2() { return number(reader_.read<std::uint16_t>()); }
  Status long1();
  Status unicode();
  Status global();
  Status mark();
  Status tuple();
  Status tuple1() { return tuple_of(1); }
  Status tuple2() { return tuple_of(2); }
  Status tuple3() { return tuple_of(3); }
  Status put1() { return put(reader_.read<std::uint8_t>()); }
  Status put4() { return put(reader_.read<std::uint32_t>()); }
  Status get1() { return get(reader_.read<std::uint8_t>()); }
  Status get4() { return get(reader_.read<std::uint32_t>()); }
  Status append() { return add(PickleKind::list, 1); }
  Status appends() { return add_marked(PickleKind::list); }
  Status set_item() { return add(PickleKind::dict, 2); }
  Status set_items() { return add_marked(PickleKind::dict); }
  Status persistent_id();
  Status reduce();
  Status build();

 private:
  static constexpr PickleId kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3, kUnset = ~PickleId{0};

  Error damaged(const char* what) const {
    return make_error(ErrorCode::bad_input, "{:.100}: the pickle is damaged at byte {}: {}", file_, reader_.at(), what);
  }
  Error too_much(const char* what, std::size_t most) const {
    return make_error(ErrorCode::unsupported, "{:.100}: the pickle has more than {} {}", file_, most, what);
  }
  /// Returns the height of the stack at the innermost mark. Values below it cannot be taken.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Status need(std::size_t n) const {
    return stack_.size() - floor() >= n ? Status() : Status(damaged("its stack is empty"));
  }
  PickleId pop() {
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Status push(PickleId id) {
    if (stack_.size() == kMaxPickleValues) return too_much("values on its stack", kMaxPickleValues);
    stack_.push_back(id);
    return {};
  }
  Status push_value(const Pickle::Value& value) {
    if (out_.values.size() == kMaxPickleValues) return too_much("values", kMaxPickleValues);
    out_.values.push_back(value);
    return push(static_cast<PickleId>(out_.values.size() - 1));
  }
  Status number(std::int64_t value) { return push_value({.kind = PickleKind::number, .number = value}); }
  Status container(PickleKind kind) {
    const auto at = static_cast<std::uint32_t>(out_.containers.size());
    QSF_TRY(push_value({.kind = kind, .begin = at}));
    out_.containers.emplace_back();
    return {};
  }
  Status tuple_of(std::size_t n);
  Status put(std::uint32_t slot);
  Status get(std::uint32_t slot);
  Status add(PickleKind kind, std::size_t n);
  Status add_marked(PickleKind kind);

  ByteReader reader_;
  std::string_view file_;
  Pickle out_;
  std::vector<PickleId> stack_, memo_;
  std::vector<std::size_t> marks_;  // heights of the stack
};

struct Opcode {
  std::uint8_t code;
  const char* name;
  Status (Machine::*step)() = nullptr;  // null: refused
};
constexpr std::uint8_t kStop = '.';
constexpr std::array kOpcodes{
    Opcode{0x80, "PROTO", &Machine::skip_protocol},
    Opcode{'N', "NONE", &Machine::none},
    Opcode{0x88, "NEWTRUE", &Machine::yes},
    Opcode{0x89, "NEWFALSE", &Machine::no},
    Opcode{'J', "BININT", &Machine::int4},
    Opcode{'K', "BININT1", &Machine::int1},
    Opcode{'M', "BININT2", &Machine::int2},
    Opcode{0x8a, "LONG1", &Machine::long1},
    Opcode{'X', "BINUNICODE", &Machine::unicode},
    Opcode{'c', "GLOBAL", &Machine::global},
    Opcode{'(', "MARK", &Machine::mark},
    Opcode{')', "EMPTY_TUPLE", &Machine::empty_tuple},
    Opcode{'t', "TUPLE", &Machine::tuple},
    Opcode{0x85, "TUPLE1", &Machine::tuple1},
    Opcode{0x86, "TUPLE2", &Machine::tuple2},
    Opcode{0x87, "TUPLE3", &Machine::tuple3},
    Opcode{']', "EMPTY_LIST", &Machine::empty_list},
    Opcode{'a', "APPEND", &Machine::append},
    Opcode{'e', "APPENDS", &Machine::appends},
    Opcode{'}', "EMPTY_DICT", &Machine::empty_dict},
    Opcode{'s', "SETITEM", &Machine::set_item},
    Opcode{'u', "SETITEMS", &Machine::set_items},
    Opcode{'q', "BINPUT", &Machine::put1},
    Opcode{'r', "LONG_BINPUT", &Machine::put4},
    Opcode{'h', "BINGET", &Machine::get1},
    Opcode{'j', "LONG_BINGET", &Machine::get4},
    Opcode{'Q', "BINPERSID", &Machine::persistent_id},
    Opcode{'R', "REDUCE", &Machine::reduce},
    Opcode{'b', "BUILD", &Machine::build},
    // Names for error sentences.
    Opcode{'0', "POP"},
    Opcode{'1', "POP_MARK"},
    Opcode{'2', "DUP"},
    Opcode{'F', "FLOAT"},
    Opcode{'G', "BINFLOAT"},
    Opcode{'I', "INT"},
    Opcode{'L', "LONG"},
    Opcode{'P', "PERSID"},
    Opcode{'S', "STRING"},
    Opcode{'T', "BINSTRING"},
    Opcode{'U', "SHORT_BINSTRING"},
    Opcode{'V', "UNICODE"},
    Opcode{'B', "BINBYTES"},
    Opcode{'C', "SHORT_BINBYTES"},
    Opcode{'d', "DICT"},
    Opcode{'g', "GET"},
    Opcode{'i', "INST"},
    Opcode{'l', "LIST"},
    Opcode{'o', "OBJ"},
    Opcode{'p', "PUT"},
    Opcode{0x81, "NEWOBJ"},
    Opcode{0x82, "EXT1"},
    Opcode{0x83, "EXT2"},
    Opcode{0x84, "EXT4"},
    Opcode{0x8b, "LONG4"},
    Opcode{0x8c, "SHORT_BINUNICODE"},
    Opcode{0x8d, "BINUNICODE8"},
    Opcode{0x8e, "BINBYTES8"},
    Opcode{0x8f, "EMPTY_SET"},
    Opcode{0x90, "ADDITEMS"},
    Opcode{0x91, "FROZENSET"},
    Opcode{0x92, "NEWOBJ_EX"},
    Opcode{0x93, "STACK_GLOBAL"},
    Opcode{0x94, "MEMOIZE"},
    Opcode{0x95, "FRAME"},
    Opcode{0x96, "BYTEARRAY8"},
    Opcode{0x97, "NEXT_BUFFER"},
    Opcode{0x98, "READONLY_BUFFER"},
};

/// The index of each byte in kOpcodes, or 0xff.
constexpr std::array<std::uint8_t, 256> kOpcodeAt = [] {
  std::array<std::uint8_t, 256> at{};
  at.fill(0xff);
  for (std::size_t i = 0; i < kOpcodes.size(); ++i) at[kOpcodes[i].code] = static_cast<std::uint8_t>(i);
  return at;
}();

Status Machine::skip_protocol() {
  const auto protocol = reader_.read<std::uint8_t>();
  if (reader_.bad() || protocol == 2) return {};
  return make_error(ErrorCode::unsupported, "{:.100}: the pickle has protocol {}, and torch.save's is 2", file_,
                    protocol);
}

Status Machine::long1() {
  const auto size = reader_.read<std::uint8_t>();
  const std::span<const std::byte> bytes = reader_.take(size);
  if (reader_.bad()) return {};
  if (size > sizeof(std::int64_t)) {
    return make_error(ErrorCode::unsupported, "{:.100}: the pickle has a number of {} bytes", file_, size);
  }
  std::uint64_t value = size != 0 && (bytes.back() & std::byte{0x80}) != std::byte{0} ? ~std::uint64_t{0} : 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return number(static_cast<std::int64_t>(value));
}

Status Machine::unicode() {
  const auto size = reader_.read<std::uint32_t>();
  if (!reader_.bad() && size > kMaxText) return too_much("bytes in one text", kMaxText);
  const std::size_t begin = reader_.at();
  reader_.take(size);
  if (reader_.bad()) return {};
  return push_value({.kind = PickleKind::text, .begin = static_cast<std::uint32_t>(begin), .size = size});
}

/// Reads two lines: a module and a name in it.
Status Machine::global() {
  std::array<std::string_view, 2> lines;
  for (std::string_view& line : lines) {
    const auto* const begin = reinterpret_cast<const char*>(out_.bytes.data()) + reader_.at();
    const std::string_view rest(begin, reader_.left());
    const std::size_t size = rest.substr(0, kMaxText).find('\n');
    if (size == std::string_view::npos) {
      if (rest.size() >= kMaxText) return too_much("bytes in one name", kMaxText);
      reader_.take(rest.size() + 1);  // past the end of the bytes
      return {};
    }
    line = reader_.text(size);
    reader_.take(1);
  }
  for (std::size_t i = 0; i < kPickleGlobals.size(); ++i) {
    const GlobalName& known = kPickleGlobals[i];
    if (known.module != lines[0] || known.name != lines[1]) continue;
    return push_value({.kind = PickleKind::global, .global = known.meaning, .number = static_cast<std::int64_t>(i)});
  }
  return make_error(ErrorCode::unsupported,
                    "{:.100}: the pickle names {:.60}.{:.60}, which is no part of a tensor: it is refused", file_,
                    lines[0], lines[1]);
}

Status Machine::mark() {
  if (marks_.size() == kMaxMarks) return too_much("marks within each other", kMaxMarks);
  marks_.push_back(stack_.size());
  return {};
}

Status Machine::tuple_of(std::size_t n) {
  QSF_TRY(need(n));
  const std::size_t begin = out_.items.size();
  out_.items.insert(out_.items.end(), stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
  stack_.resize(stack_.size() - n);
  return push_value(
      {.kind = PickleKind::tuple, .begin = static_cast<std::uint32_t>(begin), .size = static_cast<std::uint32_t>(n)});
}

Status Machine::tuple() {
  if (marks_.empty()) return damaged("a tuple has no mark");
  const std::size_t n = stack_.size() - marks_.back();
  QSF_TRY(tuple_of(n));
  marks_.pop_back();
  return {};
}

Status Machine::put(std::uint32_t slot) {
  if (reader_.bad()) return {};
  if (slot >= kMaxPickleValues) return too_much("places in its memo", kMaxPickleValues);
  QSF_TRY(need(1));
  if (slot >= memo_.size()) memo_.resize(slot + 1, kUnset);
  memo_[slot] = stack_.back();
  return {};
}

Status Machine::get(std::uint32_t slot) {
  if (reader_.bad()) return {};
  if (slot >= memo_.size() || memo_[slot] == kUnset) return damaged("its memo has nothing there");
  return push(memo_[slot]);
}

/// Adds the last `n` values to the list or dictionary below them.
Status Machine::add(PickleKind kind, std::size_t n) {
  QSF_TRY(need(n + 1));
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(n);
  const Pickle::Value& to = out_.values[*(first - 1)];
  if (to.kind != kind) return damaged("elements are added to an object that is no list or dictionary");
  if (kind == PickleKind::dict && n % 2 != 0) return damaged("a key has no value");
  std::vector<PickleId>& container = out_.containers[to.begin];
  container.insert(container.end(), first, stack_.end());
  stack_.resize(stack_.size() - n);
  return {};
}

Status Machine::add_marked(PickleKind kind) {
  if (marks_.empty()) return damaged("elements have no mark");
  const std::size_t n = stack_.size() - marks_.back();
  marks_.pop_back();
  return add(kind, n);
}

Status Machine::persistent_id() {
  QSF_TRY(need(1));
  const Pickle::Value& name = out_.values[pop()];
  if (name.kind != PickleKind::tuple) return damaged("a storage's name is no tuple");
  return push_value({.kind = PickleKind::storage, .begin = name.begin, .size = name.size});
}

Status Machine::reduce() {
  QSF_TRY(need(2));
  const Pickle::Value arguments = out_.values[pop()];
  const Pickle::Value callee = out_.values[pop()];
  if (arguments.kind != PickleKind::tuple || callee.kind != PickleKind::global) {
    return damaged("a constructor or its arguments are none");
  }
  switch (callee.global) {
    case PickleGlobal::ordered_dict:
      if (arguments.size != 0) break;
      return container(PickleKind::dict);
    case PickleGlobal::rebuild_tensor:
    case PickleGlobal::rebuild_tensor_typed:
      return push_value(
          {.kind = PickleKind::tensor, .global = callee.global, .begin = arguments.begin, .size = arguments.size});
    case PickleGlobal::rebuild_parameter:
      if (arguments.size == 0 || out_.values[out_.items[arguments.begin]].kind != PickleKind::tensor) break;
      return push(out_.items[arguments.begin]);
    case PickleGlobal::type:
      break;
  }
  const GlobalName& name = kPickleGlobals[static_cast<std::size_t>(callee.number)];
  return make_error(ErrorCode::unsupported, "{:.100}: the pickle calls {}.{} with {} values, which is refused", file_,
                    name.module, name.name, arguments.size);
}

/// Drops a state dictionary's `_metadata`: versions of modules, which do not concern weights.
Status Machine::build() {
  QSF_TRY(need(2));
  pop();
  if (out_.values[stack_.back()].kind == PickleKind::dict) return {};
  return make_error(ErrorCode::unsupported, "{:.100}: the pickle sets the state of something other than a dictionary",
                    file_);
}

Result<Pickle> Machine::run() {
  for (;;) {
    const auto code = reader_.read<std::uint8_t>();
    if (!reader_.bad()) {
      if (code == kStop) break;
      const std::uint8_t at = kOpcodeAt[code];
      if (at == 0xff) {
        return make_error(ErrorCode::bad_input, "{:.100}: byte {} of the pickle is {}, which is no opcode", file_,
                          reader_.at() - 1, code);
      }
      const Opcode& opcode = kOpcodes[at];
      if (opcode.step == nullptr) {
        return make_error(ErrorCode::unsupported,
                          "{:.100}: the pickle has the opcode {}, which torch.save does not write: it is refused",
                          file_, opcode.name);
      }
      QSF_TRY((this->*opcode.step)());
    }
    if (!reader_.bad()) continue;
    if (out_.bytes.size() >= kMaxPickleBytes) return too_much("bytes", kMaxPickleBytes);
    return make_error(ErrorCode::truncated, "{:.100}: the file ends within a pickle", file_);
  }
  if (stack_.size() != 1 || !marks_.empty()) return damaged("it ends with other than one value");
  out_.root = stack_.front();
  out_.end = reader_.at();
  return std::move(out_);
}

}  // namespace

std::span<const PickleId> Pickle::elements(PickleId id) const {
  const Value& value = values[id];
  switch (value.kind) {
    case PickleKind::tuple:
    case PickleKind::storage:
    case PickleKind::tensor:
      return std::span(items).subspan(value.begin, value.size);
    case PickleKind::list:
    case PickleKind::dict:
      return containers[value.begin];
    default:
      return {};
  }
}

std::optional<std::int64_t> Pickle::number(PickleId id) const {
  return values[id].kind == PickleKind::number ? std::optional(values[id].number) : std::nullopt;
}

std::optional<std::string_view> Pickle::text(PickleId id) const {
  const Value& value = values[id];
  if (value.kind != PickleKind::text) return {};
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + value.begin, value.size);
}

const GlobalName* Pickle::global(PickleId id) const {
  const Value& value = values[id];
  return value.kind == PickleKind::global ? &kPickleGlobals[static_cast<std::size_t>(value.number)] : nullptr;
}

Result<Pickle> read_pickle(std::span<const std::byte> bytes, std::string_view file) {
  return Machine(bytes.first(std::min(bytes.size(), kMaxPickleBytes)), file).run();
}

}  // namespace qsf::convert
