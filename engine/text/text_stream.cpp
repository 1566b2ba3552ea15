#include "text/text_stream.h"

#include <algorithm>

#include "qsf/base/utf8.h"
#include "text/tokn.h"

namespace qsf {

static_assert(TextStream::kMaxTokenBytes == tokn::kMaxTokenBytes);

Status TextStream::begin(std::span<const std::string_view> stops) {
  if (stops.size() > kMaxStops) {
    return make_error(ErrorCode::bad_argument, "stops: {} stop strings; {} are possible", stops.size(), kMaxStops);
  }
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty() || stops[i].size() > kMaxStopBytes) {
      return make_error(ErrorCode::bad_argument, "stops: stop string {} has {} bytes; 1 to {} are possible", i,
                        stops[i].size(), kMaxStopBytes);
    }
    if (!utf8::is_valid(stops[i])) {
      return make_error(ErrorCode::bad_text, "stops: stop string {} is not valid UTF-8", i);
    }
  }
  n_stops_ = stops.size();
  for (std::size_t i = 0; i < n_stops_; ++i) {
    std::copy(stops[i].begin(), stops[i].end(), stops_[i].bytes.begin());
    stops_[i].size = stops[i].size();
  }
  n_tail_ = shown_ = end_ = 0;
  stopped_ = false;
  return {};
}

void TextStream::add(std::string_view bytes) {
  std::copy(bytes.begin(), bytes.end(), text_.begin() + static_cast<std::ptrdiff_t>(end_));
  end_ += bytes.size();
}

void TextStream::forget_shown() {
  std::copy(text_.begin() + static_cast<std::ptrdiff_t>(shown_), text_.begin() + static_cast<std::ptrdiff_t>(end_),
            text_.begin());
  end_ -= shown_;
  shown_ = 0;
  searched_ = end_;
}

/// Returns the text up to the first stop string. Without one, holds back an end that may begin one, unless `all`.
std::string_view TextStream::show(bool all) {
  for (std::size_t end = searched_ + 1; end <= end_; ++end) {
    const std::string_view text{text_.data(), end};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < n_stops_; ++i) {
      if (text.ends_with(stops_[i].view())) longest = std::max(longest, stops_[i].size);
    }
    if (longest == 0) continue;
    stopped_ = true;
    n_tail_ = 0;
    shown_ = end_ = end - longest;
    return text.substr(0, shown_);
  }
  const std::string_view text{text_.data(), end_};
  std::size_t held = all ? 0 : std::min(end_, kMaxStopBytes - 1);
  const auto begins_stop = [&](std::string_view suffix) {
    return std::any_of(stops_.begin(), stops_.begin() + static_cast<std::ptrdiff_t>(n_stops_),
                       [&](const Stop& stop) { return stop.view().starts_with(suffix); });
  };
  while (held > 0 && !begins_stop(text.substr(end_ - held))) --held;
  shown_ = end_ - held;
  return text.substr(0, shown_);
}

std::string_view TextStream::finish() {
  if (stopped_) return {};
  forget_shown();
  if (n_tail_ > 0) add(utf8::kReplacement);
  n_tail_ = 0;
  return show(true);
}

std::string_view TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  bytes = bytes.substr(0, kMaxTokenBytes);
  forget_shown();
  while (n_tail_ > 0 && !bytes.empty()) {  // completes the character that was begun
    const std::size_t taken = std::min(bytes.size(), tail_.size() - n_tail_);
    std::copy_n(bytes.begin(), taken, tail_.begin() + static_cast<std::ptrdiff_t>(n_tail_));
    const std::string_view joined{tail_.data(), n_tail_ + taken};
    const utf8::Decoded next = utf8::decode(joined, 0);
    if (next.form == utf8::Form::incomplete) {
      n_tail_ = joined.size();
      return {};
    }
    // A maximal subpart never ends in the bytes held before, because they are a valid beginning.
    add(next.form == utf8::Form::valid ? joined.substr(0, next.size) : utf8::kReplacement);
    bytes.remove_prefix(next.size - n_tail_);
    n_tail_ = 0;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const utf8::Decoded next = utf8::decode(bytes, at);
    if (next.form == utf8::Form::incomplete) {
      n_tail_ = bytes.size() - at;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n_tail_, tail_.begin());
      break;
    }
    add(next.form == utf8::Form::valid ? bytes.substr(at, next.size) : utf8::kReplacement);
    at += next.size;
  }
  return show(false);
}

}  // namespace qsf
