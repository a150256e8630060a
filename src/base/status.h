// Status: a result code and, on failure, one sentence. The sentence is written where the failure is first known and only
// passed on from there. Result<T>: a T or a failed Status.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ringccl/ringccl.h"

namespace ringccl {

class [[nodiscard]] Status {
public:
    Status() = default;
    Status(ringResult_t code, std::string text) : code_(code), text_(std::make_shared<const std::string>(std::move(text))) {}

    bool ok() const { return code_ == ringSuccess; }
    ringResult_t code() const { return code_; }
    const std::string& text() const {
        static const std::string none;
        return text_ ? *text_ : none;
    }

private:
    ringResult_t code_ = ringSuccess;
    std::shared_ptr<const std::string> text_;
};

template <class... Args>
Status failure(ringResult_t code, fmt::format_string<Args...> format, Args&&... args) {
    return {code, fmt::format(format, std::forward<Args>(args)...)};
}

// A failed system call: `what` names the call and its object; errno's words and number are added.
template <class... Args>
Status system_failure(int error, fmt::format_string<Args...> format, Args&&... args) {
    return {ringSystemError,
            fmt::format("{}: {} (errno {})", fmt::format(format, std::forward<Args>(args)...), std::strerror(error), error)};
}

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
    Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

    bool ok() const { return value_.has_value(); }
    const Status& status() const { return status_; }
    T& value() { return *value_; }
    const T& value() const { return *value_; }
    T take() { return std::move(*value_); }

private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace ringccl

// Leaves the enclosing function with the failure of `expression`, if it failed.
#define RINGCCL_TRY(expression)                                                      \
    do {                                                                             \
        if (::ringccl::Status status_ = (expression); !status_.ok()) return status_; \
    } while (0)

// Declares or assigns `target` from a Result, or leaves with its failure.
#define RINGCCL_JOIN2(a, b) a##b
#define RINGCCL_JOIN(a, b) RINGCCL_JOIN2(a, b)
#define RINGCCL_ASSIGN(target, expression) RINGCCL_ASSIGN2(target, expression, RINGCCL_JOIN(result_, __LINE__))
#define RINGCCL_ASSIGN2(target, expression, name) \
    auto name = (expression);                     \
    if (!name.ok()) return name.status();         \
    target = name.take()
