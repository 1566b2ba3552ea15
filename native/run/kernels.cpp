#include "native/run/kernels.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "native/run/json.h"
#include "native/run/output.h"
#include "native/sources/regular_file.h"
#include "qsf/base/try.h"
#include "system/cores.h"
#include "system/file.h"

namespace qsf::run {
namespace {

constexpr int kVersion = 2;
constexpr std::uint64_t kMostBytes = 64 << 10;  // that are read; a longer file counts as damaged
constexpr std::uint32_t kMostThreads = 1024;

Result<std::string> read_file(const std::string& path) {
  std::uint64_t size = 0;
  QSF_LET(file, open_regular(path, size));
  std::string text(static_cast<std::size_t>(std::min(size, kMostBytes)), '\0');
  QSF_TRY(read_all(file.fd(), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

std::string kernel_file_of(const std::string& given) {
  if (!given.empty()) return given == kNoKernelFile ? "" : given;
  const std::string folder = sys::cache_folder();
  return folder.empty() ? "" : folder + "/qsf/kernels.json";
}

KernelSpeeds read_kernel_speeds(const std::string& path) {
  KernelSpeeds speeds;
  const Result<std::string> text = read_file(path);
  if (!text) return speeds;
  const Json file = Json::parse(*text, nullptr, false);
  if (!file.is_object() || file.value("version", Json()) != kVersion) return speeds;
  if (file.value("processor", Json()) != processor_name()) return speeds;
  const std::vector<std::string_view> isas = instruction_sets();
  for (const Json& row : file.value("speeds", Json::array())) {
    if (!row.is_object()) continue;
    const Json format = row.value("format", Json()), batch = row.value("batch", Json());
    const Json threads = row.value("threads", Json());
    const Json isa = row.value("isa", Json()), rate = row.value("rate", Json()), settled = row.value("settled", Json());
    if (!format.is_string() || !batch.is_string() || !threads.is_number_unsigned() || !isa.is_string() ||
        !rate.is_number() || !settled.is_boolean()) {
      continue;
    }
    const Format* const f = find_format(format.get_ref<const std::string&>());
    const auto of = std::ranges::find(kBatchNames, batch.get_ref<const std::string&>());
    const auto known = std::ranges::find(isas, isa.get_ref<const std::string&>());
    // Other rows are of another build.
    if (f == nullptr || of == kBatchNames.end() || known == isas.end() || threads > kMostThreads || rate <= 0) continue;
    speeds.add({f->id, static_cast<Batch>(of - kBatchNames.begin()), threads.get<std::uint32_t>(), *known,
                rate.get<double>(), settled.get<bool>()});
  }
  return speeds;
}

Status write_kernel_speeds(const std::string& path, const KernelSpeeds& speeds) {
  Json rows = Json::array();
  for (const KernelSpeed& speed : speeds.all()) {
    rows.push_back({{"format", find_format(speed.format)->name},
                    {"batch", kBatchNames[static_cast<std::size_t>(speed.batch)]},
                    {"threads", speed.threads},
                    {"isa", speed.isa},
                    {"rate", std::round(speed.rate)},
                    {"settled", speed.settled}});
  }
  const Json file = {{"version", kVersion}, {"processor", processor_name()}, {"speeds", rows}};
  std::error_code ignored;  // a failure is reported when the file is opened
  std::filesystem::create_directories(sys::path_of(path).parent_path(), ignored);
  QSF_LET(out, OutputFile::create(path, {}));
  const std::string text = file.dump(1) + "\n";
  QSF_TRY(out.write(std::as_bytes(std::span(text))));
  return out.commit();
}

}  // namespace qsf::run
