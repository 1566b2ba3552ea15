// A model of another kind than .qsf, opened as a made file, with the front of that file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converter/files/local_files.h"
#include "converter/made/made_file.h"
#include "native/made/front_cache.h"
#include "native/made/remote_files.h"
#include "native/made/staged.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// Sources use an opened model, one at a time. All functions except open(), open_at() and refresh() may be called by
/// any thread.
class MadeModel {
 public:
  /// Opens the model at a path. Returns null if it is a .qsf file, or nothing that the converter recognizes. Errors are
  /// those of qsf-convert.
  static Result<std::shared_ptr<MadeModel>> open(const std::string& path, const SourceOptions& options);
  /// Opens the model at a URL, which is a folder's if it ends with a slash. `names` are the files of the folder; empty:
  /// not known, so that the server is asked. Returns null as open() does. Errors are also those of Source::open. Sets
  /// `status` to that of a server that refused.
  static Result<std::shared_ptr<MadeModel>> open_at(const std::string& url, const std::vector<std::string>& names,
                                                    const SourceOptions& options, std::uint32_t& status);
  /// Keeps the checksums that were learned, if there is a cache.
  ~MadeModel();
  MadeModel(const MadeModel&) = delete;
  MadeModel& operator=(const MadeModel&) = delete;

  convert::MadeFile& file() { return *file_; }
  const convert::MadeFile& file() const { return *file_; }
  /// Returns sentences on the model, and on types that change.
  const std::vector<std::string>& warnings() const { return front_.warnings; }
  Staged& staged() { return staged_; }
  /// Opens sources of the files with weights, at least one. Errors are those of Source::open, or file_changed.
  Result<std::vector<Source>> open_sources(const SourceOptions& options) const;
  /// The place of an input's first byte: a source of open_sources(), and an offset in it.
  struct Place {
    std::uint32_t source = 0;
    std::uint64_t begin = 0;
  };
  Place place_of(std::uint32_t input) const { return places_[input]; }

  /// Reads a part of the front. Checksums are those that were known at the last refresh(). Returns io_error if the
  /// cache cannot be read.
  Status read_front(std::uint64_t offset, std::span<std::byte> out) const;
  /// Writes the known checksums to the front. No other thread may be in a function.
  Status refresh();
  /// Returns file_changed if the model's file is not the one that was opened. Servers are compared when they answer.
  Status unchanged(std::uint32_t input) const { return local_ ? local_->unchanged(input) : Status(); }
  Status unchanged() const { return local_ ? local_->unchanged() : Status(); }
  /// Makes a segment whole. Any thread; one at a time makes one.
  Status make_whole(std::uint32_t segment, std::span<std::byte> raw, FilePlan::Room& room);
  /// Reads the segments whose checksums are not known, and returns the hash of the made file, as Session::model_hash()
  /// of the .qsf file is. No session may open.
  Result<std::string> hash(const std::atomic<bool>& cancel);
  /// Returns the paths of all files that were read; none if they are on servers.
  std::vector<std::string> paths() const;
  /// Returns the bytes that the model takes.
  std::uint64_t memory() const;

 private:
  MadeModel() = default;
  Status make(const std::string& where, const SourceOptions& options);
  Result<convert::LoadedModel> open_files(bool with_tokenizer);
  bool restore(const convert::Options& options, const Front& front);
  bool same_addresses(const Front& front);
  Front made_front();
  void take(Front front);
  void place_files();
  Status same_files() const;
  void keep_checksums();

  Staged staged_;  // before the files, whose inputs refer to it
  std::string where_;
  std::vector<std::string> names_;              // of the files in a folder on a server, if they are known
  std::shared_ptr<convert::LocalFiles> local_;  // one of both
  std::unique_ptr<RemoteFiles> remote_;
  SourceOptions reading_;  // of remote_
  std::unique_ptr<convert::MadeFile> file_;
  std::vector<std::uint32_t> inputs_;  // with weights
  std::vector<Place> places_;          // by input
  std::mutex whole_;                   // held while a segment is made whole
  FrontCache cache_{""};
  std::string key_;              // in the cache
  Front front_;                  // all of its bytes, or those that the cache's file does not have
  std::uint32_t unchecked_ = 0;  // segments without a checksum in the cache
};

}  // namespace qsf
