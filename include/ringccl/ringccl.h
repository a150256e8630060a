/* ringccl: collective communication for data-parallel work, in the manner of NCCL.
 *
 * This header is the reference manual. It is C99.
 *
 * Words.  A *communicator* joins `world size` ranks, numbered 0 .. world size - 1. A *collective* call must be made by
 * every rank of the communicator, in the same order, with the same arguments except where said otherwise; a *local* call
 * concerns the caller alone. Counts are in elements, never bytes, unless the name says bytes.
 *
 * Chapters: 1 results  2 types  3 making and ending communicators  4 deriving and asking  5 memory  6 operations
 *           7 collectives  8 point to point  9 groups  10 host streams  11 statistics and records
 *
 * Threads. Every function may be called from any thread. Two threads may use two communicators at the same time. Calls on
 * one communicator are carried out one after the other, in the order in which they enter the library; if two threads race
 * on one communicator, it is for the caller to see that every rank ends up with the same order.
 * fork(): a communicator belongs to the process that made it; in a forked child every call on it is ringInvalidUsage.
 *
 * Errors. No exception leaves the library and nothing is written to a result argument unless the call succeeded. After a
 * call that did not return ringSuccess, ringGetLastError() says in one sentence what happened, where, and what to try.
 */
#ifndef RINGCCL_H
#define RINGCCL_H

#include <stddef.h>
#include <stdint.h>

#define RINGCCL_MAJOR 0
#define RINGCCL_MINOR 1
#define RINGCCL_PATCH 0
/* One number that grows with every release: 0.1.0 is 100, 1.2.3 is 10203. */
#define RINGCCL_VERSION (RINGCCL_MAJOR * 10000 + RINGCCL_MINOR * 100 + RINGCCL_PATCH)

#if defined(__GNUC__)
#define RINGCCL_API __attribute__((visibility("default")))
#else
#define RINGCCL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Results ------------------------------------------------------------------------------------------------- */

/* What a call answers. The values never change; later versions only add. 0 to 7 mean what NCCL's mean. */
typedef enum {
    ringSuccess = 0,
    ringUnhandledCudaError = 1, /* a CUDA call failed; the text names the call, the device and CUDA's own words */
    ringSystemError = 2,        /* a system call failed (memory, descriptors, sockets); the text has errno and the object */
    ringInternalError = 3,      /* a bug in ringccl; please report it with the text */
    ringInvalidArgument = 4,    /* one argument is wrong by itself: a null or overlapping buffer, a type, op, root, count */
    ringInvalidUsage = 5,       /* the call does not fit the state: destroyed communicator, unbalanced group, bad setting */
    ringRemoteError = 6,        /* another rank failed, died or aborted; the text names it */
    ringInProgress = 7,         /* not an error: asynchronous work is still running */
    ringTimeout = 8,            /* nothing moved for the configured time; the text lists who did not arrive */
    ringMismatch = 9            /* the ranks do not agree on the operation; the text names two ranks and both values */
} ringResult_t;

/* The version of the library that is loaded, as RINGCCL_VERSION counts. Local.
 * ringInvalidArgument: version is NULL. */
RINGCCL_API ringResult_t ringGetVersion(int* version);

/* The name and meaning of a result code, e.g. "ringTimeout: nothing moved for the configured time". Local; never NULL; the
 * string is static. */
RINGCCL_API const char* ringGetErrorString(ringResult_t result);

/* ---- 2. Types --------------------------------------------------------------------------------------------------- */

/* A communicator. The value is a ticket, not an address: a stale or damaged one is noticed, not followed. */
typedef struct ringComm* ringComm_t;

/* An in-order queue of host work; see chapter 10. */
typedef struct ringStream* ringStream_t;

#define RINGCCL_UNIQUE_ID_BYTES 128
/* What the ranks of one communicator must share to find and trust each other: a random secret and the addresses of the
 * rank that made it. Plain bytes: carry it by any means (MPI, a file, a store), but to the job's own ranks only. */
