#include "system/unfinished.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "system/file.h"

namespace qsf::sys {
namespace {

constexpr std::size_t kNoSlot = ~std::size_t{0};
constexpr std::size_t kLongestPath = 4096;  // with the zero at the end

/// Static memory, because a handler may read a path while another thread forgets it.
struct Slot {
  std::atomic<bool> taken{false}, written{false};
  std::array<char, kLongestPath> path{};
};
std::array<Slot, kMostUnfinished> slots;

}  // namespace

Unfinished::Unfinished(std::string path) : path_(std::move(path)) {
  for (std::size_t i = 0; i < slots.size() && path_.size() < kLongestPath; ++i) {
    if (slots[i].taken.exchange(true)) continue;
    *std::ranges::copy(path_, slots[i].path.begin()).out = '\0';
    slots[i].written = true;
    slot_ = i;
    break;
  }
}

Unfinished::Unfinished(Unfinished&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(std::exchange(other.slot_, kNoSlot)) {}

Unfinished& Unfinished::operator=(Unfinished&& other) noexcept {
  path_.swap(other.path_);
  std::swap(slot_, other.slot_);
  return *this;
}

Unfinished::~Unfinished() {
  if (!path_.empty()) remove_file(path_);
  forget();
}

void Unfinished::keep() {
  path_.clear();
  forget();
}

void Unfinished::forget() {
  if (slot_ == kNoSlot) return;
  slots[slot_].written = false;
  slots[slot_].taken = false;
  slot_ = kNoSlot;
}

void each_unfinished(void (*remove)(const char* path)) {
  for (const Slot& slot : slots) {
    if (slot.written) remove(slot.path.data());
  }
}

}  // namespace qsf::sys
