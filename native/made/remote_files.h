// A model's files on servers, as inputs of the converter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/files/input.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

class RemoteFile;

/// The files that one model is read from, numbered from 0 in the order of opening. Reads wait for the server, and each
/// file is read by one thread at a time.
class RemoteFiles {
 public:
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;
  /// Passes every input through `wrap`.
  RemoteFiles(SourceOptions options, std::function<convert::Input(convert::Input)> wrap);
  ~RemoteFiles();

  /// Opens the file at a URL. Errors are those of Source::open.
  Result<convert::Input> open(const std::string& url);
  /// Empty if the server says that there is no such file (404), or has a web page in its place.
  Result<std::optional<convert::Input>> find(const std::string& url);

  std::uint32_t count() const { return static_cast<std::uint32_t>(files_.size()); }
  const std::string& url(std::uint32_t number) const;
  std::uint64_t size(std::uint32_t number) const;
  /// Returns Source::identity().
  const std::string& identity(std::uint32_t number) const;
  /// Returns the status of the last server that refused; 0 if none did.
  std::uint32_t status() const { return status_; }
  /// Ends the connections. A later read opens its file again, and fails with file_changed if it is another one.
  void rest();

 private:
  SourceOptions options_;
  std::uint32_t status_ = 0;  // of the last server that refused
  std::function<convert::Input(convert::Input)> wrap_;
  std::vector<std::shared_ptr<RemoteFile>> files_;
};

/// Returns the file or folder at a URL, to be read through `files`. `names` are the files of the folder; empty: not
/// known, so that the server is asked. Errors are those of RemoteFiles::open.
Result<convert::ModelLocation> place_at(const std::string& url, const std::vector<std::string>& names,
                                        RemoteFiles& files);

/// Returns the folder of an address, up to the last slash of its path, and the name of a file after it. Query and
/// fragment belong to neither.
std::string folder_of_url(const std::string& url);
std::string name_of_url(const std::string& url);
/// Returns a name as a part of an address: bytes that have a meaning there are written as %XX. Slashes stay.
std::string encoded_for_url(std::string_view name);

}  // namespace qsf
