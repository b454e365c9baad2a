#include "policy/cost_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/fail.h"

namespace sol {
namespace {

void require(bool good, const char* what) {
  if (!good) fail("the cost table {}", what);
}

// Piecewise linear through (shares, saved) and (1, 0); level below the first share.
double interpolated_saving(const std::vector<float>& shares, const std::vector<double>& saved,
                           float share) {
  if (share >= 1.0f) return 0.0;
  if (share <= shares.front()) return saved.front();
  const auto above = std::upper_bound(shares.begin(), shares.end(), share);
  const size_t i = static_cast<size_t>(above - shares.begin());
  const double low = static_cast<double>(shares[i - 1]);
  const double high = above == shares.end() ? 1.0 : static_cast<double>(*above);
  const double saved_high = above == shares.end() ? 0.0 : saved[i];
  const double weight = (static_cast<double>(share) - low) / (high - low);
  return saved[i - 1] + weight * (saved_high - saved[i - 1]);
}

}  // namespace

CostTable::CostTable(int horizon, std::vector<float> shares, std::vector<Length> lengths,
                     std::vector<double> channels_saved_ms)
    : horizon_(horizon),
      shares_(std::move(shares)),
      lengths_(std::move(lengths)),
      channels_saved_ms_(std::move(channels_saved_ms)) {
  require(horizon_ >= 1, "has no horizon");
  require(!shares_.empty() && !lengths_.empty(), "has no shares or no lengths");
  require(shares_.front() > 0.0f && shares_.back() < 1.0f, "has shares outside (0, 1)");
  require(std::ranges::is_sorted(shares_, std::less_equal<>()), "has shares that do not ascend");
  require(channels_saved_ms_.size() == shares_.size(), "lacks savings of some shares of channels");
  const auto finite = [](double v) { return std::isfinite(v); };
  require(std::ranges::all_of(channels_saved_ms_, finite), "has a time that is not finite");
  int last = 0;
  for (const Length& length : lengths_) {
    require(length.keys > last, "has lengths that do not ascend");
    last = length.keys;
    require(length.saved_ms.size() == shares_.size(), "lacks savings of some shares of a context");
    require(std::ranges::all_of(length.saved_ms, finite), "has a time that is not finite");
    require(finite(length.dense_ms) && length.dense_ms > 0, "has a step without a time");
    require(finite(length.refresh_ms) && length.refresh_ms > 0, "has a refresh without a time");
  }
}

double CostTable::context_saved_ms(const Length& length, float kappa) const {
  return interpolated_saving(shares_, length.saved_ms, kappa);
}

// Linear between measured lengths and beyond the longest: attention's time is proportional to the
// keys. Level below the shortest, and beyond the longest where times fall towards it: a longer
// context is never the cheaper one, and a line that falls ends below zero.
template <typename Value>
double CostTable::at_length(int keys, const Value& value) const {
  if (lengths_.size() == 1 || keys <= lengths_.front().keys) return value(lengths_.front());
  size_t i = 1;
  while (i + 1 < lengths_.size() && lengths_[i].keys < keys) ++i;
  const Length &low = lengths_[i - 1], &high = lengths_[i];
  const double weight =
      static_cast<double>(keys - low.keys) / static_cast<double>(high.keys - low.keys);
  const double ms = value(low) + weight * (value(high) - value(low));
  return keys > high.keys ? std::max(ms, value(high)) : ms;
}

double CostTable::step_ms(float kappa, float rho, int keys) const {
  const auto dense = [](const Length& length) { return length.dense_ms; };
  const auto with_share = [&](const Length& length) {
    return length.dense_ms - context_saved_ms(length, kappa);
  };
  double ms = at_length(keys, with_share);
  // Where a share of the context costs more than the dense step, it is taken to stay the part of
  // the step that it is at the longest length, however steep the line towards that: nothing is
  // known.
  if (const Length& longest = lengths_.back(); keys > longest.keys)
    ms = std::min(ms, at_length(keys, dense) * std::max(1.0, with_share(longest) / dense(longest)));
  return std::max(ms - interpolated_saving(shares_, channels_saved_ms_, rho), 1e-6);
}

double CostTable::token_ms(float kappa, float rho, int keys) const {
  const double step = step_ms(kappa, rho, keys);
  if (kappa >= 1.0f && rho >= 1.0f) return step;
  return step + refresh_ms_per_token(keys);
}

double CostTable::refresh_ms_per_token(int keys) const {
  return at_length(keys, [](const Length& length) { return length.refresh_ms; }) / horizon_;
}

double CostTable::fastest_ms(int keys, const Budget& lowest) const {
  return std::min(dense_ms(keys), token_ms(lowest.kappa, lowest.rho, keys));
}

Budget CostTable::budget_for(double ms, int keys, const Budget& lowest) const {
  if (dense_ms(keys) <= std::max(ms, fastest_ms(keys, lowest))) return {};
  const double dense = step_ms(1.0f, 1.0f, keys);
  const double kappa_saves = std::max(0.0, dense - step_ms(lowest.kappa, 1.0f, keys));
  const double rho_saves = std::max(0.0, dense - step_ms(1.0f, lowest.rho, keys));
  const double most = std::max(kappa_saves, rho_saves);
  if (most <= 0.0) return {};  // nothing saves time here
  const auto lowered = [&](double amount) {
    const auto share = [&](double saves, float low) {
      return std::max(low, static_cast<float>(1.0 - amount * saves / most));
    };
    return Budget{share(kappa_saves, lowest.kappa), share(rho_saves, lowest.rho), 1.0f};
  };
  // With an amount of most / the smaller saving both axes are at their lowest.
  const double smaller = std::min(kappa_saves, rho_saves);
  double low = 0.0, high = smaller > most * 1e-3 ? most / smaller : 1.0;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    const Budget budget = lowered(middle);
    (token_ms(budget.kappa, budget.rho, keys) > ms ? low : high) = middle;
  }
  return lowered(high);
}

