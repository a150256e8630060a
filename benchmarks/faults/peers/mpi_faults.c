/* One rank of an MPI job that works until a fault ends it: mpi_faults DIR FAULT ERRORS VICTIM SEED, where FAULT is kill, stop,
 * count or nothing, and ERRORS is default (MPI_ERRORS_ARE_FATAL) or return (MPI_ERRORS_RETURN). */
#include <mpi.h>

#include "events.h"

static void stop_at(int result) {
    const long long at = events_now();
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(result, text, &length);
    events_answer(at, text);
}

int main(int argc, char** argv) {
    int rank, size;
    if (argc != 6) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    events_open(argv[1], rank);
    const char* fault = argv[2];
    const int victim = atoi(argv[4]) == rank;
    srand((unsigned)atoi(argv[5]));
    const int deviant = strcmp(fault, "count") == 0 ? kWarmCalls + rand() % 2 : -1;
    if (strcmp(argv[3], "return") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    float* send = malloc((kLarge + 1) * sizeof(float));
    float* recv = malloc((kLarge + 1) * sizeof(float));
    if (!send || !recv) return 3;
    for (int i = 0; i <= kLarge; ++i) send[i] = 1;
    const int bounded = deviant >= 0 || strcmp(fault, "nothing") == 0;
    for (int call = 0; !bounded || call < kWarmCalls + kCallsAfterDeviation; ++call) {
        if (victim && call == kWarmCalls && !bounded) events_strike_in(rand() % 40000, fault[0] == 'k' ? SIGKILL : SIGSTOP);
        const int count = call % 2 ? kLarge : kSmall;
        const int deviates = victim && call == deviant;
        recv[0] = recv[count - 1] = 0;
        if (deviates) events_say("fault", events_now(), NULL);
        const int result = MPI_Allreduce(send, recv, count + deviates, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (result != MPI_SUCCESS) stop_at(result);
        if (recv[0] != (float)size || recv[count - 1] != (float)size) events_say("wrong", call, NULL);
    }
    events_say("done", events_now(), NULL);
    MPI_Finalize();
    return 0;
}
