/* A libcuda.so.1 made up: device memory is memory of the host, reserved and mapped as the driver
   does it. cuda-bindings asks for each call by name, Triton's launcher links against them.

   What is asked of a stream is kept and runs when something waits for the device, and then in an
   order that no program may rely on: of the streams that can go on, the one made last goes first,
   and a copy reads the host's memory only then. Only events and the order within a stream hold.

   A launch is told to `noted` when it is asked for, which gives it a number, and handed to `run`
   by that number when it runs; what that returns is the error that every call gives from then on. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*noted_t)(const char *entry, const unsigned *shape, void **parameters);
typedef int (*run_t)(int launch);

enum { COPY, LAUNCH, RECORD, FOLLOW, GRAPH };
enum { STREAMS = 64, KERNELS = 256, MAPPINGS = 65536, REFUSED_IN_CAPTURE = 900 };

typedef struct event { int asked, done; } event;
typedef struct graph { int *launches; int count; } graph;
typedef struct work {
    int kind, number; /* a launch's number; how often a followed event must be recorded */
    void *to;
    const void *from;
    size_t size;
    event *event;
    graph *graph;
    struct work *next;
} work;
typedef struct stream { work *first, *last; graph *capturing; } stream;

static noted_t noted;
static run_t run;
static int sticky;
static long mapped, reserved, copies, graph_launches;
static char entries[KERNELS][64];
static int functions;
static stream streams[STREAMS];
static int made = 1; /* the default stream is there */
static int capturing;
static struct { uintptr_t address; size_t size; int written; } mappings[MAPPINGS];
static int most; /* of them that were ever used */

#define LIVE if (sticky) return sticky
#define UNCAPTURED if (sticky) return sticky; if (capturing) return REFUSED_IN_CAPTURE

void fake_reset(noted_t told, run_t runs) {
    noted = told;
    run = runs;
    sticky = capturing = 0;
    mapped = reserved = copies = graph_launches = 0;
    memset(streams, 0, sizeof streams);
    made = 1;
}
long fake_mapped(void) { return mapped; }
long fake_reserved(void) { return reserved; }
long fake_streams(void) { return made - 1; }
long fake_graph_launches(void) { return graph_launches; }
void fake_fail(int code) { sticky = code; }
/* whether the host has copied anything into the mapping that holds an address */
int fake_written(uintptr_t address) {
    for (int n = 0; n < most; n++)
        if (mappings[n].address <= address && address < mappings[n].address + mappings[n].size) return mappings[n].written;
    return 0;
}
/* First address behind what is mapped without a gap from `address` on; 0 where nothing is. */
uintptr_t fake_end(uintptr_t address) {
    uintptr_t end = 0;
    for (int n = 0; n < most; n++) {
        uintptr_t at = end ? end : address;
        if (mappings[n].size && mappings[n].address <= at && at < mappings[n].address + mappings[n].size) {
            end = mappings[n].address + mappings[n].size;
            n = -1;
        }
    }
    return end;
}

static stream *stream_of(void *handle) {
    uintptr_t at = (uintptr_t)handle;
    return at < (uintptr_t)made ? &streams[at] : NULL;
}
static int execute(work *one) {
    switch (one->kind) {
    case COPY: memcpy(one->to, one->from, one->size); copies++; return 0;
    case LAUNCH: return run ? run(one->number) : 0;
    case RECORD: one->event->done++; return 0;
    case GRAPH:
        graph_launches++;
        for (int n = 0; n < one->graph->count && !sticky; n++)
            sticky = run ? run(one->graph->launches[n]) : 0;
        return sticky;
    default: return 0;
    }
}
/* Run one piece of work of one stream; 0 if none can go on. */
static int step(int lowest) {
    for (int at = made - 1; at >= lowest; at--) {
        work *one = streams[at].first;
        if (!one || (one->kind == FOLLOW && one->event->done < one->number)) continue;
        streams[at].first = one->next;
        if (!one->next) streams[at].last = NULL;
        if (!sticky) sticky = execute(one);
        free(one);
        return 1;
    }
    return 0;
}
static int drain(event *until) {
    while (!until || until->done < until->asked)
        if (!step(0)) {
            if (until) return 999;
            for (int at = 0; at < made; at++) if (streams[at].first) return 999; /* waits for ever */
            break;
        }
    return sticky;
}
static int put(void *handle, work like) {
    stream *on = stream_of(handle);
    if (!on) return 400;
    if (on->capturing) {
        if (like.kind != LAUNCH) return REFUSED_IN_CAPTURE;
        graph *into = on->capturing;
        into->launches = realloc(into->launches, sizeof(int) * (into->count + 1));
        into->launches[into->count++] = like.number;
        return 0;
    }
    work *one = malloc(sizeof *one);
    *one = like;
    one->next = NULL;
    if (on->last) on->last->next = one; else on->first = one;
    on->last = one;
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    return like.kind == LAUNCH && blocking && *blocking == '1' ? drain(NULL) : 0;
}

