// What launchers put into the environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher.h"
#include "bootstrap/unique_id.h"

namespace ringccl {
namespace {

using testing::HasSubstr;

class Environment : public testing::Test {
protected:
    Environment() { clear(); }
    ~Environment() override { clear(); }

    using Variables = std::map<std::string, std::string>;
    static void set(const Variables& variables) {
        clear();
        for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    }
    static Job job(const Variables& variables) {
        set(variables);
        auto found = job_in_environment();
        EXPECT_TRUE(found.ok()) << found.status().text();
        return found.ok() ? found.value() : Job();
    }
    static Status complaint(const Variables& variables) {
        set(variables);
        return job_in_environment().status();
    }
    static Settings settings() {
        Settings made;
        made.init_timeout_ms = 5000;
        return made;
    }

private:
    static void clear() {
        for (const char* name : {"RINGCCL_RANK",
                                 "RINGCCL_WORLD_SIZE",
                                 "RINGCCL_ROOT",
                                 "RINGCCL_SECRET",
                                 "RANK",
                                 "WORLD_SIZE",
                                 "MASTER_ADDR",
                                 "MASTER_PORT",
                                 "TORCHELASTIC_RUN_ID",
                                 "TORCHELASTIC_RESTART_COUNT",
                                 "OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "PMIX_NAMESPACE",
                                 "PMI_RANK",
                                 "PMI_SIZE",
                                 "MPI_LOCALNRANKS",
                                 "SLURM_PROCID",
                                 "SLURM_NTASKS",
                                 "SLURM_STEP_NUM_TASKS",
                                 "SLURM_JOB_ID",
                                 "SLURM_STEP_ID",
                                 "SLURM_STEP_NODELIST",
                                 "SLURM_JOB_NODELIST",
                                 "SLURM_LAUNCH_NODE_IPADDR",
                                 "SLURM_STEP_NUM_NODES",
                                 "SLURM_NNODES"})
            ::unsetenv(name);
    }
};

TEST_F(Environment, OwnVariables) {
    Job found = job({{"RINGCCL_RANK", "3"}, {"RINGCCL_WORLD_SIZE", "8"}, {"RINGCCL_ROOT", "[fd00::1]:4000"}});
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.size, 8);
    EXPECT_EQ(found.host, "fd00::1");
    EXPECT_EQ(found.port, 4000);
}

TEST_F(Environment, Torchrun) {
    Environment::Variables variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
    Job found = job(variables);
    EXPECT_EQ(found.launcher, "torchrun");
    EXPECT_EQ(found.host, "node7");
    EXPECT_EQ(found.port, 0);  // torch's store has MASTER_PORT
    variables["RANK"] = "0";
    EXPECT_EQ(job(variables).identity, found.identity);
    variables["TORCHELASTIC_RESTART_COUNT"] = "1";
    EXPECT_NE(job(variables).identity, found.identity);
}

TEST_F(Environment, OpenMpi) {
    Environment::Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                                        {"OMPI_COMM_WORLD_SIZE", "4"},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                        {"PMIX_NAMESPACE", "12.1"}};
    EXPECT_EQ(job(variables).launcher, "Open MPI");
    EXPECT_EQ(job(variables).host, "localhost");
    variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
    EXPECT_EQ(job(variables).host, "");
    Status status = placement_from_environment(settings()).status();
    EXPECT_EQ(status.code(), ringInvalidUsage);
    EXPECT_THAT(status.text(), HasSubstr("RINGCCL_ROOT"));
}

// Hydra's processes know their job by the ancestor that started them, whose part the test plays.
TEST_F(Environment, Mpich) {
    Environment::Variables local = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
    EXPECT_EQ(job(local).launcher, "MPICH");
    EXPECT_EQ(job(local).host, "");
    EXPECT_EQ(job({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}}).host, "");

    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    ::prctl(PR_SET_NAME, "hydra_pmi (x) y");
    pid_t child = ::fork();
    if (child == 0) {
        Job found = job(local);
        bool right = found.host == "localhost" && found.identity.starts_with("hydra=" + std::to_string(::getppid()) + "@");
        ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    ::prctl(PR_SET_NAME, name);
    EXPECT_EQ(status, 0);
}

TEST_F(Environment, Slurm) {
    Environment::Variables variables = {{"SLURM_PROCID", "2"},
                                        {"SLURM_NTASKS", "4"},
                                        {"SLURM_JOB_ID", "77"},
                                        {"SLURM_STEP_ID", "0"},
                                        {"SLURM_NNODES", "2"},
                                        {"SLURM_JOB_NODELIST", "node[03-05],gpu1"},
                                        {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}};
    EXPECT_EQ(job(variables).launcher, "Slurm");
    EXPECT_EQ(job(variables).host, "node03");
    variables["SLURM_NNODES"] = "1";
    EXPECT_EQ(job(variables).host, "localhost");
    // srun --mpi=pmi2
    variables["SLURM_NNODES"] = "2";
    variables["PMI_RANK"] = "2";
    variables["PMI_SIZE"] = "4";
    EXPECT_EQ(job(variables).host, "node03");
}