typedef struct {
    char internal[RINGCCL_UNIQUE_ID_BYTES];
} ringUniqueId;

/* Element types. Floats of 8 and 16 bits are combined in float32 and rounded once per combination (docs/numerics.md). */
typedef enum {
    ringInt8 = 0,
    ringUint8 = 1,
    ringInt32 = 2,
    ringUint32 = 3,
    ringInt64 = 4,
    ringUint64 = 5,
    ringFloat16 = 6,  /* IEEE 754 binary16 */
    ringFloat32 = 7,
    ringFloat64 = 8,
    ringBfloat16 = 9,
    /* The two of the OCP 8-bit Floating Point Specification 1.0 (Micikevicius et al., FP8 formats for deep learning, 2022). */
    ringFloat8e4m3 = 10, /* up to 448; no infinity, a NaN instead; often called e4m3fn */
    ringFloat8e5m2 = 11  /* the upper byte of a binary16: up to 57344, infinities */
} ringDataType_t;

/* Reduction operations. Values from ringNumOps on are made by ringRedOpCreatePreMulSum. */
typedef enum {
    ringSum = 0,
    ringProd = 1,
    ringMax = 2,
    ringMin = 3,
    ringAvg = 4, /* the sum divided by the world size; integers are summed wide and truncate toward zero */
    ringNumOps = 5,
    ringMaxRedOp = 0x7fffffff /* keeps the enum an int; not an operation */
} ringRedOp_t;

/* What a communicator runs on. */
typedef enum { ringDeviceHost = 0, ringDeviceCuda = 1 } ringDeviceKind_t;

/* ---- 3. Making and ending communicators ------------------------------------------------------------------------- */

/* How to make a communicator. Start from RINGCCL_CONFIG_INITIALIZER and change what you need; `size` lets later versions
 * add fields. A field left at its initial value follows the environment (docs/tuning.md), then the default. */
typedef struct {
    size_t size;             /* sizeof(ringConfig_t) */
    int deviceKind;          /* a ringDeviceKind_t; default ringDeviceHost */
    int deviceIndex;         /* the CUDA device; -1: the current one (ringCommInitAll: dealt out). Ignored for the host */
    int timeoutMs;           /* an operation fails when nothing moved for this long; -1: RINGCCL_TIMEOUT_MS */
    int initTimeoutMs;       /* making the communicator fails after this long; -1: RINGCCL_INIT_TIMEOUT_MS */
    const char* transport;   /* "auto", or a list such as "p2p,tcp"; NULL: RINGCCL_TRANSPORT */
    const char* algorithm;   /* "auto", "ring", "direct", ...; NULL: RINGCCL_ALGORITHM. Rank 0's wish counts */
    const char* interface;   /* network interfaces, "eth0", "^docker", "10.0.0.0/8"; NULL: RINGCCL_INTERFACE */
} ringConfig_t;

#define RINGCCL_CONFIG_INITIALIZER {sizeof(ringConfig_t), ringDeviceHost, -1, -1, -1, NULL, NULL, NULL}

/* Makes an id and starts listening for the ranks that will join with it. Local; call it on one rank (it becomes the meeting
 * point and must stay alive until all have joined) and hand the bytes to the others. One id makes one communicator.
 * ringInvalidArgument: id is NULL. ringInvalidUsage: a setting cannot be used (text names it). ringSystemError: no socket
 * or no usable address. */
RINGCCL_API ringResult_t ringGetUniqueId(ringUniqueId* id);

/* Makes this process (or thread) rank `rank` of `worldSize`. Collective, blocking: returns when all ranks are connected and
 * agree, or with the same verdict everywhere when they cannot. Several ranks may live in one process, one thread each, or
 * between ringGroupStart and ringGroupEnd in one thread.
 * *comm is set before the waiting begins, so that another thread can ringCommAbort it; nothing else may be done with it until the
 * call has succeeded, and after a failure *comm is what it was before.
 * ringInvalidArgument: comm or id NULL, damaged id, rank or worldSize out of range, bad config. ringInvalidUsage: a setting
 * in the environment is wrong, the wished transport cannot be had, or ranks contradict each other (two of one number,
 * different world sizes or versions). ringTimeout: some rank did not come; the text lists them and the addresses tried.
 * ringRemoteError: another rank could not go on; its own text is given. ringSystemError: memory, descriptors, sockets. */
