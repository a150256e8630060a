// The library's own threads take no signals: the user's handlers run in the user's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace ringccl {

// While it lives, signals are blocked in the calling thread, and so in the threads that it starts.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace ringccl
