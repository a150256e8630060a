/* With RINGCCL_NO_SHORT_NAMES the two short names belong to the program. */
#include <ringccl/ringccl.h>

static int scatterReduce(void) {
    return 1;
}
static int allGather(void) {
    return 2;
}

int main(void) {
    return scatterReduce() + allGather() == 3 ? 0 : 1;
}
