// Compressed rows as numbers.
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/functions.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Scales are widened before use, those of this many groups at a time.
constexpr int kChunk = 128;

template <bool kScaled>
void widen(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out) {
  if (!holds_codes(w.type)) {
    with_type(w.type, [&]<typename T>(const T*) {
      const T* from = static_cast<const T*>(w.data) + row * w.stride + begin;
      with_type(type, [&]<typename To>(const To*) {
        To* to = static_cast<To*>(out);
        for_vectors(end - begin,
                    [&](int i, auto part) { store(to + i, load(from + i, part), part); });
      });
    });
    return;
  }
  const int columns = w.layout == Layout::out_major ? w.in : w.out;
  const std::byte* stored = row_at(w, row);
  with_codes(w.type, [&]<typename Codes>(const Codes& codes) {
    const Vec outside = set(Codes::row_scale(stored, columns));
    with_type(type, [&]<typename To>(const To*) {
      To* to = static_cast<To*>(out) - begin;
      float scale[kChunk];
      for (int o = begin; o < end; o += kChunk * kGroup) {
        const int outputs = smaller(kChunk * kGroup, end - o), group = o / kGroup;
        Codes::load_scales(stored, columns, group, groups_of(outputs), scale);
        for (int g = 0; g * kGroup < outputs; ++g) {
          Vec first, second;
          codes.load_group(stored + static_cast<int64_t>(group + g) * Codes::kGroupBytes, &scale[g],
                           first, second);
          To* at = to + o + g * kGroup;
          const int left = outputs - g * kGroup;
          if constexpr (kScaled && Codes::kScaleOutside) {
            first = first * outside;
            second = second * outside;
          } else if constexpr (Codes::kScaleOutside) {
            if (left >= kGroup) {
              store_exact(at, first, second);
              continue;
            }
          }
          store_pair(at, left, first, second);
        }
      }
    });
  });
}

}  // namespace

void widen_row(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out) {
  widen<true>(w, row, begin, end, type, out);
}

void widen_summands(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                    void* out) {
  widen<false>(w, row, begin, end, type, out);
}

}  // namespace sol::kernels::SOL_ISA_NAME
