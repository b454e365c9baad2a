#include "training/rank_environment.h"

#include <cstdlib>
#include <map>
#include <vector>

#include "throws.h"

namespace sol::test {
namespace {

// Sets exactly these of the variables that launchers set, and puts the old ones back.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
          "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}) {
      if (const char* old = std::getenv(name)) old_[name] = old;
      unsetenv(name);
      names_.push_back(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : old_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> old_;
};

TEST(RankEnvironmentTest, NothingSetIsAProcessOnItsOwn) {
  const Environment environment({});
  EXPECT_FALSE(rank_environment().has_value());
}

TEST(RankEnvironmentTest, ReadsWhatTorchrunSets) {
  const Environment environment({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "trainer-0"},
                                 {"MASTER_PORT", "1234"}});
  const auto found = rank_environment();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 5);
  EXPECT_EQ(found->size, 8);
  EXPECT_EQ(found->local_rank, 1);
  EXPECT_EQ(found->local_size, 4);
  EXPECT_EQ(found->address, "trainer-0");
  EXPECT_EQ(found->port, 1234);
}

// torchrun with --master_addr listens there itself, and says so.
TEST(RankEnvironmentTest, SeesWhoListens) {
  const std::map<std::string, std::string> rank{
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "trainer-0"}, {"MASTER_PORT", "1234"}};
  const auto found_with = [&](const std::map<std::string, std::string>& more) {
    auto all = rank;
    all.insert(more.begin(), more.end());
    const Environment environment(all);
    return rank_environment().value();
  };
  EXPECT_FALSE(found_with({}).launcher_listens);
  EXPECT_FALSE(found_with({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).launcher_listens);
  const RankEnvironment again =
      found_with({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "3"}});
  EXPECT_TRUE(again.launcher_listens);
  EXPECT_EQ(again.attempt, 3);
}

TEST(RankEnvironmentTest, ReadsWhatMpirunSets) {
  {
    const Environment environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    const auto found = rank_environment();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->rank, 1);
    EXPECT_EQ(found->local_size, 2);
    EXPECT_EQ(found->address, "127.0.0.1");
    EXPECT_EQ(found->port, 29500);
  }
  const Environment environment({{"PMI_RANK", "2"},
                                 {"PMI_SIZE", "3"},
                                 {"MPI_LOCALRANKID", "0"},
                                 {"MPI_LOCALNRANKS", "1"},
                                 {"MASTER_ADDR", "10.0.0.1"}});
  const auto found = rank_environment();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->size, 3);
  EXPECT_EQ(found->local_size, 1);
  EXPECT_EQ(found->address, "10.0.0.1");
}

TEST(RankEnvironmentTest, NamesTheVariableThatIsWrong) {
  using Values = std::map<std::string, std::string>;
  const std::vector<std::pair<Values, std::string>> cases{
      {{{"RANK", "0"}}, "WORLD_SIZE is missing"},
      {{{"WORLD_SIZE", "2"}}, "RANK is missing"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK = 2"},
      {{{"RANK", "0x"}, {"WORLD_SIZE", "2"}}, "RANK = 0x"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE = 0"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "LOCAL_WORLD_SIZE is missing"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "99999"}},
       "MASTER_PORT = 99999"}};
  for (const auto& [values, part] : cases) {
    const Environment environment(values);
    EXPECT_THAT([] { (void)rank_environment(); }, throws({part}));
  }
}

TEST(RankEnvironmentTest, AnInterfaceThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_NO_THROW(require_known_interface("lo"));
  EXPECT_THAT([] { require_known_interface("no-such-if0"); },
              throws({"GLOO_SOCKET_IFNAME = no-such-if0", "interfaces: ", "lo"}));
}

}  // namespace
}  // namespace sol::test
