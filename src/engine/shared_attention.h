// Many rows over the same part of the cache as two BF16 products, where the processor multiplies
// it.
#pragma once

#include <span>

#include "kernels/kernels.h"
#include "kernels/matmul.h"

namespace sol {

// Whether attend_shared() pays and may be used: the library's products are wanted, the cache is
// BF16, there are many rows, and together they attend to enough of what would be multiplied. The
// pieces must not overlap.
bool worth_products(std::span<const kernels::AttendRow> rows,
                    std::span<const kernels::AttendPiece> pieces, kernels::ElementType type,
                    kernels::MatmulMode mode);

// As kernels::attend_part with pieces that do not overlap, within BF16's rounding of queries and
// weights.
void attend_shared(std::span<const kernels::AttendRow> rows,
                   std::span<const kernels::AttendPiece> pieces, int dim, float scale);

}  // namespace sol