RINGCCL_API ringResult_t ringCommInitRank(ringComm_t* comm, int worldSize, ringUniqueId id, int rank);

/* The same with a config; NULL means RINGCCL_CONFIG_INITIALIZER. */
RINGCCL_API ringResult_t ringCommInitRankConfig(ringComm_t* comm, int worldSize, ringUniqueId id, int rank,
                                                const ringConfig_t* config);

/* Makes `worldSize` communicators of one new world, all in this process: comms[i] is rank i. Blocking; local to the process.
 * Use each from a thread of its own, or all from one thread inside a group. Results as ringCommInitRankConfig. */
RINGCCL_API ringResult_t ringCommInitAll(ringComm_t* comms, int worldSize, const ringConfig_t* config);

/* Makes a communicator of all processes of the job that started this one: rank, world size and meeting point are taken from
 * RINGCCL_RANK, RINGCCL_WORLD_SIZE and RINGCCL_ROOT, or from torchrun, Open MPI, MPICH/PMI or Slurm (docs/wire.md says how).
 * Collective, blocking. Results as ringCommInitRankConfig; ringInvalidUsage also if no launcher is recognised. */
RINGCCL_API ringResult_t ringCommInitEnv(ringComm_t* comm, const ringConfig_t* config);

/* Waits for all work enqueued on comm's streams. Local, blocking. Afterwards only ringCommDestroy,
 * ringCommAbort and the asking functions are allowed.
 * The first error of any unfinished operation is returned. ringInvalidUsage: comm is unknown, or finalized twice. */
RINGCCL_API ringResult_t ringCommFinalize(ringComm_t comm);

/* Finalizes if need be, says goodbye, frees everything; comm is invalid afterwards. Local, blocking. Other ranks that still need
 * something of this one get ringRemoteError; exiting without ringCommDestroy is a death to them. On a communicator that has failed
 * it does not wait for other ranks. Calls on comm that other threads are in are waited for: abort first to end them soon.
 * ringInvalidUsage: comm is not alive (NULL, destroyed before, never made). */
RINGCCL_API ringResult_t ringCommDestroy(ringComm_t comm);

/* Makes every call on comm, in any thread and on all ranks, return ringRemoteError soon: running operations, work that is queued
 * on streams, and the making of comm if that is still under way (see ringCommInitRankConfig). Local, from any thread, any
 * number of times, returns at once; comm must still be destroyed.
 * ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommAbort(ringComm_t comm);

/* The first error of comm's asynchronous work, or ringSuccess; ringInProgress while work is running. Local, does not wait.
 * ringInvalidArgument: asyncError NULL. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommGetAsyncError(ringComm_t comm, ringResult_t* asyncError);

/* One sentence on what went wrong: the failure that spoilt comm, if one did; else, and with NULL, the last failed call in this
 * thread. Local; never NULL; the string is valid until the next ringccl call of this thread. */
RINGCCL_API const char* ringGetLastError(ringComm_t comm);

/* ---- 4. Deriving and asking ------------------------------------------------------------------------------------- */

#define RINGCCL_SPLIT_NOCOLOR (-1)

/* A derived communicator is independent of the one it came from: either may be destroyed first. */

/* Divides comm: ranks that give the same color (>= 0) become one new communicator, ordered by key, then by old rank. A rank
 * that gives RINGCCL_SPLIT_NOCOLOR gets *newComm = NULL. Collective over comm, blocking. config NULL: comm's own.
 * ringInvalidArgument: newComm NULL, color < -1. Else as ringCommInitRankConfig. */
RINGCCL_API ringResult_t ringCommSplit(ringComm_t comm, int color, int key, ringComm_t* newComm,
                                       const ringConfig_t* config);

