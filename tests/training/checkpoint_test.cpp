// Checkpoints that are damaged, hostile or diverged, through a run that resumes from them.
#include "training/checkpoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/file_io.h"
#include "model/safetensors.h"
#include "throws.h"
#include "trainer_fixture.h"

namespace sol::test {
namespace {

class CheckpointTest : public TrainerTest {};

TEST_F(CheckpointTest, DamagedCheckpointsAreErrors) {
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const std::string bytes = read_file(path);
  write_file_atomically(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(error(out(), true), testing::HasSubstr("state.safetensors"));
  write_file_atomically(path, "nonsense");
  EXPECT_THAT(error(out(), true), testing::HasSubstr("state.safetensors"));
  const float one = 1;
  const TensorToWrite tensor{"x", DType::f32, {1}, std::as_bytes(std::span(&one, 1))};
  write_safetensors(path, {&tensor, 1});
  EXPECT_THAT(error(out(), true), testing::HasSubstr("not a training checkpoint"));
  write_safetensors(path, {&tensor, 1}, {{"state", R"({"format_version": 1})"}});
  EXPECT_THAT(error(out(), true), testing::HasSubstr("format 1"));
}

// Writes a checkpoint's bytes with its state edited and all checksums right.
void edit_state(const fs::path& path, const std::string& good,
                const std::function<void(Json&)>& edit) {
  write_file_atomically(path, good);
  const TensorStore store = TensorStore::open_file(path).copy();
  Json state = parse_json(TensorStore::open_file(path).metadata().at("state"), "state");
  edit(state);
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : store.tensors())
    tensors.push_back({name, tensor.type, tensor.shape, tensor.bytes});
  write_checked_safetensors(path, tensors, {{"state", state.dump()}});
}

TEST_F(CheckpointTest, HostileCheckpointsAreErrors) {
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const std::string good = read_file(path);
  const auto error_with = [&](const char* field, const Json& value) {
    edit_state(path, good, [&](Json& state) { state[field] = value; });
    return error(out(), true);
  };
  for (const char* counter : {"collections", "position", "minibatches", "updates"}) {
    EXPECT_THAT(error_with(counter, INT64_MAX), testing::HasSubstr(counter));
    EXPECT_THAT(error_with(counter, -1), testing::HasSubstr(counter));
  }
  EXPECT_THAT(error_with("minibatches", config_.grad_accum), testing::HasSubstr("grad_accum"));
  EXPECT_THAT(error_with("seconds", -1.0), testing::HasSubstr("seconds"));
  EXPECT_THAT(error_with("identity", 5), testing::HasSubstr("identity"));
  EXPECT_EQ(error_with("seconds", 1.0), "");
}

TEST_F(CheckpointTest, HostilePricesAreErrors) {
  config_.enforced = true;
  config_.price_rate = 0.1;
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const std::string good = read_file(path);
  const auto error_with = [&](const std::function<void(Json&)>& edit) {
    edit_state(path, good, [&](Json& state) { edit(state["metrics"]); });
    return error(out(), true);
  };
  using testing::HasSubstr;
  EXPECT_THAT(error_with([](Json& m) { m.erase("prices"); }), HasSubstr("prices is missing"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"] = 5; }), HasSubstr("a list \"kappa\" of 11"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"]["rho"].erase(3); }),
              HasSubstr("a list \"rho\" of 11"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"]["eta"][3] = "x"; }),
              HasSubstr("a list \"eta\" of 11"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"]["eta"][3] = nullptr; }),
              HasSubstr("a price of spending of nan"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"]["eta"][3] = 1e300; }),
              HasSubstr("a price of spending of 1e+300"));
  EXPECT_THAT(error_with([](Json& m) { m["prices"]["eta"][3] = -0.5; }),
              HasSubstr("a price of spending of -0.5"));
  EXPECT_EQ(error_with([](Json& m) { m["prices"]["eta"][3] = 0.5; }), "");
}

TEST_F(CheckpointTest, CheckpointsThatLackTensorsAreErrors) {
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const std::string bytes = read_file(path);
  const TensorStore good = TensorStore::open_file(path).copy();
  const std::map<std::string, std::string> metadata{
      {"state", TensorStore::open_file(path).metadata().at("state")}};
  // `change` is called for the tensor named; one that it empties of bytes is left out.
  const auto error_with = [&](const std::string& name, const auto& change) {
    std::vector<TensorToWrite> tensors;
    for (const auto& [other, tensor] : good.tensors()) {
      TensorToWrite copy{other, tensor.type, tensor.shape, tensor.bytes};
      if (other == name) change(copy);
      if (!copy.bytes.empty()) tensors.push_back(copy);
    }
    write_checked_safetensors(path, tensors, metadata);
    return error(out(), true);
  };
  for (const char* kind : {"parameter.", "gradient.", "first_moment.", "second_moment."}) {
    const std::string name = std::string(kind) + "pi.weight";
    const auto missing = error_with(name, [](TensorToWrite& tensor) { tensor.bytes = {}; });
    EXPECT_THAT(missing,
                testing::AllOf(testing::HasSubstr(path.string()), testing::HasSubstr(name)));
    const auto turned = error_with(
        name, [](TensorToWrite& tensor) { std::swap(tensor.shape[0], tensor.shape[1]); });
    EXPECT_THAT(turned, testing::AllOf(testing::HasSubstr(path.string()), testing::HasSubstr(name),
                                       testing::HasSubstr("must be")));
    const auto short_of = error_with(name, [](TensorToWrite& tensor) {
      --tensor.shape[0];
      tensor.bytes =
          tensor.bytes.first(tensor.bytes.size() - 4 * static_cast<size_t>(tensor.shape[1]));
    });
    EXPECT_THAT(short_of, testing::HasSubstr("must be"));
  }
  // One changed bit that means something, and one of the counters.
  std::string flipped = bytes;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  write_file_atomically(path, flipped);
  EXPECT_THAT(error(out(), true), testing::HasSubstr("checksum is wrong"));
  std::string counted = bytes;
  const std::string field = "\\\"collections\\\":1";
  ASSERT_NE(counted.find(field), std::string::npos);
  counted.replace(counted.find(field) + field.size() - 1, 1, "0");
  write_file_atomically(path, counted);
  EXPECT_THAT(error(out(), true), testing::HasSubstr("checksum is wrong"));
  write_file_atomically(path, bytes);
  EXPECT_EQ(error(out(), true), "");
}

TEST_F(CheckpointTest, ADivergedStateIsNeitherSavedNorLoaded) {
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const Json identity =
      parse_json(TensorStore::open_file(path).metadata().at("state"), "state").at("identity");
  const PolicyNetworkShape shape = config_.network_shape(model_->config().hidden_size);
  const TrainingState good = load_checkpoint(path, identity, shape);
  const std::string before = read_file(path);
  const auto spoiled = [&](auto&& values_of) {
    TrainingState state = good;
    values_of(state)[0] = std::nanf("");
    EXPECT_THAT([&] { save_checkpoint(path, state, identity); },
                throws({path.string(), "diverged", "learning_rate"}));
    EXPECT_EQ(read_file(path), before);
  };
  spoiled([](TrainingState & s) -> auto& { return s.parameters.begin()->second.values; });
  spoiled([](TrainingState & s) -> auto& { return s.gradients.begin()->second.values; });
  spoiled([](TrainingState & s) -> auto& { return s.moments.begin()->second.first; });
  spoiled([](TrainingState & s) -> auto& { return s.moments.begin()->second.second; });
  // Another program's file.
  std::string bytes = before;
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");
  write_file_atomically(path, bytes);
  const TensorStore spoilt = TensorStore::open_file(path).copy();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : spoilt.tensors())
    tensors.push_back({name, tensor.type, tensor.shape, tensor.bytes});
  write_checked_safetensors(path, tensors,
                            {{"state", TensorStore::open_file(path).metadata().at("state")}});
  EXPECT_THAT(error(out(), true), testing::HasSubstr("diverged"));
}

}  // namespace
}  // namespace sol::test
