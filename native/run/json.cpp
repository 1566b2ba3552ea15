#include "native/run/json.h"

#include <algorithm>
#include <vector>

#include "native/cli/input.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr std::size_t kDeepest = 200;  // lists and objects in each other

/// Makes a value of the events of a parser. The library's own maker compares each key with all before it.
class Maker {
 public:
  explicit Maker(Json& root) : root_(root) {}

  bool is_deep() const { return deep_; }
  /// Returns the key that an object has twice, or null.
  const std::string* twice() const { return twice_; }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    object().emplace_back(std::move(name), nullptr);
    return true;
  }
  bool end_object() {
    std::vector<const std::string*> names;
    for (const auto& [name, value] : object()) names.push_back(&name);
    std::ranges::sort(names, {}, [](const std::string* name) -> const std::string& { return *name; });
    const auto same = std::ranges::adjacent_find(names, [](const auto* a, const auto* b) { return *a == *b; });
    if (same != names.end()) twice_ = *same;
    open_.pop_back();
    return twice_ == nullptr;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  Json::object_t& object() { return *open_.back()->get_ptr<Json::object_t*>(); }
  /// Returns the place of a value, which stays until its parent gets another one.
  Json* put_at(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& place = object().back().second;
    place = std::move(value);
    return &place;
  }
  bool put(Json value) {
    put_at(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(put_at(std::move(value)));
    deep_ = open_.size() > kDeepest;
    return !deep_;
  }

  Json& root_;
  std::vector<Json*> open_;
  bool deep_ = false;
  const std::string* twice_ = nullptr;
};

}  // namespace

Result<Json> read_json(const std::string& path, std::size_t limit, std::string_view option, std::string_view instead) {
  QSF_LET(text, read_text(path, limit, option));
  Json read;
  Maker maker(read);
  if (Json::sax_parse(text, &maker)) return read;
  if (maker.is_deep()) {
    return make_error(ErrorCode::bad_input, "{} has lists in each other, more than {} deep", path, kDeepest);
  }
  if (maker.twice() != nullptr) {
    return make_error(ErrorCode::bad_input, "{} has an object with the key '{:.60}' twice", path, *maker.twice());
  }
  return make_error(ErrorCode::bad_input, "{} is {}not {}", path, text.empty() ? "empty, and " : "", instead);
}

}  // namespace qsf::run
