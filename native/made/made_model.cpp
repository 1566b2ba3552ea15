#include "native/made/made_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "converter/readers/inputs.h"
#include "converter/types/written_type.h"
#include "native/sources/address.h"
#include "native/sources/files.h"
#include "native/sources/refused_memory.h"
#include "native/sources/regular_file.h"
#include "qsf/base/align.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/memory.h"

namespace qsf {
namespace {

constexpr std::string_view kRevision = "made 3";  // another one for each change of the fronts that the code makes

/// Whether the converter makes a file of the model. It makes one of a .qsf file only if other types are asked for.
bool is_made(const convert::ModelLocation& place, const SourceOptions& options) {
  return convert::is_qsf(place) ? !options.quant_type.empty() : convert::is_recognised(place);
}

/// Errors of reading are left to the source that reads the path then.
bool is_made(const std::string& path, const SourceOptions& options) {
  sys::FileInfo info;
  if (!sys::look(path, info)) return false;
  if (info.kind == sys::FileKind::folder) return true;
  if (info.kind != sys::FileKind::regular) return false;
  const Result<convert::ModelLocation> place = convert::local_place(path, std::make_shared<convert::LocalFiles>());
  return place && is_made(*place, options);
}

/// Returns the input, with bytes that were read ahead.
convert::Input with_staged(convert::Input input, const Staged& staged) {
  input.read_at = [&staged, number = input.number, read = std::move(input.read_at)](
                      std::uint64_t offset, std::span<std::byte> into) -> Status {
    return staged.find(number, offset, into) ? Status() : read(offset, into);
  };
  return input;
}

Result<convert::Options> options_of(const SourceOptions& options) {
  convert::Options out;
  if (options.quant_type.empty()) return out;
  out.matrices = convert::written_id(options.quant_type);
  if (!out.matrices) return make_error(ErrorCode::bad_argument, "there is no type '{:.60}'", options.quant_type);
  return out;
}

/// Returns the key of a model's front, which has everything that the front depends on apart from the files.
std::string key_of(const std::string& where, const SourceOptions& options) {
  std::string whole = where;
  if (!is_url(where)) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::weakly_canonical(sys::path_of(where), error);
    if (!error) whole = sys::text_of(path);
  }
  return std::string(kRevision) + "\n" + without_secrets(whole) + "\n" + std::string(options.quant_type);
}

}  // namespace

Result<std::shared_ptr<MadeModel>> MadeModel::open(const std::string& path, const SourceOptions& options) {
  if (!is_made(path, options)) return std::shared_ptr<MadeModel>();
  std::shared_ptr<MadeModel> model(new MadeModel);
  QSF_TRY(model->make(path, options));
  return model;
}

Result<std::shared_ptr<MadeModel>> MadeModel::open_at(const std::string& url, const std::vector<std::string>& names,
                                                      const SourceOptions& options, std::uint32_t& status) {
  std::shared_ptr<MadeModel> model(new MadeModel);
  model->names_ = names;
  const Status made = model->make(url, options);
  if (model->remote_) status = model->remote_->status();
  if (!made) return made.error();
  return model->file_ ? model : std::shared_ptr<MadeModel>();
}

/// Leaves file_ null for a URL that needs no conversion.
Status MadeModel::make(const std::string& where, const SourceOptions& options) {
  QSF_LET(how, options_of(options));
  where_ = where;
  reading_ = options;
  cache_ = FrontCache(std::string(options.cache));
  key_ = key_of(where, options);
  std::optional<Front> kept = cache_.find(key_);
  if (kept && restore(how, *kept)) {
    take(std::move(*kept));
    return {};
  }
  QSF_LET(model, open_files(true));
  if (!model.recipe) return {};
  QSF_LET(file, convert::MadeFile::plan(std::move(model), how));
  file_ = std::move(file);
  Front front = made_front();
  // A cache that cannot be written costs time only.
  kept = cache_.keep(key_, front) ? cache_.find(key_) : std::nullopt;
  take(kept && kept->bytes == front.bytes ? std::move(*kept) : std::move(front));
  return {};
}