double CostTable::share_for(double ms, int keys, const Budget& lowest, double least,
                            double most) const {
  if (dense_ms(keys) <= std::max(ms, fastest_ms(keys, lowest))) return 1.0;
  const double dense = step_ms(1.0f, 1.0f, keys);
  const double floor = std::max(least, step_ms(lowest.kappa, lowest.rho, keys) / dense);
  const double share = std::min(most, (ms - refresh_ms_per_token(keys)) / dense);
  return std::min(1.0, std::max(floor, share));
}

double CostTable::share_ms(double share, int keys) const {
  const double ms = share * step_ms(1.0f, 1.0f, keys);
  return share < 1.0 ? ms + refresh_ms_per_token(keys) : ms;
}

void require_times_fit(const ActionSpace& space) {
  if (space.bits() != std::vector<int>{16})
    fail(
        "bits save no time, so a policy that is asked for times chooses among 16 bits alone, not "
        "among {} levels from {} bits",
        space.bits().size(), space.bits().front());
}

Json CostTable::to_json() const {
  Json lengths = Json::array();
  for (const Length& length : lengths_)
    lengths.push_back({{"keys", length.keys},
                       {"dense_ms", length.dense_ms},
                       {"refresh_ms", length.refresh_ms},
                       {"saved_ms", length.saved_ms}});
  return {{"horizon", horizon_},
          {"shares", shares_},
          {"channels_saved_ms", channels_saved_ms_},
          {"lengths", std::move(lengths)}};
}

