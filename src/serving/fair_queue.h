// First come, first served among parties, one item of each at a time: whoever sends a hundred
// prompts does not keep the others waiting for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sol {

// A user by name, or one request of those that name nobody, by its number: no name that a client
// may think of is the party of another's request.
using Party = std::variant<uint64_t, std::string>;

template <typename Item>
class FairQueue {
 public:
  enum class Verdict {
    take,
    later,  // not this one yet: look at the other parties' first
    stop,   // nobody may pass this one
  };

  // Where it throws, the queue is as it was.
  void push(const Party& party, Item item) {
    for (auto& [other, items] : parties_)
      if (other == party) {
        items.push_back(std::move(item));
        ++size_;
        return;
      }
    std::deque<Item> items;
    items.push_back(std::move(item));
    parties_.emplace_back(party, std::move(items));
    ++size_;
  }

  // The first party's first item that `judge` takes; its party goes to the end of the line.
  template <typename Judge>
  std::optional<Item> pop(const Judge& judge) {
    for (auto party = parties_.begin(); party != parties_.end(); ++party) {
      const Verdict verdict = judge(party->second.front());
      if (verdict == Verdict::stop) return std::nullopt;
      if (verdict == Verdict::later) continue;
      Item item = std::move(party->second.front());
      party->second.pop_front();
      --size_;
      if (party->second.empty())
        parties_.erase(party);
      else
        parties_.splice(parties_.end(), parties_, party);
      return item;
    }
    return std::nullopt;
  }

  // Removes what `is_gone` says and returns how many.
  template <typename IsGone>
  size_t remove_if(const IsGone& is_gone) {
    const size_t before = size_;
    for (auto party = parties_.begin(); party != parties_.end();) {
      size_ -= std::erase_if(party->second, is_gone);
      party = party->second.empty() ? parties_.erase(party) : std::next(party);
    }
    return before - size_;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::list<std::pair<Party, std::deque<Item>>> parties_;  // in the order of their turns
  size_t size_ = 0;
};

}  // namespace sol
