/* Every process of a job adds its numbers to everybody's. Start it with any launcher: mpirun -n 2 ./hello */
#include <ringccl/ringccl.h>
#include <stdio.h>

int main(void) {
    ringComm_t comm;
    if (ringCommInitEnv(&comm, NULL) != ringSuccess) {
        fprintf(stderr, "%s\n", ringGetLastError(NULL));
        return 1;
    }
    int rank;
    ringCommUserRank(comm, &rank);
    float data[3] = {rank, rank + 10, rank + 100};
    if (ringAllReduce(data, data, 3, ringFloat32, ringSum, comm, NULL) != ringSuccess) {
        fprintf(stderr, "%s\n", ringGetLastError(comm));
        return 1;
    }
    printf("rank %d: %g %g %g\n", rank, data[0], data[1], data[2]);
    return ringCommDestroy(comm) != ringSuccess;
}