/* Makes a communicator without the ranks listed in excludedRanks (excludedCount of them), which may be dead; comm may have
 * failed. Collective over the others, blocking; old order is kept. Every caller must give the same set.
 * ringInvalidArgument: newComm NULL, a listed rank out of range or the caller's own. Else as ringCommInitRankConfig. */
RINGCCL_API ringResult_t ringCommShrink(ringComm_t comm, const int* excludedRanks, int excludedCount,
                                        ringComm_t* newComm, const ringConfig_t* config);

/* The ranks of comm that are known to be lost: their process died, or it or its host did not answer for RINGCCL_HEARTBEAT_MS. At
 * most `capacity` of them are stored in ranks, ascending; *count is how many there are. What to exclude from a shrunk
 * communicator; ranks that learn of losses one after the other may see different lists for a moment. Local.
 * ringInvalidArgument: count NULL, capacity negative, ranks NULL with a capacity. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommGetFailed(ringComm_t comm, int* ranks, int capacity, int* count);

/* World size, this rank, and the device of comm (-1 for the host). Local.
 * ringInvalidArgument: the result pointer is NULL. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommCount(ringComm_t comm, int* count);
RINGCCL_API ringResult_t ringCommUserRank(ringComm_t comm, int* rank);
RINGCCL_API ringResult_t ringCommDevice(ringComm_t comm, int* device);

/* ---- 5. Memory -------------------------------------------------------------------------------------------------- */

/* Memory that ranks on the same host can read in place: buffers from here travel without a copy. `bytes` of it, zeroed and
 * page-aligned, owned by the caller until ringMemFree. Local, no communicator needed.
 * ringInvalidArgument: ptr NULL or bytes 0; not from ringMemAlloc, or freed before. ringSystemError: no memory. */
RINGCCL_API ringResult_t ringMemAlloc(void** ptr, size_t bytes);
RINGCCL_API ringResult_t ringMemFree(void* ptr);

/* Tells comm that [buffer, buffer + bytes) will be used again and again, so that links may prepare it once. Local. The memory
 * must stay valid until ringCommDeregister or ringCommDestroy. Registered ranges may overlap.
 * On a CUDA communicator: other processes read device memory where it stands only if it is registered (and from cudaMalloc). They
 * keep the allocation open, so free it after ringCommDestroy, not before.
 * ringInvalidArgument: NULL, 0 bytes, or a handle that this comm did not give. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommRegister(ringComm_t comm, void* buffer, size_t bytes, void** handle);
RINGCCL_API ringResult_t ringCommDeregister(ringComm_t comm, void* handle);

/* ---- 6. Operations ---------------------------------------------------------------------------------------------- */

/* An operation that multiplies each rank's input by *scalar (one element of `type`, read at once, may differ between ranks)
 * and sums the products. Local; valid for comm and type until destroyed; destroying it does not disturb enqueued work.
 * ringInvalidArgument: NULL, unknown type; an op that this comm did not make. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringRedOpCreatePreMulSum(ringRedOp_t* op, const void* scalar, ringDataType_t type,
                                                  ringComm_t comm);
RINGCCL_API ringResult_t ringRedOpDestroy(ringRedOp_t op, ringComm_t comm);

/* ---- 7. Collectives ---------------------------------------------------------------------------------------------
 *
 * Common to chapters 7 and 8:
 * - Streams. On a host communicator `stream` is NULL, and the call returns when the caller's part is done (its result is in
 *   place and its send buffer may change), driven by the calling thread; or a ringStream_t, and the call returns once the
 *   work is queued, after what that stream held before. Buffers must then stay untouched until the stream has passed.
 *   On a CUDA communicator `stream` is a cudaStream_t of its device (NULL: the legacy default stream). The call returns once
 *   the work is queued; the stream is held there until it is done, other streams are not. Failures come with
 *   ringCommGetAsyncError. Ranks that share a device must not share a stream. A stream under capture is ringInvalidUsage.
 * - Memory. On a CUDA communicator buffers lie on its device, or in pinned or managed host memory (cudaHostAlloc,
 *   cudaHostRegister); other memory is ringInvalidArgument.
 * - In place is allowed exactly as said at each call. Any other overlap of a call's two buffers is ringInvalidArgument.
 * - count 0 is allowed: nothing is read or written, but all ranks must still make the call. Buffers may be NULL then.
 * - Results are bit-identical on every rank that receives them, and from run to run of one configuration.
 * - Errors. ringInvalidArgument: buffer NULL, illegal overlap, unknown type or op, root out of range, size overflow.
 *   ringInvalidUsage: comm not alive or finalized, op of another comm. ringMismatch: the ranks called different things.
 *   ringTimeout: nothing moved for the configured time. ringRemoteError: another rank failed, died or aborted.
 *   ringSystemError: memory or a socket. After one of the last four the communicator is spoilt: destroy it or shrink it.
 */

