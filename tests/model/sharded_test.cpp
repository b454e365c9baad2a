#include <fstream>

#include "model_files.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::golden;
using test::throws;

// A copy of the golden sharded model, to be damaged.
class ShardedTest : public testing::Test {
 protected:
  ShardedTest() {
    for (const auto& entry : fs::directory_iterator(golden("tiny_sharded_f32")))
      if (entry.path().filename().string().starts_with("model"))
        fs::copy(entry.path(), dir() / entry.path().filename());
    index_ = read_json(index_path());
  }
  const fs::path& dir() const { return dir_.path(); }
  fs::path index_path() const { return dir() / "model.safetensors.index.json"; }
  void write_index() { write_file_atomically(index_path(), index_.dump()); }
  auto opening() {
    return [this] { TensorStore::open_directory(dir()); };
  }

  test::TemporaryDirectory dir_;
  Json index_;
};

TEST_F(ShardedTest, AllShardsAreRead) {
  const TensorStore store = TensorStore::open_directory(dir());
  EXPECT_EQ(store.files().size(), 3u);
  EXPECT_EQ(store.tensors().size(), index_["weight_map"].size());
}

// Neither the index nor what lies beside them, as the original's weights in Mistral's directories.
TEST_F(ShardedTest, StoredBytesAreTheShards) {
  uint64_t bytes = 0;
  const TensorStore store = TensorStore::open_directory(dir());
  for (const fs::path& file : store.files()) bytes += fs::file_size(file);
  EXPECT_EQ(stored_bytes(dir()), bytes);
  const fs::path single = golden("tiny_tied_f32/model.safetensors");
  fs::copy(single, dir() / "consolidated.safetensors");
  EXPECT_EQ(stored_bytes(dir()), bytes);
  fs::copy(single, dir() / "model.safetensors");
  EXPECT_EQ(stored_bytes(dir()), fs::file_size(single));
}

TEST_F(ShardedTest, AMissingShardIsNamed) {
  fs::remove(dir() / "model-00002-of-00003.safetensors");
  EXPECT_THAT(opening(), throws({"index.json", "model-00002-of-00003.safetensors", "missing"}));
}

TEST_F(ShardedTest, ATensorInAnotherShardThanListed) {
  const std::string name = "model.norm.weight";
  const std::string right = index_["weight_map"][name];
  const std::string wrong = right == "model-00001-of-00003.safetensors"
                                ? "model-00002-of-00003.safetensors"
                                : "model-00001-of-00003.safetensors";
  index_["weight_map"][name] = wrong;
  write_index();
  EXPECT_THAT(opening(), throws({"index.json", name, "should be in the shard " + wrong, right}));
}

TEST_F(ShardedTest, AListedTensorThatNoShardHas) {
  index_["weight_map"]["model.extra.weight"] = "model-00001-of-00003.safetensors";
  write_index();
  EXPECT_THAT(opening(), throws({"model.extra.weight", "model-00001-of-00003.safetensors"}));
}

TEST_F(ShardedTest, ATensorThatIsNotListed) {
  index_["weight_map"].erase("model.norm.weight");
  write_index();
  EXPECT_THAT(opening(), throws({"model.norm.weight", "does not name"}));
}

TEST_F(ShardedTest, ATensorInTwoShards) {
  const fs::path first = dir() / "model-00001-of-00003.safetensors";
  test::EditableTensors tensors(TensorStore::open_file(first));
  const TensorStore third = TensorStore::open_file(dir() / "model-00003-of-00003.safetensors");
  const TensorView& stray = third.tensors().begin()->second;
  tensors.tensors[stray.name] = {stray.type, stray.shape, {stray.bytes.begin(), stray.bytes.end()}};
  tensors.write(first);
  EXPECT_THAT(opening(), throws({stray.name, "model-00003-of-00003.safetensors"}));
}

TEST_F(ShardedTest, ADamagedShardIsNamed) {
  fs::resize_file(dir() / "model-00003-of-00003.safetensors", 5000);
  EXPECT_THAT(opening(), throws({"model-00003-of-00003.safetensors", "truncated"}));
}

// A hostile index must not reach files elsewhere.
TEST_F(ShardedTest, ShardNamesStayInTheDirectory) {
  for (const char* name :
       {"../model.safetensors", "/etc/passwd", "", "..", "sub/x.safetensors", "model.bin"}) {
    index_["weight_map"]["model.norm.weight"] = name;
    write_index();
    EXPECT_THAT(opening(), throws({"index.json", std::string("\"") + name + "\""})) << name;
  }
}

TEST_F(ShardedTest, MalformedIndexes) {
  write_file_atomically(index_path(), "{");
  EXPECT_THAT(opening(), throws({"index.json", "not valid JSON"}));
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
    write_file_atomically(index_path(), text);
    EXPECT_THAT(opening(), throws({"index.json", "weight_map"})) << text;
  }
  write_file_atomically(index_path(), R"({"weight_map": {"a": 3}})");
  EXPECT_THAT(opening(), throws({"index.json", "\"a\"", "string"}));
}

TEST(OpenDirectory, OtherWeightsAreNotPickedUp) {
  const test::TemporaryDirectory dir;
  EXPECT_THAT([&] { TensorStore::open_directory(dir.path()); },
              throws({"neither model.safetensors nor model.safetensors.index.json"}));
  fs::copy(golden("tiny_tied_f32/model.safetensors"), dir.path() / "model.16bit.safetensors");
  EXPECT_THAT([&] { TensorStore::open_directory(dir.path()); },
              throws({"neither", "model.16bit.safetensors"}));
  EXPECT_THAT([&] { stored_bytes(dir.path()); }, throws({"neither", "model.16bit.safetensors"}));
  EXPECT_THAT([] { TensorStore::open_directory("/nonexistent"); },
              throws({"/nonexistent", "not a directory"}));
}

}  // namespace
}  // namespace sol
