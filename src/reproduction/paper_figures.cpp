#include "reproduction/paper_figures.h"

#include <algorithm>
#include <vector>

namespace sol {
namespace {

struct Row {
  const char* controller;
  PaperComparison figures;
  std::vector<float> kappa, rho;
  std::vector<int> bits;
};

const std::vector<Row>& rows() {
  const std::vector<float> kappa{0.1f, 0.4f, 0.7f, 1.0f},
      rho{0.45f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f};
  const std::vector<int> bits{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const std::vector<float> all_kappa{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f},
      all_rho{0.4f, 0.45f, 0.5f, 0.55f, 0.6f, 0.65f, 0.7f, 0.75f, 0.8f, 0.85f, 0.9f, 0.95f, 1.0f};
  static const std::vector<Row> all{
      {"t4", {-0.127 / 9.66, 0.587}, kappa, rho, bits},
      {"t16", {-0.160 / 11.42, 0.704}, kappa, rho, bits},
      {"t64", {-0.212 / 9.34, 0.847}, kappa, rho, bits},
      {"2l", {-0.383 / 11.89, 0.953}, {0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16}},
      {"3l", {-0.309 / 10.94, 0.844}, {0.1f, 0.6f, 1.0f}, {0.4f, 0.8f, 1.0f}, {5, 7, 16}},
      {"llama-3.2-3b", {-0.327 / 9.46, 0.955}, all_kappa, all_rho, bits},
      {"llama-3.1-8b-instruct", {-0.270 / 8.20, 0.889}, all_kappa, all_rho, bits}};
  return all;
}

}  // namespace

const PaperComparison* paper_comparison(const std::string& controller, const ActionSpace& space) {
  for (const Row& row : rows())
    if (controller == row.controller && std::ranges::equal(space.kappa(), row.kappa) &&
        std::ranges::equal(space.rho(), row.rho) && std::ranges::equal(space.bits(), row.bits))
      return &row.figures;
  return nullptr;
}

}  // namespace sol
