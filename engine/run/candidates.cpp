#include "run/candidates.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace qsf {

std::size_t Candidates::size() {
  if (listed_) return list_.size();
  return logits_.size() - static_cast<std::size_t>(std::ranges::count(logits_, kRemoved));
}

Candidate Candidates::best() {
  if (!best_ && listed_) best_ = sorted_ ? list_[0] : *std::ranges::min_element(list_, likelier);
  if (!best_) {
    const std::uint32_t id = kernels_->argmax(logits_.data(), static_cast<std::uint32_t>(logits_.size()));
    best_ = {logits_[id], id};
  }
  return *best_;
}

double Candidates::total() {
  const Odds odds = this->odds();
  double sum = 0;
  each([&](const Candidate& c) { sum += odds(c.logit); });
  return sum;
}

std::span<Candidate> Candidates::likeliest(std::size_t m) {
  if (!listed_) return qsf::likeliest(logits_, m, scratch_);
  if (!sorted_) sort_by_likelihood(list_);
  sorted_ = true;
  return list_.first(std::min(m, list_.size()));
}

std::span<Candidate> Candidates::list() {
  if (!listed_) keep_if([](const Candidate&) { return true; });
  return list_;
}

void Candidates::keep(std::span<Candidate> kept, bool sorted) {
  list_ = kept;
  listed_ = true;
  sorted_ = sorted;
  best_.reset();
}

void Candidates::keep_best() {
  scratch_[0] = best();
  keep(scratch_.first(1), true);
}

Candidate Candidates::draw(double uniform) {
  const Odds odds = this->odds();
  const double drawn = uniform * total();
  double reached = 0;
  Candidate found = best();  // stays only by rounding
  any([&](const Candidate& c) {
    reached += odds(c.logit);
    if (drawn < reached) found = c;
    return drawn < reached;
  });
  return found;
}

Candidates::Room Candidates::logits() {
  if (listed_) {
    std::ranges::fill(logits_, kRemoved);
    for (const Candidate& c : list_) logits_[c.id] = c.logit;
    listed_ = sorted_ = false;
    list_ = {};
  }
  best_.reset();
  return {logits_, scratch_};
}

}  // namespace qsf