/// Opens the model's files anew. Returns a model without a recipe for a URL that needs no conversion.
Result<convert::LoadedModel> MadeModel::open_files(bool with_tokenizer) {
  const auto wrap = [this](convert::Input input) { return with_staged(std::move(input), staged_); };
  if (!is_url(where_)) {
    local_ = std::make_shared<convert::LocalFiles>(wrap);
    QSF_LET(model, convert::open_model(where_, with_tokenizer, {}, convert::TernaryLayout::automatic, local_));
    model.files = nullptr;
    return std::move(model);
  }
  remote_ = std::make_unique<RemoteFiles>(reading_, wrap);
  QSF_LET(place, place_at(where_, names_, *remote_));
  if (place.file && !is_made(place, reading_)) return convert::LoadedModel();
  return convert::open_place(place, with_tokenizer);
}

/// Returns whether an earlier front is that of the model's files.
bool MadeModel::restore(const convert::Options& options, const Front& front) {
  Result<convert::LoadedModel> model = open_files(false);
  if (!model || !model->recipe || !same_addresses(front)) return false;
  Result<std::unique_ptr<convert::MadeFile>> file =
      convert::MadeFile::restore(std::move(*model), options, {front.bytes, front.checked, front.size});
  if (!file) return false;
  file_ = std::move(*file);
  return true;
}

/// Returns whether servers have the files that a front was made from.
bool MadeModel::same_addresses(const Front& front) {
  if (!remote_) return front.addresses.empty();
  return std::ranges::all_of(front.addresses, [&](const FrontAddress& address) {
    std::uint32_t i = 0;
    while (i < remote_->count() && without_secrets(remote_->url(i)) != address.url) ++i;
    if (i == remote_->count()) {
      const std::string query = where_.substr(std::min(where_.find_first_of("?#"), where_.size()));
      const std::string url = folder_of_url(where_) + name_of_url(address.url) + query;
      if (without_secrets(url) != address.url || !remote_->open(url)) return false;
    }
    return remote_->identity(i) == address.identity;
  });
}

/// Returns the front of a file that was made now.
Front MadeModel::made_front() {
  Front front;
  sys::FileInfo info;
  // A new file in a folder may belong to the model.
  const bool folder = local_ && sys::look(where_, info) && info.kind == sys::FileKind::folder;
  if (folder) front.inputs.push_back(FrontInput::of(where_, info));
  for (std::uint32_t i = 0; local_ && i < local_->count(); ++i) {
    front.inputs.push_back(FrontInput::of(local_->path(i), local_->info(i)));
  }
  for (std::uint32_t i = 0; remote_ && i < remote_->count(); ++i) {
    front.addresses.push_back({without_secrets(remote_->url(i)), remote_->identity(i)});
  }
  front.warnings = file_->warnings();
  front.size = file_->plan().size();
  front.bytes = file_->take_front();
  front.checked.assign(file_->plan().segments().size(), 0);
  return front;
}

/// Takes the front. Bytes that the cache's file has are read from there.
void MadeModel::take(Front front) {
  front_ = std::move(front);
  if (front_.file.fd() >= 0) {
    front_.bytes.resize(file_->plan().tables_size());
    front_.bytes.shrink_to_fit();
  }
  unchecked_ = file_->n_unchecked();
  place_files();
  if (remote_) remote_->rest();
  give_back_heap();
}

MadeModel::~MadeModel() {
  (void)with_memory([this] { keep_checksums(); });  // a checksum that is not kept costs time only
}

void MadeModel::keep_checksums() {
  if (!file_ || cache_.empty() || file_->n_unchecked() == unchecked_ || !unchanged() || !refresh()) return;
  const std::size_t rest = file_->plan().front_size() - front_.bytes.size(), had = front_.bytes.size();
  front_.bytes.resize(had + rest);
  if (rest != 0 && !read_all(front_.file.fd(), front_.at + had, std::span(front_.bytes).subspan(had))) return;
  front_.file = OpenFile();  // Windows replaces no open file
  (void)cache_.keep(key_, front_);
}

