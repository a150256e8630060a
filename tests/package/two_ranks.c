/* A small C program against the installed library: one thread plays two ranks inside a group. */
#include <ringccl/ringccl.h>
#include <stdio.h>

static int failed(ringResult_t result, const char* call) {
    if (result == ringSuccess) return 0;
    fprintf(stderr, "%s: %s: %s\n", call, ringGetErrorString(result), ringGetLastError(NULL));
    return 1;
}

int main(void) {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    ringComm_t comms[2];
    float send[2][3] = {{1, 2, 3}, {10, 20, 30}}, recv[2][3], all[2][6];
    int version, rank, i;

    if (failed(ringGetVersion(&version), "ringGetVersion")) return 1;
    if (version != RINGCCL_VERSION) {
        fprintf(stderr, "the header is of version %d, the library of %d\n", RINGCCL_VERSION, version);
        return 1;
    }
    config.timeoutMs = 20000;
    if (failed(ringCommInitAll(comms, 2, &config), "ringCommInitAll")) return 1;
    ringGroupStart();
    for (rank = 0; rank < 2; ++rank) {
        ringAllReduce(send[rank], recv[rank], 3, ringFloat32, ringSum, comms[rank], NULL);
        allGather(send[rank], all[rank], 3, ringFloat32, comms[rank], NULL);
    }
    if (failed(ringGroupEnd(), "ringGroupEnd")) return 1;
    for (rank = 0; rank < 2; ++rank) {
        for (i = 0; i < 3; ++i) {
            if (recv[rank][i] != send[0][i] + send[1][i] || all[rank][i] != send[0][i] || all[rank][3 + i] != send[1][i]) {
                fprintf(stderr, "rank %d: element %d is wrong\n", rank, i);
                return 1;
            }
        }
        if (failed(ringCommDestroy(comms[rank]), "ringCommDestroy")) return 1;
    }
    puts("two ranks agree");
    return 0;
}