namespace {

// Times are of one decoded token: a million seconds is none.
constexpr double longest_ms = 1e9;
// A share may save nothing and cost a little (pages that are scored and then all read), and what a
// busy machine measures is noise; but a step takes some time, and not many times the dense one.
constexpr double slowest_step = 100;
// A longer context takes no less than a shorter one, but for noise.
constexpr double most_falling = 0.5;

void check_time(double ms, const std::string& entry, const std::string& where) {
  if (!(ms > 0 && ms <= longest_ms))
    fail(
        "{}: \"{}\" is {} ms; a time is more than 0 and at most {} ms: measure again with "
        "`sol calibrate`",
        where, entry, ms, longest_ms);
}

bool leaves_a_step(double saved, double dense) {
  return saved < dense && dense - saved <= slowest_step * dense;
}

void check_savings(const std::vector<double>& saved, double dense, const std::string& field,
                   const std::string& where) {
  for (size_t i = 0; i < saved.size(); ++i)
    if (!leaves_a_step(saved[i], dense))
      fail(
          "{}: \"{}[{}]\" says that {} ms of a step of {} ms are saved; it must leave more than 0 "
          "and at most {} times the step: measure again with `sol calibrate`",
          where, field, i, saved[i], dense, slowest_step);
}

// The least and the most that any share saves; all of it, a share of 1, saves 0.
std::array<double, 2> extremes(const std::vector<double>& saved) {
  std::array<double, 2> found{};
  for (const double ms : saved) found = {std::min(found[0], ms), std::max(found[1], ms)};
  return found;
}

// Context and channels may be dropped at once, and their savings add.
void check_sums(const std::vector<CostTable::Length>& lengths,
                const std::vector<double>& channels_saved) {
  const auto channels = extremes(channels_saved);
  for (size_t n = 0; n < lengths.size(); ++n) {
    const double dense = lengths[n].dense_ms;
    const auto context = extremes(lengths[n].saved_ms);
    for (size_t end = 0; end < 2; ++end)
      if (const double saved = context[end] + channels[end]; !leaves_a_step(saved, dense))
        fail(
            "\"lengths[{}].saved_ms\" and \"channels_saved_ms\" together say that {} ms of a step "
            "of {} ms are saved; they must leave more than 0 and at most {} times the step: "
            "measure again with `sol calibrate`",
            n, saved, dense, slowest_step);
  }
}

void check_growth(const std::vector<CostTable::Length>& lengths, double CostTable::Length::*field,
                  const char* name) {
  double most = 0;
  for (size_t n = 0; n < lengths.size(); ++n) {
    const double ms = lengths[n].*field;
    if (ms < most_falling * most)
      fail(
          "\"lengths[{}].{}\" is {} ms, but a shorter context takes {} ms; a longer one takes at "
          "least {} times as long: measure again with `sol calibrate`",
          n, name, ms, most, most_falling);
    most = std::max(most, ms);
  }
}

std::vector<double> numbers_of(const Json& object, const char* field, const std::string& where) {
  if (!object.is_object() || !object.contains(field) || !object[field].is_array())
    fail("{}: \"{}\" is not a list of numbers", where, field);
  std::vector<double> values;
  for (const Json& value : object[field]) {
    if (!value.is_number()) fail("{}: \"{}\" is not a list of numbers", where, field);
    values.push_back(value.get<double>());
  }
  return values;
}

}  // namespace

CostTable CostTable::from_json(const Json& json, const std::string& where) {
  const std::vector<double> shares = numbers_of(json, "shares", where);
  const std::vector<double> channels = numbers_of(json, "channels_saved_ms", where);
  if (!json.contains("lengths") || !json["lengths"].is_array())
    fail("{}: \"lengths\" is not a list", where);
  std::vector<Length> lengths;
  double fastest = longest_ms;
  for (const Json& length : json["lengths"]) {
    lengths.push_back(
        {json_get<int>(length, "keys", where), json_get<double>(length, "dense_ms", where),
         json_get<double>(length, "refresh_ms", where), numbers_of(length, "saved_ms", where)});
    const Length& read = lengths.back();
    const std::string entry = fmt::format("lengths[{}].", lengths.size() - 1);
    check_time(read.dense_ms, entry + "dense_ms", where);
    check_time(read.refresh_ms, entry + "refresh_ms", where);
    check_savings(read.saved_ms, read.dense_ms, entry + "saved_ms", where);
    fastest = std::min(fastest, read.dense_ms);
  }
  check_savings(channels, fastest, "channels_saved_ms", where);
  const int horizon = json_get<int>(json, "horizon", where);
  try {
    CostTable table(horizon, std::vector<float>(shares.begin(), shares.end()), std::move(lengths),
                    channels);
    check_sums(table.lengths_, channels);
    check_growth(table.lengths_, &Length::dense_ms, "dense_ms");
    check_growth(table.lengths_, &Length::refresh_ms, "refresh_ms");
    return table;
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

bool CostTable::saves_time() const {
  const auto positive = [](double ms) { return ms > 0; };
  return std::ranges::any_of(channels_saved_ms_, positive) ||
         std::ranges::any_of(lengths_, [&](const Length& length) {
           return std::ranges::any_of(length.saved_ms, positive);
         });
}

}  // namespace sol
