// A rank of a hostile scene: makes its calls, suffers its fault, and says what it was told.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "board.h"
#include "scene.h"

namespace ringccl::test {

// What a rank has to say in the end.
struct Report {
    int rank = -1;
    int code = ringSuccess;        // of the first call that failed
    std::string text = {};         // the library's words for it
    int call = 0;                  // which one it was
    double answered_ms = -1;       // from the fault to that
    std::vector<int> failed = {};  // ringCommGetFailed, once it lists whom it should or after a while
    double abort_ms = -1;          // what ringCommAbort took
    std::string wrong = {};        // everything that must not be, whatever the fault
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, rank, code, text, call, answered_ms, failed, abort_ms, wrong)

class Rank {
public:
    Rank(const Scene& scene, Board& board, int rank)
        : scene_(scene), board_(board), me_{nullptr, rank, scene.ranks}, seat_(board.seats[rank]) {
        report_.rank = rank;
    }

    // From making the communicator to destroying it. A rank whose fault is deadly does not return.
    Report live();

private:
    bool suffers() const { return me_.rank == scene_.rank; }
    void complain(const std::string& what) { report_.wrong += what + "; "; }
    bool make();
    void work();
    bool content(int number) const;
    Answer step(int number);
    void hold_back(int number);
    bool suffer_before();
    void suffer();
    void look_back();
    void ask_who_failed();
    void shrink();
    void destroy();

    const Scene& scene_;
    Board& board_;
    Member me_;
    Board::Seat& seat_;
    Report report_;
    int skipped_ = 0;  // calls that the others have made and this rank has not, or the reverse
    bool left_ = false;
};

}  // namespace ringccl::test
