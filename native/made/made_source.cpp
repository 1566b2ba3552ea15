#include "native/made/made_source.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "native/made/made.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

using std::chrono::milliseconds;

Made& made_of(void* state) { return *static_cast<Made*>(state); }

/// Returns the kind over an inner kind, with its name and properties.
const SourceKind& kind_over(const SourceKind& inner) {
  static std::deque<SourceKind> kinds;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto known = std::ranges::find_if(kinds, [&](const SourceKind& kind) {
    return kind.name == inner.name && kind.past_cache == inner.past_cache && kind.url == inner.url;
  });
  if (known != kinds.end()) return *known;
  SourceKind kind{
      .name = inner.name,
      .url = inner.url,
      .open = nullptr,
      .submit = [](void* state, std::span<const ReadRequest> requests) { made_of(state).submit(requests); },
      .reap = [](void* state, std::span<Completion> out,
                 milliseconds timeout) { return made_of(state).reap(out, timeout); },
      .cancel = [](void* state) { made_of(state).cancel(); },
      .close = [](void* state) { delete static_cast<Made*>(state); },
      .read_cached = [](void* state, Completion& out) { return made_of(state).read_cached(out); },
      .at_hand = [](void* state) { return made_of(state).at_hand(); },
      .past_cache = inner.past_cache,
      .intact = [](void* state) { return made_of(state).intact(); },
      .finish = [](void* state, Completion& done) { return made_of(state).finish(done); },
      .memory = [](void* state) { return made_of(state).memory(); },
      .makes = true,
  };
  return kinds.emplace_back(kind);
}

}  // namespace

Result<Source> open_made(std::shared_ptr<MadeModel> model, const SourceOptions& options) {
  QSF_TRY(model->refresh());
  QSF_LET(inners, model->open_sources(options));
  const SourceKind& kind = kind_over(inners[0].kind());
  const std::uint64_t size = model->file().plan().size();
  return Source::of(kind, new Made(std::move(model), std::move(inners), options.helped), size, options);
}

}  // namespace qsf
