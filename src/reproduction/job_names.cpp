#include <fmt/format.h>

#include "reproduction/jobs.h"

namespace sol {
namespace {

std::string job_name(const char* kind, const std::string& family, const std::string& controller) {
  return fmt::format("{}/{}/{}", kind, family, controller);
}

}  // namespace

std::string train_job(const std::string& family, const std::string& controller) {
  return job_name("train", family, controller);
}
std::string frontier_job(const std::string& family, const std::string& controller) {
  return job_name("frontier", family, controller);
}
std::string sweep_job(const std::string& family, const std::string& controller) {
  return job_name("sweep", family, controller);
}
std::string heuristics_job(const std::string& family, const std::string& controller) {
  return job_name("heuristics", family, controller);
}
std::string landscape_job(const std::string& family, const std::string& controller) {
  return job_name("landscape", family, controller);
}
std::string search_job(const std::string& family, const std::string& controller, int point) {
  return fmt::format("{}-{}", job_name("search", family, controller), point + 1);
}
std::string single_job(const std::string& family, const std::string& controller) {
  return job_name("single", family, controller);
}
std::string timed_job(const std::string& family, const std::string& controller) {
  return job_name("timed", family, controller);
}
std::string behaviour_job(const std::string& family, const std::string& controller) {
  return job_name("behaviour", family, controller);
}
std::string free_job(const std::string& family, const std::string& controller) {
  return job_name("free", family, controller);
}
std::string transfer_job(const std::string& family, const std::string& controller,
                         const std::string& what) {
  return fmt::format("{}-{}", job_name("transfer", family, controller), what);
}

}  // namespace sol