/// Places files one after the other in one source, and those on servers each in a source of its own.
void MadeModel::place_files() {
  inputs_ = file_->inputs();
  places_.assign(local_ ? local_->count() : remote_->count(), {});
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    places_[inputs_[i]] = local_ ? Place{0, end} : Place{i, 0};
    if (local_) end = align_up(end + local_->info(inputs_[i]).size, kBlock);
  }
}

Result<std::vector<Source>> MadeModel::open_sources(const SourceOptions& options) const {
  std::vector<Source> out;
  const auto add = [&](Result<Source> source) -> Status {
    if (!source) return source.error();
    out.push_back(std::move(*source));
    return {};
  };
  if (!local_) {
    for (const std::uint32_t input : inputs_) {
      QSF_TRY(add(Source::open(remote_->url(input), options)));
      if (out.back().identity() == remote_->identity(input)) continue;
      return make_error(ErrorCode::file_changed, "{:.200} was changed while it was opened",
                        without_secrets(remote_->url(input)));
    }
  } else if (inputs_.size() == 1) {
    QSF_TRY(add(Source::open(local_->path(inputs_[0]), options)));
  } else {  // several files are read through the page cache
    std::vector<FilePart> parts;
    for (const std::uint32_t input : inputs_) parts.push_back({local_->path(input), places_[input].begin});
    QSF_TRY(add(qsf::open_files(parts, options)));
  }
  QSF_TRY(same_files());
  return out;
}

/// Returns file_changed if a path leads to another file than the one that was opened.
Status MadeModel::same_files() const {
  if (!local_) return {};
  for (const std::uint32_t input : inputs_) {
    if (local_->contain(local_->path(input))) continue;
    return make_error(ErrorCode::file_changed, "{:.200} was replaced while it was opened", local_->path(input));
  }
  return unchanged();
}

Status MadeModel::read_front(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t had = front_.bytes.size();
  if (offset < had) {
    const std::size_t n = std::min<std::uint64_t>(had - offset, out.size());
    std::ranges::copy(std::span(front_.bytes).subspan(offset, n), out.begin());
    offset += n;
    out = out.subspan(n);
  }
  return out.empty() ? Status() : read_all(front_.file.fd(), front_.at + offset, out);
}

Status MadeModel::refresh() {
  QSF_LET(tables, file_->tables(front_.checked));
  std::ranges::copy(tables, front_.bytes.begin());
  return {};
}

Status MadeModel::make_whole(std::uint32_t segment, std::span<std::byte> raw, FilePlan::Room& room) {
  const std::lock_guard lock(whole_);
  return file_->make_whole(segment, raw, room);
}

Result<std::string> MadeModel::hash(const std::atomic<bool>& cancel) {
  const FilePlan& plan = file_->plan();
  FilePlan::Room room;
  std::vector<std::byte> raw;
  for (std::uint32_t i = 0; i < plan.segments().size(); ++i) {
    if (file_->is_checked(i)) continue;
    if (cancel) return make_error(ErrorCode::cancelled, "stopped while the model's hash was computed");
    raw.resize(plan.segments()[i].raw_size);
    QSF_TRY(make_whole(i, raw, room));
    QSF_TRY(file_->seal(i, raw));
  }
  QSF_TRY(unchanged());
  QSF_TRY(refresh());
  Sha256 sum;
  sum.update(std::span(front_.bytes).first(plan.tables_size()));
  return std::string(hex(sum.digest()).data());
}

std::vector<std::string> MadeModel::paths() const {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; local_ && i < local_->count(); ++i) out.push_back(local_->path(i));
  return out;
}

std::uint64_t MadeModel::memory() const { return file_->memory() + front_.bytes.size() + sizeof(MadeModel); }

}  // namespace qsf