/* recv[i] = op over ranks of send[i], i < count, on every rank. In place: send == recv.
 * Large messages go round a ring: 2(N-1)/N * bytes sent per rank (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2),
 * 2009). */
RINGCCL_API ringResult_t ringAllReduce(const void* send, void* recv, size_t count, ringDataType_t type, ringRedOp_t op,
                                       ringComm_t comm, void* stream);

/* recv[i] = op over ranks of send[rank * recvCount + i], i < recvCount. send holds worldSize * recvCount elements.
 * In place: recv == send + rank * recvCount. */
RINGCCL_API ringResult_t ringScatterReduce(const void* send, void* recv, size_t recvCount, ringDataType_t type,
                                           ringRedOp_t op, ringComm_t comm, void* stream);

/* recv[r * sendCount + i] = rank r's send[i], i < sendCount, on every rank. recv holds worldSize * sendCount elements.
 * In place: send == recv + rank * sendCount. */
RINGCCL_API ringResult_t ringAllGather(const void* send, void* recv, size_t sendCount, ringDataType_t type,
                                       ringComm_t comm, void* stream);

/* recv[i] = root's send[i], i < count, on every rank. send is read on the root only and may be NULL elsewhere.
 * In place: send == recv. */
RINGCCL_API ringResult_t ringBroadcast(const void* send, void* recv, size_t count, ringDataType_t type, int root,
                                       ringComm_t comm, void* stream);

/* recv[i] = op over ranks of send[i], i < count, on the root. recv is written on the root only and may be NULL elsewhere.
 * In place: send == recv. */
RINGCCL_API ringResult_t ringReduce(const void* send, void* recv, size_t count, ringDataType_t type, ringRedOp_t op,
                                    int root, ringComm_t comm, void* stream);

/* recv[r * count + i] = rank r's send[i], i < count, on the root, where recv holds worldSize * count elements; recv may be
 * NULL elsewhere. In place on the root: send == recv + root * count. */
RINGCCL_API ringResult_t ringGather(const void* send, void* recv, size_t count, ringDataType_t type, int root,
                                    ringComm_t comm, void* stream);

/* recv[i] = root's send[rank * count + i], i < count. send holds worldSize * count elements on the root and may be NULL
 * elsewhere. In place on the root: recv == send + root * count. */
RINGCCL_API ringResult_t ringScatter(const void* send, void* recv, size_t count, ringDataType_t type, int root,
                                     ringComm_t comm, void* stream);

/* recv[r * count + i] = rank r's send[rank * count + i], i < count. Both hold worldSize * count elements. Not in place. */
RINGCCL_API ringResult_t ringAllToAll(const void* send, void* recv, size_t count, ringDataType_t type, ringComm_t comm,
                                      void* stream);

/* No rank passes (its stream does not pass) before all have arrived. */
RINGCCL_API ringResult_t ringBarrier(ringComm_t comm, void* stream);

/* ---- 8. Point to point ------------------------------------------------------------------------------------------ */

