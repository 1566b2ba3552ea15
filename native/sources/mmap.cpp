// The file as memory. Matrices that are stored in the form in which they are used are used where they are mapped.
// Everything else is copied, and its pages count towards the process only for a short time.
#include <sys/stat.h>

#include "native/sources/file.h"
#include "native/sources/mapped_file.h"

namespace qsf {
namespace {

MappedFile& mapping_of(void* state) { return *static_cast<FileSource*>(state)->mapped; }

Status read_mmap(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const FileSource& file = *static_cast<FileSource*>(state);
  const std::span<const std::byte> mapped = mapping_of(state).bytes();
  return file.read_steps(
      request, cancelled, 512u << 10, [&](std::uint64_t at, std::span<std::byte> into) -> Result<std::size_t> {
        // The rest of the last page of a file that became shorter is readable and zero.
        struct stat status{};
        if (::fstat(file.file.fd(), &status) != 0) return system_error("cannot read", "the model file");
        if (static_cast<std::uint64_t>(status.st_size) < at + into.size()) return ended(at + into.size());
        const std::span<const std::byte> from = mapped.subspan(static_cast<std::size_t>(at), into.size());
        populate(from);
        if (from.data() == into.data()) return into.size();
        const ssize_t n = copy_mapped(from.data(), into);
        forget(from);
        if (n < 0) return read_some(file.file.fd(), at, into);
        if (n == 0) return ended(at + into.size());
        return static_cast<std::size_t>(n);
      });
}

Result<void*> open_mmap(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  QSF_LET(source, FileSource::open(where, options, size, read_mmap));
  QSF_LET(mapped, MappedFile::map(source->file.fd(), size));
  source->mapped = std::make_shared<MappedFile>(std::move(mapped));
  return static_cast<void*>(source.release());
}

Status intact(void* state) {
  MappedFile& mapped = mapping_of(state);
  if (!mapped.lost()) return {};
  QSF_TRY(mapped.renew(static_cast<FileSource*>(state)->file.fd()));
  return make_error(ErrorCode::truncated, "the model file became shorter, or its storage failed, while it was used");
}

}  // namespace

extern const SourceKind kMmapSource;
const SourceKind kMmapSource = [] {
  SourceKind kind = FileSource::kind<read_mmap>("mmap");
  kind.open = open_mmap;
  kind.mapped = [](void* state) { return mapping_of(state).bytes(); };
  kind.intact = intact;
  return kind;
}();

}  // namespace qsf
