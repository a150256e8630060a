// The stage: slices keep their place until every link they were offered to has taken them, and places are used again in order.
#include "engine/stage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "device/shared_block.h"

namespace ringccl {
namespace {

// A link whose peer takes when the test says so.
class SlowLink final : public SendLink {
public:
    bool takes(const Source&) const override { return true; }
    bool ready() override { return true; }
    void offer(const Fingerprint&, const Source&) override { ++offered_; }
    uint64_t offered() const override { return offered_; }
    uint64_t taken() override { return taken_; }
    bool flushed() const override { return true; }
    const Status& status() override { return well_; }

    void take(uint64_t count) { taken_ = std::min(offered_, taken_ + count); }

private:
    uint64_t offered_ = 0, taken_ = 0;
    Status well_;
};

class StageTest : public testing::Test {
protected:
    static constexpr size_t kBytes = 4096;

    std::byte* place(size_t bytes, std::vector<SendLink*> links) {
        std::byte* at = stage_.allocate(bytes);
        if (at == nullptr) return nullptr;
        stage_.commit();
        for (SendLink* link : links) {
            link->offer({}, {});
            stage_.await(*link, link->offered());
        }
        return at;
    }

    std::shared_ptr<SharedBlock> block_ = SharedBlock::create("test", 2 * kBytes).take();
    Stage stage_{block_.get(), kBytes, kBytes};
    SlowLink a_, b_;
};

TEST_F(StageTest, ServesFromItsPartOfTheBlock) {
    std::byte* at = place(kBytes, {&a_});
    EXPECT_EQ(at, block_->data() + kBytes);
    EXPECT_EQ(stage_.block(), block_.get());
}

TEST_F(StageTest, RefusesMoreThanItHolds) {
    EXPECT_EQ(stage_.allocate(kBytes + 1), nullptr);
}

TEST_F(StageTest, WaitsForEveryLink) {
    ASSERT_NE(place(kBytes, {&a_, &b_}), nullptr);
    a_.take(1);
    EXPECT_EQ(place(1, {&a_}), nullptr);
    b_.take(1);
    EXPECT_NE(place(1, {&a_}), nullptr);
}

TEST_F(StageTest, AnUnusedAllocationCostsNothing) {
    ASSERT_NE(stage_.allocate(kBytes), nullptr);  // and no commit
    EXPECT_NE(place(kBytes, {&a_}), nullptr);
}

TEST_F(StageTest, ASliceIsInOnePiece) {
    ASSERT_NE(place(3000, {&a_}), nullptr);
    a_.take(1);
    std::byte* at = place(3000, {&a_});  // does not fit behind the first
    ASSERT_NE(at, nullptr);
    EXPECT_LE(at + 3000, block_->data() + 2 * kBytes);
    EXPECT_GE(at, block_->data() + kBytes);
}

// Random sizes and takers: what is handed out never overlaps what somebody may still read, and everything fits in the end.
// Fewer pages and cache lines for small messages.
TEST_F(StageTest, StartsOverWhenAllHasBeenTaken) {
    std::ptrdiff_t farthest = 0;
    for (int i = 0; i < 1000; ++i) {
        std::byte* at = place(100, {&a_});
        ASSERT_NE(at, nullptr);
        farthest = std::max(farthest, at - (block_->data() + kBytes));
        a_.take(1);
    }
    EXPECT_LE(farthest, static_cast<std::ptrdiff_t>(kBytes / 8));
    // And is as large as before for peers that take their time.
    for (size_t i = 0; i < kBytes / 128 - 2; ++i) ASSERT_NE(place(100, {&a_}), nullptr) << i;
}

TEST_F(StageTest, NeverHandsOutWhatIsStillRead) {
    std::mt19937 random(7);
    struct Held {
        std::byte* at;
        size_t bytes;
        uint64_t a, b;  // slice numbers at the links, 0 if not offered
    };
    std::vector<Held> held;
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        const size_t bytes = random() % 3 == 0 ? random() % kBytes + 1 : random() % 300 + 1;
        const bool to_a = random() % 2 == 0, to_b = !to_a || random() % 2 == 0;
        std::vector<SendLink*> links;
        if (to_a) links.push_back(&a_);
        if (to_b) links.push_back(&b_);
        if (std::byte* at = place(bytes, links)) {
            for (const Held& h : held) EXPECT_TRUE(at + bytes <= h.at || h.at + h.bytes <= at);
            held.push_back({at, bytes, to_a ? a_.offered() : 0, to_b ? b_.offered() : 0});
        } else {
            ++refused;
        }
        if (random() % 3 != 0) (random() % 2 ? a_ : b_).take(random() % 3);
        std::erase_if(held, [&](const Held& h) { return h.a <= a_.taken() && h.b <= b_.taken(); });
    }
    EXPECT_GT(refused, 0);
    a_.take(UINT32_MAX);
    b_.take(UINT32_MAX);
    EXPECT_NE(place(kBytes, {&a_}), nullptr);
}

}  // namespace
}  // namespace ringccl
