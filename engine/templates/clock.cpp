#include "templates/clock.h"

#include <algorithm>

#include "templates/number.h"

namespace qsf::templates {
namespace {

constexpr std::string_view kMonths[]{"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
constexpr std::string_view kDays[]{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

bool is_leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/// Returns the days of the year before a month.
std::uint32_t days_before(std::int64_t year, std::uint32_t month) {
  constexpr std::uint32_t kBefore[]{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return kBefore[month - 1] + (month > 2 && is_leap(year) ? 1 : 0);
}

/// Returns the day of the week, 0 for Sunday.
std::uint32_t weekday(const Time& t) {
  const std::int64_t years = t.year - 1;
  const std::int64_t days = 365 * years + years / 4 - years / 100 + years / 400 + days_before(t.year, t.month) + t.day;
  return static_cast<std::uint32_t>(((days % 7) + 7) % 7);
}

/// A number in a time's text.
struct Field {
  char form;
  std::uint32_t width;  // with zeros in front
  std::int64_t number;
};

}  // namespace

bool write_time(Writer& out, std::string_view format, const Time& given) {
  Time t = given;
  t.month = std::clamp(t.month, 1u, 12u);
  t.day = std::clamp(t.day, 1u, 31u);
  const std::uint32_t half = t.hour % 12 == 0 ? 12 : t.hour % 12;
  const std::uint32_t day = weekday(t);
  const Field fields[]{
      {'Y', 4, t.year},
      {'m', 2, t.month},
      {'d', 2, t.day},
      {'e', 2, t.day},
      {'H', 2, t.hour},
      {'I', 2, half},
      {'M', 2, t.minute},
      {'S', 2, t.second},
      {'y', 2, ((t.year % 100) + 100) % 100},
      {'j', 3, days_before(t.year, t.month) + t.day},
      {'u', 1, day == 0 ? 7 : day},
      {'w', 1, day},
      {'f', 6, 0},
  };
  for (std::size_t at = 0; at < format.size();) {
    const std::size_t percent = std::min(format.find('%', at), format.size());
    out.add(format.substr(at, percent - at));
    if (percent == format.size()) break;
    at = percent + 1;
    const bool bare = at < format.size() && (format[at] == '-' || format[at] == '#');  // no zeros in front
    if (bare) ++at;
    if (at >= format.size()) return false;
    const char form = format[at++];
    const auto nested = [&](std::string_view other) { return write_time(out, other, t); };
    switch (form) {
      case 'B':
        out.add(kMonths[t.month - 1]);
        break;
      case 'b':
      case 'h':
        out.add(kMonths[t.month - 1].substr(0, 3));
        break;
      case 'A':
        out.add(kDays[day]);
        break;
      case 'a':
        out.add(kDays[day].substr(0, 3));
        break;
      case 'p':
        out.add(t.hour < 12 ? "AM" : "PM");
        break;
      case 'n':
        out.add("\n");
        break;
      case 't':
        out.add("\t");
        break;
      case '%':
        out.add("%");
        break;
      case 'F':
        nested("%Y-%m-%d");
        break;
      case 'T':
      case 'X':
        nested("%H:%M:%S");
        break;
      case 'R':
        nested("%H:%M");
        break;
      case 'D':
      case 'x':
        nested("%m/%d/%y");
        break;
      case 'c':
        nested("%a %b %e %H:%M:%S %Y");
        break;
      case 'Z':
      case 'z':
        break;  // the time has no zone
      default: {
        const auto* const field = std::ranges::find(fields, form, &Field::form);
        if (field == std::end(fields)) return false;
        char digits[kNumberBytes];
        const std::size_t n = write_whole(field->number, digits);
        if (!bare && field->width > n) out.add(form == 'e' ? " " : "0", field->width - n);
        out.add({digits, n});
      }
    }
  }
  return true;
}

}  // namespace qsf::templates