TEST_F(Environment, TheInnermostLauncherCountsAndOwnVariablesWin) {
    Environment::Variables variables = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
    EXPECT_EQ(job(variables).launcher, "MPICH");
    variables["RANK"] = "3";
    variables["WORLD_SIZE"] = "4";
    EXPECT_EQ(job(variables).launcher, "torchrun");
    variables["RINGCCL_RANK"] = "5";
    variables["RINGCCL_WORLD_SIZE"] = "6";
    EXPECT_EQ(job(variables).rank, 5);
    auto place = place_in_launcher();
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(place.value().size, 6);
}

TEST_F(Environment, MistakesAreNamed) {
    EXPECT_THAT(complaint({}).text(), HasSubstr("RINGCCL_RANK"));
    EXPECT_THAT(complaint({{"RINGCCL_RANK", "0"}}).text(), HasSubstr("RINGCCL_WORLD_SIZE is not"));
    EXPECT_THAT(complaint({{"RINGCCL_WORLD_SIZE", "2"}}).text(), HasSubstr("RINGCCL_RANK is not"));
    for (const char* rank : {"abc", "-1", "2", "1x", " 1", "1099511627776"}) {
        Status status = complaint({{"RINGCCL_RANK", rank}, {"RINGCCL_WORLD_SIZE", "2"}});
        EXPECT_EQ(status.code(), ringInvalidUsage) << rank;
        EXPECT_THAT(status.text(), HasSubstr(std::string("RINGCCL_RANK=") + rank));
    }
    EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "0"}}).text(), HasSubstr("WORLD_SIZE=0"));
    for (const char* root : {"host", "host:", "host:0", "host:65536", ":4000", "fd00::1:4000", "[]:1", "host:1x"})
        EXPECT_THAT(complaint({{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", root}}).text(),
                    HasSubstr(std::string("RINGCCL_ROOT=") + root));
}

TEST(Nodelist, FirstHost) {
    EXPECT_EQ(first_host("node1"), "node1");
    EXPECT_EQ(first_host("a,b"), "a");
    EXPECT_EQ(first_host("node[01-04,07]"), "node01");
    EXPECT_EQ(first_host("rack[2,5]node[03-05]-ib,x"), "rack2node03-ib");
    EXPECT_EQ(first_host("node["), "node");
    EXPECT_EQ(first_host(""), "");
}

// Several calls in a row in one process stand for several communicators of one job.
TEST_F(Environment, RanksMeetWhereTheEnvironmentSays) {
    set({{"RANK", "0"},
         {"WORLD_SIZE", "1"},
         {"MASTER_ADDR", "localhost"},
         {"TORCHELASTIC_RUN_ID", std::to_string(::getpid())}});
    const std::atomic<bool> never{false};
    for (int call = 0; call < 3; ++call) {
        auto placed = placement_from_environment(settings());
        ASSERT_TRUE(placed.ok()) << placed.status().text();
        auto joined =
            Bootstrap::join(placed.value().id, 0, 1, "x", settings(), Deadline::after(std::chrono::seconds(5)), never);
        EXPECT_TRUE(joined.ok()) << joined.status().text();
    }
}

// Rank 1 comes before rank 0 has opened the meeting point, and the first port is taken.
TEST_F(Environment, TheOtherRanksFindThePortThatRankZeroGot) {
    Place place{{}, "localhost", 0, 4, 0};
    ASSERT_TRUE(fill_random(place.secret).ok());
    place.port = static_cast<uint16_t>(20000 + (place.secret[0] << 8 | place.secret[1]) % 12000);
    Place squatter = place;
    squatter.call = 1;  // another meeting of the same job
    squatter.ports = 1;
    ASSERT_TRUE(open_meeting(squatter, settings()).ok());

    const std::atomic<bool> never{false};
    auto join = [&](const ringUniqueId& id, int rank) {
        auto joined = Bootstrap::join(id, rank, 2, "", settings(), Deadline::after(std::chrono::seconds(5)), never);
        EXPECT_TRUE(joined.ok()) << joined.status().text();
    };
    std::thread other([&] { join(id_of(place, settings()).value(), 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto id = open_meeting(place, settings());
    ASSERT_TRUE(id.ok()) << id.status().text();
    EXPECT_NE(unpack(id.value()).value().port, place.port);
    join(id.value(), 0);
    other.join();
}

TEST_F(Environment, AHostThatDoesNotExistIsNamed) {
    Settings quick;
    quick.init_timeout_ms = 100;
    Status status = id_of({{}, "no-such-host.invalid", 4000, 1, 0}, quick).status();
    EXPECT_EQ(status.code(), ringInvalidUsage);
    EXPECT_THAT(status.text(), HasSubstr("no-such-host.invalid"));
}

}  // namespace
}  // namespace ringccl
