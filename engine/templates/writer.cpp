#include "templates/writer.h"

#include <algorithm>
#include <cstring>

namespace qsf::templates {

void Writer::put(std::string_view bytes, Origin origin, const Origin* origins) {
  size_ += bytes.size();
  if (size_ > work_.limits.output_bytes) {
    work_.fail("its output has more than {} bytes", work_.limits.output_bytes);
    return;
  }
  while (!bytes.empty()) {
    std::size_t run = bytes.size();
    if (origin == Origin::mixed) {
      run = static_cast<std::size_t>(std::find_if(origins, origins + run, [&](Origin o) { return o != *origins; }) -
                                     origins);
    }
    const bool own = (origin == Origin::mixed ? *origins : origin) == Origin::own;
    sink_->put(sink_->context, bytes.substr(0, run), own);
    bytes.remove_prefix(run);
    origins += origin == Origin::mixed ? run : 0;
  }
}

bool Writer::reserve(std::size_t bytes) {
  if (bytes <= room_ - size_) return true;
  const std::size_t more = std::max(bytes - (room_ - size_), std::max<std::size_t>(room_, 32));
  if (origins_ == nullptr && bytes_ != nullptr && work_.pool.extend(bytes_ + room_, more)) {
    room_ += more;
    return true;
  }
  auto* const grown = static_cast<char*>(work_.pool.take(room_ + more));
  auto* const origins = origins_ == nullptr ? nullptr : static_cast<Origin*>(work_.pool.take(room_ + more));
  if (grown == nullptr || (origins_ != nullptr && origins == nullptr)) {
    work_.out_of_memory();
    return false;
  }
  if (size_ > 0) std::memcpy(grown, bytes_, size_);
  if (origins != nullptr) std::memcpy(origins, origins_, size_);
  bytes_ = grown;
  origins_ = origins;
  room_ += more;
  return true;
}

bool Writer::mix() {
  origins_ = static_cast<Origin*>(work_.pool.take(room_));
  if (origins_ == nullptr) {
    work_.out_of_memory();
    return false;
  }
  std::fill_n(origins_, size_, origin_);
  return true;
}

void Writer::add(std::string_view bytes, Origin origin, const Origin* origins) {
  if (bytes.empty() || !work_.spend(bytes.size() / 32)) return;
  if (sink_ != nullptr) return put(bytes, origin, origins);
  if (!reserve(bytes.size())) return;
  if (size_ == 0 && origin != Origin::mixed) origin_ = origin;
  if (origin != origin_ && origins_ == nullptr && !mix()) return;
  std::memcpy(bytes_ + size_, bytes.data(), bytes.size());
  if (origins_ != nullptr && origin == Origin::mixed) std::memcpy(origins_ + size_, origins, bytes.size());
  if (origins_ != nullptr && origin != Origin::mixed) std::fill_n(origins_ + size_, bytes.size(), origin);
  size_ += bytes.size();
}

Value Writer::finish() {
  if (work_.failed()) return {};
  if (origins_ == nullptr && room_ > size_) work_.pool.shorten(bytes_ + room_, room_ - size_);
  const Origin origin = origins_ == nullptr ? origin_ : Origin::mixed;
  return Value(work_.text({bytes_, size_}, origin, origins_));
}

}  // namespace qsf::templates