/* Sends count elements to rank `peer`, which must call ringRecv with the same count and type. Between two ranks, calls match
 * in order. A blocking ringSend may wait for the receiver; exchanges in both directions belong into a group. Sending to
 * oneself is allowed inside a group that also receives it. Stream rule and errors as in chapter 7. */
RINGCCL_API ringResult_t ringSend(const void* send, size_t count, ringDataType_t type, int peer, ringComm_t comm,
                                  void* stream);
RINGCCL_API ringResult_t ringRecv(void* recv, size_t count, ringDataType_t type, int peer, ringComm_t comm,
                                  void* stream);

/* ---- 9. Groups -------------------------------------------------------------------------------------------------- */

/* Calls between start and end are collected and make progress together, so that their order cannot deadlock: sends beside
 * receives, several collectives, several communicators of one thread, several initialisations. Groups nest; the outermost
 * end starts the work, waits for what was called with stream NULL, and returns the first error. Argument errors are returned by
 * the call itself and again by ringGroupEnd, which then starts nothing. Local to the thread.
 * ringInvalidUsage: ringGroupEnd without ringGroupStart. */
RINGCCL_API ringResult_t ringGroupStart(void);
RINGCCL_API ringResult_t ringGroupEnd(void);

/* ---- 10. Host streams ------------------------------------------------------------------------------------------- */

/* A queue of asynchronous host work, done in order by the communicators' own threads while the caller computes. Work on
 * different streams is not ordered. A stream may serve several communicators. Local.
 * Synchronize waits until the queue is empty and returns the first error of the work since the last call; Query answers at once,
 * ringInProgress if work is left. Destroy synchronizes first.
 * ringInvalidArgument: NULL, or not a stream. */
RINGCCL_API ringResult_t ringStreamCreate(ringStream_t* stream);
RINGCCL_API ringResult_t ringStreamSynchronize(ringStream_t stream);
RINGCCL_API ringResult_t ringStreamQuery(ringStream_t stream);
RINGCCL_API ringResult_t ringStreamDestroy(ringStream_t stream);

/* ---- 11. Statistics and records --------------------------------------------------------------------------------- */

/* What this rank of comm has done since it was made. `size` is set by the caller to sizeof(ringCommStats_t). */
typedef struct {
    size_t size;
    uint64_t operations;        /* collectives and point-to-point calls completed */
    uint64_t bytesSent;         /* bytes offered to other ranks, headers included */
    uint64_t bytesReceived;     /* bytes taken from other ranks, headers included */
    uint64_t messagesSent;      /* slices offered */
    uint64_t payloadSent;       /* bytesSent without headers */
    uint64_t sleeps;            /* times this rank gave up its CPU to wait */
    uint64_t strangers;         /* connections turned away */
} ringCommStats_t;

/* Local. ringInvalidArgument: stats NULL or size 0. ringInvalidUsage: comm is not alive. */
RINGCCL_API ringResult_t ringCommGetStats(ringComm_t comm, ringCommStats_t* stats);

/* Writes comm's flight record to a file: the last 256 operations of this rank, and how far its links to each peer have come, as
 * JSON. ringccl-doctor reads the records of all ranks together and says which of them diverged or stopped where
 * (docs/debugging.md). Works at any time, also while an operation hangs and after a failure. Local.
 * ringInvalidArgument: path NULL. ringInvalidUsage: comm is not alive. ringSystemError: the file cannot be written. */
RINGCCL_API ringResult_t ringCommDump(ringComm_t comm, const char* path);

/* Short names of the two halves of a ring allReduce: the same functions. */
#ifndef RINGCCL_NO_SHORT_NAMES
RINGCCL_API ringResult_t scatterReduce(const void* send, void* recv, size_t recvCount, ringDataType_t type,
                                       ringRedOp_t op, ringComm_t comm, void* stream);
RINGCCL_API ringResult_t allGather(const void* send, void* recv, size_t sendCount, ringDataType_t type, ringComm_t comm,
                                   void* stream);
#endif

#ifdef __cplusplus
}
#endif
#endif /* RINGCCL_H */