int cuInit(unsigned flags) { LIVE; return flags ? 1 : 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { LIVE; *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { LIVE; *device = ordinal; return ordinal ? 101 : 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    LIVE;
    switch (attribute) {
    case 75: *value = 9; break;         /* compute capability 9.0 */
    case 10: *value = 32; break;        /* threads of a warp */
    case 12: *value = 65536; break;     /* registers of a block */
    case 16: *value = 132; break;       /* multiprocessors */
    case 97: *value = 227 << 10; break; /* shared memory of a block that asks for it */
    default: *value = 0;
    }
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { LIVE; *context = (void *)(intptr_t)(device + 1); return 0; }
int cuCtxSetCurrent(void *context) { LIVE; return context ? 0 : 201; }
int cuCtxGetCurrent(void **context) { LIVE; *context = (void *)1; return 0; }
int cuCtxGetDevice(int *device) { LIVE; *device = 0; return 0; }
int cuCtxSynchronize(void) { UNCAPTURED; return drain(NULL); }
int cuMemGetAllocationGranularity(size_t *size, const void *prop, int flag) {
    (void)prop; (void)flag;
    LIVE;
    *size = 2 << 20;
    return 0;
}
int cuMemAddressReserve(uintptr_t *address, size_t size, size_t alignment, uintptr_t at, unsigned long long flags) {
    (void)alignment; (void)at; (void)flags;
    LIVE;
    void *found = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return 2;
    *address = (uintptr_t)found;
    reserved++;
    return 0;
}
int cuMemAddressFree(uintptr_t address, size_t size) { LIVE; reserved--; return munmap((void *)address, size) ? 1 : 0; }
int cuMemCreate(unsigned long long *handle, size_t size, const void *prop, unsigned long long flags) {
    (void)flags;
    UNCAPTURED;
    const int *wanted = prop; /* type, handle types, type and number of the location */
    if (wanted[0] != 1 || wanted[1] != 0 || wanted[2] != 1 || wanted[3] != 0) return 1;
    *handle = size;
    return size % (2 << 20) ? 1 : 0;
}
int cuMemMap(uintptr_t address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags) {
    (void)offset; (void)flags;
    LIVE;
    return address % (4 << 10) || handle != size ? 1 : 0;
}
int cuMemSetAccess(uintptr_t address, size_t size, const void *desc, size_t count) {
    LIVE;
    const int *wanted = desc; /* type and number of the location, read and write */
    if (wanted[0] != 1 || wanted[1] != 0 || wanted[2] != 3) return 1;
    mapped++;
    for (int n = 0; n < MAPPINGS; n++)
        if (!mappings[n].size) {
            mappings[n].address = address;
            mappings[n].size = size;
            mappings[n].written = 0;
            if (n == most) most++;
            break;
        }
    return count == 1 && mprotect((void *)address, size, PROT_READ | PROT_WRITE) == 0 ? 0 : 1;
}
int cuMemUnmap(uintptr_t address, size_t size) {
    LIVE;
    mapped--;
    for (int n = 0; n < most; n++)
        if (mappings[n].address == address) mappings[n].size = 0;
    return mprotect((void *)address, size, PROT_NONE) ? 1 : 0;
}
int cuMemRelease(unsigned long long handle) { LIVE; return handle ? 0 : 1; }
int cuMemAlloc_v2(uintptr_t *address, size_t size) { UNCAPTURED; *address = 4096; return size > (1ull << 36) ? 2 : 0; }
int cuMemFree_v2(uintptr_t address) { LIVE; return address == 4096 ? 0 : 1; }
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *on) {
    LIVE;
    for (int n = 0; n < most; n++)
        if (mappings[n].address <= to && to < mappings[n].address + mappings[n].size) mappings[n].written = 1;
    return put(on, (work){.kind = COPY, .to = (void *)to, .from = from, .size = size});
}
/* at once, whatever other streams have not done yet */
int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size) { UNCAPTURED; memcpy(to, (void *)from, size); return 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
    (void)count; (void)options; (void)values;
    UNCAPTURED;
    *module = (void *)image;
    return strstr(image, ".entry") || strstr(image, "ELF") ? 0 : 218;
}
int cuModuleLoadData(void **module, const void *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }
int cuModuleUnload(void *module) { (void)module; LIVE; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    LIVE;
    char *kept = entries[functions++ % KERNELS];
    strncpy(kept, name, 63);
    *function = kept;
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)function;
    LIVE;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0; /* threads of a block, registers of one */
    return 0;
}
int cuFuncSetCacheConfig(void *function, int config) { (void)function; (void)config; LIVE; return 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; (void)attribute; (void)value; LIVE; return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *on, void **parameters, void **extra) {
    (void)extra;
    LIVE;
    unsigned shape[] = {gx, gy, gz, bx, by, bz, shared};
    int number = noted ? noted(function, shape, parameters) : 0;
    if (number < 0) return 1;
    return put(on, (work){.kind = LAUNCH, .number = number}); /* its fault is told by a later call */
}
struct config { unsigned gx, gy, gz, bx, by, bz, shared; void *stream, *attributes; unsigned count; };
int cuLaunchKernelEx(const struct config *c, void *function, void **parameters, void **extra) {
    return cuLaunchKernel(function, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream, parameters, extra);
}

