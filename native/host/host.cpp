#include "native/host/host.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "native/host/draft.h"
#include "native/host/speed.h"
#include "native/sources/address.h"
#include "native/sources/clock.h"
#include "qsf/base/budget.h"
#include "qsf/base/try.h"
#include "system/memory.h"

namespace qsf {
namespace {

constexpr std::uint32_t kUsualSlots = 3;  // the plan's choice
constexpr std::uint32_t kDeepest = 9;

/// Returns the error of a model. One of a file's contents names the address, if that is where the file is.
Error with_address(const Error& error, const std::string& where) {
  const bool of_contents = error.code >= ErrorCode::bad_magic && error.code <= ErrorCode::truncated;
  if (!of_contents || !is_url(where)) return error;
  const std::string address = without_secrets(where);
  if (std::string_view(error.sentence).find(address) != std::string_view::npos) return error;
  return make_error(error.code, "{} ({:.200})", error.sentence, address);
}

/// Returns the error with the file of a repository that was chosen, which no note reports then.
Error with_choice(const Error& error, const FoundModel& found) {
  return found.choice.empty() ? error : make_error(error.code, "{} ({})", error.sentence, found.choice);
}

}  // namespace

std::string_view isa_from_environment() {
  const char* name = std::getenv("QSF_ISA");
  return name == nullptr ? "" : name;
}

Result<Pages> Pages::take(std::uint64_t size) {
  if (size == 0 || size > SIZE_MAX / 2) {
    return make_error(ErrorCode::out_of_memory, "{} bytes cannot be had in one piece", size);
  }
  const std::span<std::byte> pages = take_pages(static_cast<std::size_t>(size));
  if (pages.empty()) return make_error(ErrorCode::out_of_memory, "the system refused {} bytes for the arena", size);
  prefer_huge_pages(pages);
  return Pages(pages);
}

Pages::~Pages() {
  if (!bytes_.empty()) give_pages(bytes_);
}

Host::Host(Pages pages, Source source, const HostOptions& options, const std::atomic<bool>& cancel)
    : pages_(std::move(pages)),
      source_(std::move(source)),
      pool_(options.threads != 0 ? options.threads : usable_cores()),
      cancel_(cancel),
      profiling_(options.profile) {
  if (options.threads == 0) tuner_.emplace(pool_);
  if (options.pin) pin_to_cores(pool_.handles());
}

Host::~Host() { pool_.end(); }

Result<std::unique_ptr<Host>> Host::open(const std::string& model, const HostOptions& options,
                                         const std::atomic<bool>& cancel) {
  if (options.monitor.least != 0 && options.open.kv_window == 0) {
    return make_error(ErrorCode::bad_argument, "memory is watched for a policy of positions, and there is none");
  }
  HostOptions rest = options;
  std::unique_ptr<Draft> draft;
  if (!options.draft.empty() || !options.draft_type.empty()) {
    QSF_LET(opened, Draft::open(model, options, cancel));
    draft = std::move(opened);
    rest.open.guess_source = GuessSource::host;
    rest.open.draft_bytes = draft->bytes();
  }
  SourceOptions finding = options.source;
  finding.budget = options.budget;
  QSF_LET(found, find_model(model, finding));
  Result<std::unique_ptr<Host>> opened = open(found, rest, cancel);
  if (!opened && opened.error().code == ErrorCode::bad_magic && !found.made && is_url(found.where)) {
    QSF_LET(other, find_model(model, finding, NamesOfUrls::checked));
    if (other.made) opened = open(other, rest, cancel);
  }
  if (!opened) return with_choice(opened.error(), found);
  std::unique_ptr<Host> host = std::move(*opened);
  if (draft) QSF_TRY(draft->follow(*host->session_, host->found_.notes));
  host->draft_ = std::move(draft);
  return host;
}

Result<std::unique_ptr<Host>> Host::open(const FoundModel& found, const HostOptions& options,
                                         const std::atomic<bool>& cancel) {
  bool planned = false;
  Result<std::unique_ptr<Host>> host = try_open(found, options, cancel, planned);
  if (host) return host;
  if (!planned && host.error().code == ErrorCode::budget_too_small) return find_budget(found, options, cancel);
  return with_address(host.error(), found.where);
}

/// Returns the refusal of a budget without room for the tables that a plan needs. It names a budget that would do,
/// found by trying.
Error Host::find_budget(const FoundModel& found, const HostOptions& options, const std::atomic<bool>& cancel) {
  HostOptions trial = options;
  trial.threads = 1;
  trial.deepen = trial.expect = false;
  trial.kernels = nullptr;
  const auto refusal = [&](std::uint64_t budget) {
    bool planned = false;
    trial.budget = budget;
    const Result<std::unique_ptr<Host>> host = try_open(found, trial, cancel, planned);
    return host ? Error() : host.error();
  };
  std::uint64_t refused = options.budget, enough = std::max(options.budget, kHostReserve);
  for (Error error = make_error(ErrorCode::budget_too_small, ""); error.code != ErrorCode::none;) {
    if (error.code != ErrorCode::budget_too_small) return error;
    refused = std::exchange(enough, 2 * enough);
    error = refusal(enough);
  }
  while (enough - refused > enough / 128) {
    const std::uint64_t between = refused + (enough - refused) / 2;
    (refusal(between).code == ErrorCode::none ? enough : refused) = between;
  }
  return make_error(ErrorCode::budget_too_small,
                    "the budget of {:.2f} MiB is too small for this model: {:.2f} MiB would do",
                    Budget::mib(options.budget), Budget::enough_mib(enough));
}

/// Sets `planned` if a refusal of the budget is the plan's, which names a budget that would do.
Result<std::unique_ptr<Host>> Host::try_open(const FoundModel& found, const HostOptions& options,
                                             const std::atomic<bool>& cancel, bool& planned) {
  const Clock::time_point begin = Clock::now();
  SourceOptions reading = options.source;
  reading.budget = options.budget;
  // If a core is to spare, a thread of the source copies ahead. Otherwise it would only take time from the computing
  // threads.
  reading.helped = (options.threads != 0 ? options.threads : usable_cores()) >= usable_cores();
  Result<Source> source = open_source(found, reading);
  if (!source) return source.error();
  const std::uint64_t host_bytes = options.open.host_bytes + source->memory();
  const Budget budget = Budget::within(options.budget, kHostReserve + host_bytes + options.open.draft_bytes);
  if (budget.arena() == 0) return make_error(ErrorCode::budget_too_small, "no room for an arena");
  Result<Pages> pages = Pages::take(budget.arena());
  if (!pages) return pages.error();
  std::unique_ptr<Host> host(new Host(std::move(*pages), std::move(*source), options, cancel));
  OpenOptions open = options.open;
  open.workers = host->pool_.workers();
  open.cancel = &cancel;
  if (!open.stream_all) open.mapped = host->source_.mapped();
  open.watched = host->source_.kind().url;
  open.vouched = host->source_.kind().makes;
  open.host_bytes = host_bytes;
  host->found_ = found;
  QSF_TRY(host->measure(options, open));
  const Result<Session*> session = open_session(host->pages_.bytes(), host->source_.size(), open);
  if (!session) return session.error();
  host->session_ = *session;
  host->io_.emplace(*host->session_, host->source_, host->pool_, reading.helped);
  const Result<Step> step = host->next();
  if (!step && step.error().code == ErrorCode::budget_too_small && options.deepen && !host->source_.kind().url) {
    // The usual ring may fit. If it does not, the refusal states the speed with more memory.
    HostOptions again = options;
    again.deepen = false;
    again.expect = true;
    host.reset();
    return try_open(found, again, cancel, planned);
  }
  planned = host->session_->stats().weight_bytes != 0;  // counted right before the plan is made
  if (!step) return step.error();
  if (*step != Step::ready) return make_error(ErrorCode::internal, "opening ended in another state than ready");
  for (const KernelSpeed& kernel : host->kernels_) {
    QSF_TRY(host->session_->use_kernel(kernel.format, kernel.batch, kernel.isa));
  }
  if (options.monitor.least != 0) {
    host->monitor_.emplace(options.monitor);
    if (!host->monitor_->is_possible()) {
      host->monitor_.reset();
      host->found_.notes.emplace_back("this system does not state how much memory is available: it is not watched");
    }
  }
  host->open_seconds_ = seconds_since(begin);
  return host;
}

Status Host::know_hash() {
  if (made() == nullptr) return {};
  QSF_LET(hash, made()->hash(cancel_));
  return session_->know_hash(hash);
}

Result<Step> Host::next() {
  if (draft_) QSF_TRY(draft_->guess());
  if (!tuner_) return step();
  const auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  const double begin = now();
  const Result<Step> next = step();
  tuner_->stepped(next ? *next : Step::error, begin, now());
  return next;
}

Result<Step> Host::step() {
  // Pages lost between steps affected only checks of bytes that were read. These have failed, and are made again.
  (void)source_.intact();
  while (!cancel_.load(std::memory_order_relaxed)) {
    if (monitor_) monitor_->look(*session_);
    const std::uint64_t seen = io_->news();
    const Clock::time_point begin = profiling_ ? Clock::now() : Clock::time_point();
    const Step step = session_->step();
    if (profiling_ && step != Step::need_bytes) {
      profile_.work[static_cast<std::size_t>(session_->work())] += seconds_since(begin);
    }
    switch (step) {
      case Step::working:
        io_->pump();
        break;
      case Step::need_bytes:
        io_->pump();
        // A signal handler can set the flag but cannot wake this thread, hence the limit.
        if (!io_->help()) io_->wait(seen, std::chrono::milliseconds(20));
        if (profiling_) profile_.waiting += seconds_since(begin);
        break;
      default:
        QSF_TRY(source_.intact());
        if (step == Step::error) return session_->error();
        return step;
    }
  }
  return make_error(ErrorCode::cancelled, "stopped by the caller");
}

/// Makes the requested measurements: the fastest kernels, the depth of the ring if reads take long, the expected speed.
Status Host::measure(const HostOptions& options, OpenOptions& open) {
  const bool chooses =
      options.kernels != nullptr && options.open.isa.empty() && source_.size() >= KernelSpeeds::kWeights;
  const bool deepens = options.deepen && source_.kind().past_cache && options.open.ring_slots == 0;
  if (source_.kind().url || !(chooses || deepens || options.expect)) return {};  // a network's speed now says little
  const std::span<std::byte> memory = pages_.bytes();
  std::vector<FormatShare> formats;
  if (chooses || options.expect) {
    QSF_LET(found, formats_of(source_, memory, pool_));
    formats = std::move(found);
  }
  if (chooses) {
    for (const FormatShare& format : formats) {
      for (const Batch batch : {Batch::one, Batch::many}) {
        QSF_LET(measured, options.kernels->measure(format.format, batch, memory, pool_));
        measured_kernels_ |= measured;
        const KernelSpeed* const best = options.kernels->best(format.format, batch, pool_.count());
        if (best != nullptr) kernels_.push_back(*best);
      }
    }
  }
  // The written pages are kept, because a source may have registered them.
  return deepens || options.expect ? measure_rates(options, formats, open) : Status();
}

/// Measures reading and computing. Limits the ring to an eighth of the memory.
Status Host::measure_rates(const HostOptions& options, std::span<const FormatShare> formats, OpenOptions& open) {
  const std::span<std::byte> memory = pages_.bytes();
  QSF_LET(reading, measure_reading(source_, memory, pool_));
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(memory.size() / 8 / (1u << 20), kDeepest));
  const std::uint32_t slots = reading.slots(most);
  if (options.deepen && open.ring_slots == 0 && slots > kUsualSlots) open.ring_slots = slots;
  if (options.expect) {
    constexpr double kMost = 4e9;  // MB/s
    const auto isa_of = [&](FormatId format) {
      const auto chosen = std::ranges::find_if(
          kernels_, [&](const KernelSpeed& kernel) { return kernel.format == format && kernel.batch == Batch::one; });
      return chosen != kernels_.end() ? chosen->isa : options.open.isa;
    };
    QSF_LET(computing, measure_computing(formats, memory, isa_of, pool_));
    open.read_rate = static_cast<std::uint32_t>(std::min(reading.rate / 1e6, kMost));
    open.compute_rate = static_cast<std::uint32_t>(std::min(computing / 1e6, kMost));
  }
  return {};
}

Profile Host::take_profile() {
  if (profiling_) std::tie(profile_.reading, profile_.unpacking) = io_->take_seconds();
  return std::exchange(profile_, {});
}

}  // namespace qsf
