// One end of a lifeline's connection: messages in, messages out. Used on the monitor's thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "bootstrap/loop.h"
#include "bootstrap/message.h"

namespace ringccl {

class Line : public std::enable_shared_from_this<Line> {
public:
    using Hear = std::function<void(const nlohmann::json&)>;
    // `how`, if it was not the plain end of a connection: "lost its connection (Connection timed out)".
    using Ended = std::function<void(const std::string& how)>;

    // `silence`: how long the other end's host may leave bytes unconfirmed; 0: for ever.
    Line(Socket socket, std::chrono::milliseconds silence);
    ~Line();

    // `ended` is called once, unless close() comes before.
    void start(Hear hear, Ended ended);
    // Written before it returns if the kernel's buffer has room, as it nearly always has.
    void say(const nlohmann::json& message);
    // Nothing more will be said; the other end finds the end of the stream.
    void finish();
    // No callback from here on.
    void close();

private:
    static awaitable<void> listen(std::shared_ptr<Line> self);
    void flush();

    Socket socket_;
    Hear hear_;
    Ended ended_;
    std::deque<Frame> out_;
    size_t written_ = 0;  // of the first
    bool blocked_ = false;
    bool finished_ = false;
};

}  // namespace ringccl
