// Models in repositories of the Hugging Face Hub, or of a server that speaks its protocol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// A model of a repository. One of `path` and `url` is empty.
struct HubModel {
  std::string path;                // in the user's cache of the Hub
  std::string url;                 // of the file, or of the folder, which ends with a slash
  std::vector<std::string> names;  // of the folder's files
  std::string token;               // for the URL
  std::string note;                // the choice, for people; empty if the address names a file
};

/// The use of a model. One that is converted is no .qsf file, and needs to fit nowhere.
enum class ModelUse : std::uint8_t { run, convert };

/// Finds a model by an address such as "hf:owner/name", "hf:owner/name/model.gguf" or "hf:owner/name@revision". An
/// address without a file means the largest GGUF or .qsf file that fits in SourceOptions::budget, else the smallest
/// one, or the folder itself if it has none; to convert, the largest GGUF file, or the folder. The server is
/// HF_ENDPOINT or https://huggingface.co; the token HF_TOKEN, or that of the file HF_TOKEN_PATH or HF_HOME/token; the
/// cache HF_HUB_CACHE or HF_HOME/hub. Files of the cache are taken first. Errors: bad_argument (no such form of
/// address), http_status with advice for 401, 403, 404 and 429, and those of http_text.
Result<HubModel> find_in_hub(const std::string& where, const SourceOptions& options, ModelUse use = ModelUse::run);

/// Returns an error of reading a file of the Hub, with advice for the server's status.
Error hub_error(const Error& error, std::uint32_t status, std::string_view where);

}  // namespace qsf
