// Carries a scene out: forks its processes, does what has to be done from outside, and gathers what the ranks report.
#pragma once

#include <string>
#include <vector>

#include "rank.h"
#include "scene.h"

namespace ringccl::test {

struct Outcome {
    struct Process {
        bool ended = false;              // by itself, or by its fault
        std::string hang = {};           // else: where its ranks were
        int signal = 0;                  // that ended it
        std::vector<Report> ranks = {};  // empty if it did not live to report
        std::string left = {};           // what it still held when its communicators were destroyed
    };
    std::vector<Process> processes;

    const Report* report_of(int rank) const;
    // The longest time from the fault to an answer, in ms; 0 if there was none.
    double worst_ms() const;
};

// Returns after `limit_s` seconds at the latest, and kills what is left then.
Outcome run_job(const Scene& scene, int limit_s);

// Whether every rank got the answer that the scene's fault allows, the survivors could go on, and nothing is left.
Verdict judge(const Scene& scene, const Outcome& outcome);

}  // namespace ringccl::test
