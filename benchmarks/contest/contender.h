// One library as the contest sees it. The program around it (contest.cc) is the same for all, so that all are measured alike;
// each library is one file that defines make_contender().
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace contest {

enum class Move { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all };
enum class Type { float32, bfloat16 };

constexpr size_t size_of(Type type) {
    return type == Type::float32 ? 4 : 2;
}

class Contender {
public:
    virtual ~Contender() = default;

    int rank() const { return rank_; }
    int size() const { return size_; }

    virtual bool can(Move move, Type type) const = 0;
    // Memory for one operand, aligned to a page; it lives as long as the process. In the library's own, if it was so asked.
    virtual std::byte* allocate(size_t bytes);
    // One blocking call, out of place, but a broadcast's root sends from where its own copy stays, as MPI has it; reductions
    // sum, rank 0 is the root. `count`: elements of the whole vector, which is what an all-gather and an all-to-all receive and
    // a reduce-scatter sends, so a multiple of size() for these.
    virtual void perform(Move move, Type type, const std::byte* send, std::byte* recv, size_t count) = 0;
    // What rank 0 has there is there on all ranks.
    virtual void share(void* data, size_t bytes) = 0;

protected:
    int rank_ = 0, size_ = 1;
};

// What a contender is told about its world.
struct World {
    int rank = 0, size = 1;
    std::string folder;           // empty at first, shared by the ranks; on memory
    std::string transport;        // "p2p" or "tcp"
    bool library_memory = false;  // allocate() is to be the library's
};

// Whether the program is started once per rank by a launcher of the library's, which knows rank and size; if not, the driver
// forks the ranks itself.
extern const bool kHasLauncher;

// Ends the process with a message if the library refuses.
std::unique_ptr<Contender> make_contender(const World& world);
[[noreturn]] void give_up(const std::string& why);

}  // namespace contest