int cuStreamCreate(void **on, unsigned flags) {
    LIVE;
    if (flags != 1 || made == STREAMS) return 1; /* one that the default stream does not wait for */
    streams[made] = (stream){0};
    *on = (void *)(uintptr_t)made++;
    return 0;
}
int cuEventCreate(event **one, unsigned flags) { LIVE; *one = calloc(1, sizeof **one); return flags == 2 ? 0 : 1; }
int cuEventRecord(event *one, void *on) { LIVE; one->asked++; return put(on, (work){.kind = RECORD, .event = one}); }
int cuStreamWaitEvent(void *on, event *one, unsigned flags) {
    LIVE;
    return flags ? 1 : put(on, (work){.kind = FOLLOW, .event = one, .number = one->asked});
}
int cuEventSynchronize(event *one) { UNCAPTURED; return drain(one); }
int cuStreamBeginCapture_v2(void *on, int mode) {
    LIVE;
    stream *one = stream_of(on);
    if (!on || !one || one->capturing || mode) return 900;
    one->capturing = calloc(1, sizeof(graph));
    capturing++;
    return 0;
}
int cuStreamIsCapturing(void *on, int *status) { LIVE; *status = stream_of(on) && stream_of(on)->capturing ? 1 : 0; return 0; }
int cuStreamEndCapture(void *on, graph **made_of) {
    LIVE;
    stream *one = stream_of(on);
    if (!one || !one->capturing) return 901;
    *made_of = one->capturing;
    one->capturing = NULL;
    capturing--;
    return 0;
}
int cuGraphInstantiateWithFlags(graph **ready, graph *of, unsigned long long flags) { UNCAPTURED; *ready = of; return flags ? 1 : 0; }
int cuGraphLaunch(graph *one, void *on) { LIVE; return put(on, (work){.kind = GRAPH, .graph = one}); }

/* what else Triton's launcher is linked with */
int cuPointerGetAttribute(void *data, int attribute, uintptr_t address) {
    LIVE;
    if (attribute != 3 || !fake_end(address)) return 1; /* not of the device */
    *(uintptr_t *)data = address;
    return 0;
}
int cuPointerGetAttributes(unsigned count, int *attributes, void **data, uintptr_t address) { (void)count; (void)attributes; (void)data; (void)address; return 1; }
int cuCtxGetLimit(size_t *value, int limit) { (void)limit; *value = 0; return 0; }
int cuCtxSetLimit(int limit, size_t value) { (void)limit; (void)value; return 0; }
int cuOccupancyMaxActiveClusters(int *count, void *function, const void *config) { (void)function; (void)config; *count = 0; return 0; }
int cuGetErrorString(int code, const char **text) { (void)code; *text = "an error made up"; return 0; }
int cuGetErrorName(int code, const char **name) { (void)code; *name = "CUDA_ERROR_MADE_UP"; return 0; }

int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long long flags, int *status) {
    (void)version; (void)flags;
    char versioned[128] = "";
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    strncat(versioned, symbol, 100);
    *function = dlsym(self, strcat(versioned, "_v2"));
    if (!*function) *function = dlsym(self, symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
/* NVRTC asks a driver that is there for its tables of its own */
int cuGetExportTable(const void **table, const void *id) { (void)id; *table = NULL; return 500; }
int cuGetProcAddress(const char *symbol, void **function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
