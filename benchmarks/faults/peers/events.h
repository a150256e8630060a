/* What a rank of another library's job tells measure.py, and what it does to itself. Each rank appends lines to a file of its
 * own, so that nothing is lost when the job is torn down: start PID | fault NS | answer NS TEXT | wrong CALL | done NS NS is
 * CLOCK_MONOTONIC in nanoseconds, the same for all processes. */
#ifndef RINGCCL_PEERS_EVENTS_H
#define RINGCCL_PEERS_EVENTS_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The same work as fault_bench's: allReduces of 1 KiB and of 4 MiB in turn. */
enum { kSmall = 256, kLarge = 1 << 20, kWarmCalls = 4, kCallsAfterDeviation = 50 };

static int events_fd = -1;
static int events_signal = 0; /* what the alarm does to this process */

static inline long long events_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* One line, by one write; callable from a signal handler when `text` is NULL. */
static inline void events_say(const char* word, long long number, const char* text) {
    char line[1200], digits[24];
    size_t length = 0, count = 0;
    for (; *word && length < 32; ++word) line[length++] = *word;
    line[length++] = ' ';
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0) line[length++] = digits[--count];
    if (text) {
        line[length++] = ' ';
        for (; *text && length < sizeof(line) - 1; ++text) line[length++] = *text == '\n' ? ' ' : *text;
    }
    line[length++] = '\n';
    if (write(events_fd, line, length) < 0) _exit(3);
}

static inline void events_open(const char* folder, int rank) {
    char path[512];
    snprintf(path, sizeof(path), "%s/rank%d", folder, rank);
    events_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (events_fd < 0) {
        perror(path);
        exit(3);
    }
    events_say("start", getpid(), NULL);
}

static inline void events_strike(int unused) {
    (void)unused;
    events_say("fault", events_now(), NULL);
    kill(getpid(), events_signal);
}

/* In `us` microseconds this process gets `signal_number`, wherever it is then. */
static inline void events_strike_in(int us, int signal_number) {
    struct itimerval when;
    memset(&when, 0, sizeof(when));
    when.it_value.tv_usec = us + 1;
    events_signal = signal_number;
    signal(SIGALRM, events_strike);
    setitimer(ITIMER_REAL, &when, NULL);
}

/* After an error: this rank calls no more and waits until measure.py ends it, so that what the others do is the library's
 * doing. */
static inline void events_answer(long long at, const char* text) {
    events_say("answer", at, text);
    for (;;) pause();
}

#endif
