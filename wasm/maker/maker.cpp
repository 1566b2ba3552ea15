// The converter in a page: a module of its own, which makes the bytes of a .qsf file from a model of another kind. The
// declarations for JavaScript are in web/src/wasm/maker.ts.
#include <emscripten/bind.h>
#include <emscripten/heap.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converter/made/made_file.h"
#include "converter/readers/inputs.h"
#include "converter/types/written_type.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"
#include "wasm/convert.h"

namespace qsf::wasm {
namespace {

using convert::Input;
using convert::MadeFile;
using emscripten::val;

val view_of(std::span<std::byte> bytes) {
  return val(emscripten::typed_memory_view(bytes.size(), reinterpret_cast<std::uint8_t*>(bytes.data())));
}

/// The model's files, which JavaScript reads. It waits for nothing: it notes bytes and names that are not known yet,
/// and the call that wanted them is repeated when they are.
class Files {
 public:
  explicit Files(val files) : files_(std::move(files)) {}

  std::optional<Input> find(const std::string& name) const {
    const int number = files_.call<int>("find", name);
    if (number < 0) return {};
    const auto file = static_cast<std::uint32_t>(number);
    const auto read_at = [files = *this, file](std::uint64_t offset, std::span<std::byte> into) {
      return files.read(file, offset, into);
    };
    return Input{name, static_cast<std::uint64_t>(files_.call<double>("size", number)), read_at, file};
  }

  Status read(std::uint32_t file, std::uint64_t offset, std::span<std::byte> into) const {
    if (files_.call<bool>("read", file, static_cast<double>(offset), view_of(into))) return {};
    return make_error(ErrorCode::io_error, "{} bytes at {} are not there yet", into.size(), offset);
  }

 private:
  val files_;
};

/// Returns a span's numbers as an array.
val array_of(std::span<const double> numbers) { return val::array(numbers.begin(), numbers.end()); }

/// Whether weights are rounded to a format by a search, which the maker does not have: see left_out.cpp.
constexpr bool needs_search(const Format& format) {
  return format.rounding == Rounding::elsewhere || format.rounding == Rounding::least_path;
}

/// Returns the options of a conversion to a type, by its name in any case; empty: the model's own types.
Result<convert::Options> options_of(const std::string& type) {
  convert::Options out;
  if (type.empty()) return out;
  out.matrices = convert::written_id(type);
  if (out.matrices && !needs_search(convert::format_of(*out.matrices))) return out;
  std::string known;
  for (const Format& format : kFormats) {
    if (!needs_search(format)) known.append(known.empty() ? "" : ", ").append(format.name);
  }
  return make_error(ErrorCode::bad_argument, "quantType is \"{:.60}\"; it must be one of {}", type, known);
}

class Maker {
 public:
  Maker(val files, std::string type) : files_(std::move(files)), type_(std::move(type)) {}

  /// Plans the file that is made of the file `name`, or of a folder if `name` is empty.
  Status plan(const std::string& name) {
    QSF_LET(options, options_of(type_));
    // Without the tokenizer first, because a missing file is found sooner.
    QSF_LET(sizes, open(name, false));
    sizes = {};
    QSF_LET(model, open(name, true));
    kind_ = model.kind;
    QSF_LET(file, MadeFile::plan(std::move(model), options));
    file_ = std::move(file);
    front_ = file_->take_front();
    return {};
  }

  /// Does the same with the front and the size of an earlier plan.
  Status restore(const std::string& name, const std::string& front, double size, const std::string& checked) {
    QSF_LET(options, options_of(type_));
    QSF_LET(model, open(name, false));
    kind_ = model.kind;
    const std::span<const std::uint8_t> known(reinterpret_cast<const std::uint8_t*>(checked.data()), checked.size());
    QSF_LET(file, MadeFile::restore(std::move(model), options,
                                    {std::as_bytes(std::span(front)), known, static_cast<std::uint64_t>(size)}));
    file_ = std::move(file);
    return {};
  }

  std::string kind() const { return kind_; }
  double size() const { return static_cast<double>(file_->plan().size()); }
  val front() { return view_of(front_); }
  val warnings() const { return val::array(file_->warnings().begin(), file_->warnings().end()); }
  /// Returns offset and size of each segment.
  val segments() const {
    std::vector<double> numbers;
    for (const SegmentEntry& segment : file_->plan().segments()) {
      numbers.push_back(static_cast<double>(segment.offset));
      numbers.push_back(segment.raw_size);
    }
    return array_of(numbers);
  }

  /// Returns file, offset and size of each run that a segment is made from. Segments of rows that may come from
  /// anywhere find out their inputs when they are made.
  val runs(std::uint32_t segment) {
    file_->next_step(segment, kAll, step_ = {});
    std::vector<double> numbers;
    for (const InputRun& run : step_.runs) {
      numbers.push_back(run.input);
      numbers.push_back(static_cast<double>(run.offset));
      numbers.push_back(static_cast<double>(run.size));
    }
    return array_of(numbers);
  }

