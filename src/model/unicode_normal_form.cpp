#include "model/unicode_normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "model/utf8.h"

namespace sol {
namespace {

// Puts each run of combining marks into canonical order. utf8proc's own pass takes quadratic time
// on long runs, which a request could be made of.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto mark_class = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  for (size_t begin = 0; begin < points.size();) {
    if (mark_class(points[begin]) == 0) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < points.size() && mark_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<ptrdiff_t>(begin),
                     points.begin() + static_cast<ptrdiff_t>(end),
                     [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<signed char>(c) >= 0; });
  if (ascii) return std::string(text);

  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  const auto decompose_option = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    utf8proc_int32_t parts[32];  // the longest decomposition, U+FDFA's, has 18
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 32, decompose_option, &boundary);
    if (n < 0 || n > 32) fail("cannot decompose U+{:04X}: {}", c, utf8proc_errmsg(n));
    points.insert(points.end(), parts, parts + n);
  }
  order_marks(points);
  if (compose) {
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(
        points.data(), static_cast<utf8proc_ssize_t>(points.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (n < 0) fail("cannot compose a text of {} bytes: {}", text.size(), utf8proc_errmsg(n));
    points.resize(static_cast<size_t>(n));
  }
  std::string out;
  out.reserve(text.size());
  for (const utf8proc_int32_t c : points) append_utf8(static_cast<char32_t>(c), out);
  return out;
}

}  // namespace sol
