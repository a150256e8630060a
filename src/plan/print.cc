// A plan for people. Every message is put into the step in which it can leave at the earliest, counted in messages that had to
// arrive before it; one row per step and per thing that the receiver does with it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

constexpr int kManyRanks = 16;     // beyond this a table is abridged:
constexpr int kSendersShown = 4;   // to what so many ranks send,
constexpr size_t kItemsShown = 6;  // and to so many things on a line
constexpr size_t kColumns = 12;    // pairs that fit side by side

using Pair = std::pair<int, int>;  // from, to

struct Message {
    int step = 0;
    int chunk = -1;
    std::string deed;  // what the receiver does
};

// Messages of each lane, by pair of ranks.
using Lane = std::map<Pair, std::vector<Message>>;

std::string deed_of(const Step& step, Op op) {
    std::vector<std::string> deeds;
    if (step.reduce) {
        const char* verb = op == Op::sum || op == Op::avg || op == Op::premul ? "adds" : "combines";
        const char* what = step.sources.size() > 1 ? "all and its own" : "its own";
        deeds.push_back(fmt::format("{} {}{}", verb, what, step.finish ? ": complete" : ""));
    }
    if (step.dest.exists()) deeds.push_back("keeps it");
    if (!step.sinks.empty()) deeds.push_back("passes it on");
    return deeds.empty() ? "has heard" : fmt::format("{}", fmt::join(deeds, ", "));
}

// Runs the plans, whole chunks at a time, to find out when each message leaves.
std::map<int, Lane> messages_of(const std::vector<Plan>& plans, Op op) {
    struct Cursor {
        int rank;
        const Channel* channel;
        size_t next = 0;
        int heard = 0;  // latest step whose message this channel has taken
    };
    std::vector<Cursor> cursors;
    for (size_t rank = 0; rank < plans.size(); ++rank) {
        for (const Channel& channel : plans[rank].channels) cursors.push_back({static_cast<int>(rank), &channel});
    }
    std::map<int, Lane> lanes;
    std::map<std::tuple<int, int, int>, size_t> taken;  // lane, from, to
    for (bool moved = true; moved;) {
        moved = false;
        for (Cursor& cursor : cursors) {
            Lane& lane = lanes[cursor.channel->lane];
            for (; cursor.next < cursor.channel->steps.size(); ++cursor.next, moved = true) {
                const Step& step = cursor.channel->steps[cursor.next];
                auto arrived = [&](int from) {
                    return lane[{from, cursor.rank}].size() > taken[{cursor.channel->lane, from, cursor.rank}];
                };
                if (!std::all_of(step.sources.begin(), step.sources.end(), arrived)) break;
                for (int from : step.sources) {
                    Message& message = lane[{from, cursor.rank}][taken[{cursor.channel->lane, from, cursor.rank}]++];
                    message.deed = deed_of(step, op);
                    cursor.heard = std::max(cursor.heard, message.step);
                }
                for (int to : step.sinks) lane[{cursor.rank, to}].push_back({cursor.heard + 1, step.chunk, ""});
            }
        }
    }
    return lanes;
}

// Rows of the table: (step, deed) -> the chunks that each pair exchanges.
using Rows = std::map<std::pair<int, std::string>, std::map<Pair, std::string>>;

Rows rows_of(const Lane& lane, int senders) {
    Rows rows;
    for (const auto& [pair, messages] : lane) {
        if (pair.first >= senders) continue;
        for (const Message& message : messages) {
            std::string& cell = rows[{message.step, message.deed}][pair];
            if (!cell.empty()) cell += ",";
            cell += message.chunk < 0 ? "all" : std::to_string(message.chunk);
        }
    }
    return rows;
}

std::string joined(const std::vector<std::string>& items, const char* separator, bool abridged) {
    const bool cut = abridged && items.size() > kItemsShown;
    const auto end = items.begin() + static_cast<ptrdiff_t>(cut ? kItemsShown : items.size());
    return fmt::format("{}{}", fmt::join(items.begin(), end, separator), cut ? " ..." : "");
}

// One column per pair, a chunk number in it: the classic picture.
std::string columns_of(const std::map<Pair, std::string>& cells, const std::set<Pair>& pairs) {
    std::string text;
    for (const Pair& pair : pairs) {
        const auto cell = cells.find(pair);
        text += fmt::format("{:^8}", cell == cells.end() ? "" : cell->second);
    }
    return text;
}

