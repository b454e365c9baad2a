#include "validation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fail.h"
#include "text/block_dataset.h"
#include "text/byte_source.h"

namespace sol::pretrain {

Validation::Validation(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                       const std::filesystem::path& cache, std::vector<int> lengths, int windows,
                       std::stop_token stop) {
  for (const std::filesystem::path& file : files)
    for (const int length : lengths) {
      TextOptions options;
      // wikitext's records are lines, not documents.
      const bool wikitext = extension_of(file) == ".raw";
      options.framed = !wikitext;
      if (wikitext) options.format = TextOptions::Format::wikitext;
      const BlockDataset data =
          BlockDataset::open({file}, options, tokenizer, length + 1, cache, stop);
      Set set{file.filename().string(), length, {}, 0};
      const int64_t count = std::min<int64_t>(windows, data.size());
      for (int64_t i = 0; i < count; ++i) {
        const auto ids = data.block(i * data.size() / count);
        set.ids.insert(set.ids.end(), ids.begin(), ids.end());
        // Special tokens have no text; a character cut by the window's edge counts as three bytes.
        set.bytes += static_cast<int64_t>(tokenizer.decode(ids.subspan(1), true).size());
      }
      sets_.push_back(std::move(set));
    }
}

Json Validation::measure(Engine& engine) const {
  Json out = Json::array();
  for (const Set& set : sets_) {
    const std::vector<float> losses = engine.losses({set.ids, set.window});
    double all = 0, later = 0;
    int64_t later_count = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      all += losses[i];
      if (static_cast<int>(i % static_cast<size_t>(set.window)) < set.window / 2) continue;
      later += losses[i];
      ++later_count;
    }
    const auto targets = static_cast<double>(losses.size());
    out.push_back({{"file", set.file},
                   {"window", set.window},
                   {"targets", losses.size()},
                   {"nats_per_token", all / targets},
                   {"second_half", later / static_cast<double>(later_count)},
                   {"bits_per_byte", all / std::numbers::ln2 /
                                         static_cast<double>(std::max<int64_t>(set.bytes, 1))}});
  }
  return out;
}

}  // namespace sol::pretrain