  Result<std::span<std::uint8_t>> make(std::uint32_t segment) {
    raw_.resize(file_->plan().segments()[segment].raw_size);
    file_->next_step(segment, kAll, step_ = {});
    if (step_.anywhere) {
      QSF_TRY(file_->make_whole(segment, raw_, room_));
    } else {
      QSF_TRY(read_stored());
      QSF_TRY(file_->make(segment, step_, raw_, room_));
    }
    QSF_TRY(file_->seal(segment, raw_));
    return std::span(reinterpret_cast<std::uint8_t*>(raw_.data()), raw_.size());
  }

  Result<std::span<std::uint8_t>> part(std::uint32_t segment, std::uint32_t begin, std::uint32_t size) {
    raw_.resize(size);
    QSF_TRY(file_->plan().read(segment, begin, raw_, room_));
    return std::span(reinterpret_cast<std::uint8_t*>(raw_.data()), raw_.size());
  }

  /// Returns the beginning of the front with the checksum of each segment.
  Result<std::span<std::uint8_t>> tables(const val& checksums) {
    std::vector<SegmentEntry> segments(file_->plan().segments().begin(), file_->plan().segments().end());
    for (std::size_t i = 0; i < segments.size(); ++i) segments[i].crc = checksums[i].as<std::uint32_t>();
    QSF_LET(tables, file_->plan().tables(segments, file_->plan().size()));
    raw_ = std::move(tables);
    return std::span(reinterpret_cast<std::uint8_t*>(raw_.data()), raw_.size());
  }

  double memory() const { return static_cast<double>(emscripten_get_heap_size()); }

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};  // a segment is made in one step

  Result<convert::LoadedModel> open(const std::string& name, bool with_tokenizer) const {
    convert::ModelLocation place;
    place.folder.name = "the model";
    place.folder.find = [files = files_](const std::string& file) -> Result<std::optional<Input>> {
      return files.find(file);
    };
    place.name = name.substr(0, name.rfind('.'));
    if (!name.empty()) {
      place.file = files_.find(name);
      if (!place.file) return make_error(ErrorCode::io_error, "there is no file {:.160}", name);
      QSF_LET(head, convert::read_head(*place.file, convert::kHeadBytes));
      place.head = std::move(head);
    }
    return convert::open_place(place, with_tokenizer);
  }

  Status read_stored() {
    for (const MadeFile::Part& part : step_.parts) {
      if (part.from != RowsFrom::stored) continue;
      std::span<std::byte> rest = std::span(raw_).subspan(part.at);
      for (const InputRun& run : std::span(step_.runs).subspan(part.first_run, part.n_runs)) {
        QSF_TRY(files_.read(run.input, run.offset, rest.first(run.size)));
        rest = rest.subspan(run.size);
      }
    }
    return {};
  }

  Files files_;
  std::string type_;  // of all matrices; empty: their own
  std::unique_ptr<MadeFile> file_;
  std::string kind_;
  std::vector<std::byte> front_, raw_;
  MadeFile::Step step_;
  FilePlan::Room room_;
};

/// The module's one model. The script that starts the module is a quarter shorter without a class in JavaScript.
std::unique_ptr<Maker> maker;

template <auto method>
struct Call;

/// Calls a method, and returns its result as JavaScript gets it.
template <class R, class... Args, R (Maker::*method)(Args...)>
struct Call<method> {
  static Js<R>::type call(std::remove_cvref_t<Args>... args) { return Js<R>::to((maker.get()->*method)(args...)); }
};

}  // namespace
}  // namespace qsf::wasm

EMSCRIPTEN_BINDINGS(qsf_maker) {
  using namespace qsf::wasm;
  emscripten::value_object<qsf::Error> failure("Failure");
#define QSF_FAILURE_FIELD(type, name, js, meaning) field<&qsf::Error::name>(failure, #js);
#include "qsf/base/boundary.def"
  emscripten::function(
      "begin", +[](emscripten::val files, std::string type) {
        maker = std::make_unique<Maker>(std::move(files), std::move(type));
      });
  emscripten::function("plan", &Call<&Maker::plan>::call);
  emscripten::function("restore", &Call<&Maker::restore>::call);
  emscripten::function("kind", +[] { return maker->kind(); });
  emscripten::function("size", +[] { return maker->size(); });
  emscripten::function("front", +[] { return maker->front(); });
  emscripten::function("warnings", +[] { return maker->warnings(); });
  emscripten::function("segments", +[] { return maker->segments(); });
  emscripten::function("runs", +[](std::uint32_t segment) { return maker->runs(segment); });
  emscripten::function("make", &Call<&Maker::make>::call);
  emscripten::function("part", &Call<&Maker::part>::call);
  emscripten::function("tables", &Call<&Maker::tables>::call);
  emscripten::function("memory", +[] { return maker->memory(); });
}