// One line per sender, "0: chunk 1 to 1, chunk 2 to 2": for plans in which too many pairs speak to put them side by side.
std::string lines_of(const std::map<Pair, std::string>& cells, int size, bool abridged) {
    using Name = std::pair<size_t, std::string>;                      // its length first: 2 comes before 10
    std::map<int, std::map<Name, std::vector<std::string>>> senders;  // sender -> chunk -> receivers
    for (const auto& [pair, cell] : cells) senders[pair.first][{cell.size(), cell}].push_back(std::to_string(pair.second));
    std::string text;
    for (const auto& [sender, chunks] : senders) {
        std::vector<std::string> items;
        for (const auto& [chunk, receivers] : chunks) {
            const bool everybody = receivers.size() == static_cast<size_t>(size) - 1 && size > 2;
            items.push_back(fmt::format("{}{} to {}", chunk.second == "all" ? "" : "chunk ", chunk.second,
                                        everybody ? "everybody" : joined(receivers, " ", abridged)));
        }
        text += fmt::format("{}rank {}: {}\n", text.empty() ? "" : "        ", sender, joined(items, ", ", abridged));
    }
    return text;
}

std::string table_of(const Rows& rows, int size) {
    const bool abridged = size > kManyRanks;
    std::set<Pair> pairs;
    for (const auto& [key, cells] : rows) {
        for (const auto& [pair, cell] : cells) pairs.insert(pair);
    }
    const bool columns = pairs.size() <= kColumns;
    std::string text = "  step  ";
    if (columns) {
        for (const auto& [from, to] : pairs) text += fmt::format("{:^8}", fmt::format("{} -> {}", from, to));
        text += "  the receiver\n";
    } else {
        text += "who sends what\n";
    }
    int run = 0;  // rows before this one in which receivers do the same
    for (auto row = rows.begin(); row != rows.end(); ++row) {
        const auto& [step, deed] = row->first;
        run = row != rows.begin() && std::prev(row)->first.second == deed ? run + 1 : 0;
        const bool last = std::next(row) == rows.end() || std::next(row)->first.second != deed;
        if (abridged && run >= 2 && !last) {
            if (run == 2) text += "   ...\n";
        } else if (columns) {
            text += fmt::format("  {:>4}  {}  {}\n", step, columns_of(row->second, pairs), deed);
        } else {
            text += fmt::format("  {:>4}  {}        the receiver {}\n", step, lines_of(row->second, size, abridged), deed);
        }
    }
    return text;
}

std::string between(size_t least, size_t most) {
    return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

// "chunks 0 to 4 of 4 elements"
std::string chunks_of_lane(const std::vector<Plan>& plans, int lane) {
    int highest = -1;
    size_t least = SIZE_MAX, most = 0;
    for (const Plan& plan : plans) {
        for (const Channel& channel : plan.channels) {
            if (channel.lane != lane) continue;
            for (const Step& step : channel.steps) {
                highest = std::max(highest, step.chunk);
                least = std::min(least, step.count), most = std::max(most, step.count);
            }
        }
    }
    if (highest < 0) return most == 0 ? "empty messages" : fmt::format("all {} elements at once", most);
    return fmt::format("chunks of {} elements", between(least, most));
}

size_t elements_sent(const Plan& plan) {
    size_t sum = 0;
    for (const Channel& channel : plan.channels) {
        for (const Step& step : channel.steps) sum += step.count * step.sinks.size();
    }
    return sum;
}

}  // namespace

std::string print_plan(const Shape& shape, const std::vector<Plan>& plans) {
    const int size = static_cast<int>(plans.size());
    if (size == 0) return "";
    const std::string reduction = shape.op == Op::none ? "" : fmt::format(", {}", op_name(shape.op));
    const std::string what =
        shape.kind == Kind::barrier ? "" : fmt::format(" of {} {} elements{}", shape.count, type_name(shape.type), reduction);
    std::string text =
        fmt::format("{} {}{}: {} rank{}\n", plans[0].algorithm, kind_name(shape.kind), what, size, size == 1 ? "" : "s");
    const std::map<int, Lane> lanes = messages_of(plans, shape.op);
    int steps = 0;
    std::string first_table;
    for (const auto& [number, lane] : lanes) {
        for (const auto& [pair, messages] : lane) {
            for (const Message& message : messages) steps = std::max(steps, message.step);
        }
        const Rows rows = rows_of(lane, size > kManyRanks ? kSendersShown : size);
        if (rows.empty()) continue;
        const std::string table = table_of(rows, size);
        text += fmt::format("\nlane {}: {}", number, chunks_of_lane(plans, number));
        if (table == first_table) {
            text += ", the same steps\n";
        } else {
            text += "\n" + table;
        }
        if (first_table.empty()) first_table = table;
    }
    if (steps == 0) return text + "\nNothing travels.\n";
    if (size > kManyRanks) text += fmt::format("\nAbridged: only what ranks 0 to {} send.\n", kSendersShown - 1);

    size_t least = SIZE_MAX, most = 0;
    for (const Plan& plan : plans) {
        least = std::min(least, elements_sent(plan));
        most = std::max(most, elements_sent(plan));
    }
    return text + fmt::format("\nEach rank sends {} elements, in {} dependent step{}.\n", between(least, most), steps,
                              steps == 1 ? "" : "s");
}

}  // namespace ringccl
