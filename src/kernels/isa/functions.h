// What one instruction set implements; table.cpp collects it. Contracts: kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace sol::kernels::SOL_ISA_NAME {

void matvec_out_major(const WeightView& w, const float* x, int out_begin, int out_end, float* y);
void matmul_out_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                      int out_begin, int out_end, float* y, int64_t y_stride);
void matmul_in_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                     const int* channels, int n, int out_begin, int out_end, float* y,
                     int64_t y_stride);
void quantise_row(const float* x, int n, int8_t* codes, float* scale);
void integer_out_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                       int rows, int out_begin, int out_end, float* y, int64_t y_stride);
void integer_in_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                      int rows, const int* channels, int n, int out_begin, int out_end, float* y,
                      int64_t y_stride);
void widen_row(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out);
void widen_summands(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                    void* out);
void compress_row(const float* x, int n, WeightType type, std::byte* row);
void rms_norm(const float* x, const float* weight, float eps, int n, float* out);
void rotary(float* x, int heads, int dim, const float* cos, const float* sin);
void silu_mul(const float* gate, const float* up, int n, float* out);
void add(float* x, const float* y, int n);
void fake_quantise(float* z, int n, int bits);
void store_elements(const float* x, int n, ElementType type, void* out);
void load_elements(const void* x, ElementType type, int n, float* out);
void page_extrema(const void* keys, ElementType type, int count, int dim, void* minmax);
void page_moments(const void* keys, ElementType type, int count, int dim, void* moments);
void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride);
void mark_largest(const float* x, int n, int keep, bool magnitude, bool keep_ties, uint64_t* marks,
                  int32_t* scratch);
void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, int shared, const NextPieces& next,
                 float scale, float* scratch);
void merge_parts(const float* partials, int parts, int64_t stride, int dim, float* out);
void attend_causal(const float* q, int64_t row_stride, int rows, int heads, int first_position,
                   const CacheView& keys, const CacheView& values, float scale, float* scratch,
                   float* out);
void softmax_step(float* scores, int64_t stride, int rows, int keys, int seen, int heads,
                  float scale, float* largest, float* total, float* out, int dim);
void log_sum_exp(const float* x, int n, float* log_sum_exp, float* expected_x);
void layer_norm(const float* x, const float* weight, const float* bias, float eps, int n,
                float* out);
void gelu(float* x, int n);
int32_t largest_of(const int32_t* x, int64_t count);

}  // namespace sol::kernels::SOL_ISA_NAME
