/* A libcuda.so.1 made up: device memory is memory of the host, reserved and mapped as the driver
   does it. A launch is handed to a function that the test sets; what it returns is the error that
   every call gives from then on. cuda-bindings asks for each call by name. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*launched_t)(const char *entry, const unsigned *shape, void **parameters);

static launched_t launched;
static int sticky;
static long mapped, reserved, most_mapped;
static char entries[64][64];
static int functions;

#define LIVE if (sticky) return sticky

void fake_reset(launched_t callback) {
    launched = callback;
    sticky = 0;
    mapped = reserved = most_mapped = 0;
}
long fake_mapped(void) { return mapped; }
long fake_reserved(void) { return reserved; }
void fake_fail(int code) { sticky = code; }

int cuInit(unsigned flags) { LIVE; return flags ? 1 : 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { LIVE; *device = ordinal; return ordinal ? 101 : 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    LIVE;
    *value = attribute == 75 ? 9 : 0; /* compute capability 9.0 */
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { LIVE; *context = (void *)(intptr_t)(device + 1); return 0; }
int cuCtxSetCurrent(void *context) { LIVE; return context ? 0 : 201; }
int cuCtxSynchronize(void) { LIVE; return 0; }
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
    LIVE;
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
    return count == 1 && mprotect((void *)address, size, PROT_READ | PROT_WRITE) == 0 ? 0 : 1;
}
int cuMemUnmap(uintptr_t address, size_t size) { LIVE; mapped--; return mprotect((void *)address, size, PROT_NONE) ? 1 : 0; }
int cuMemRelease(unsigned long long handle) { LIVE; return handle ? 0 : 1; }
int cuMemAlloc_v2(uintptr_t *address, size_t size) { LIVE; *address = 4096; return size > (1ull << 36) ? 2 : 0; }
int cuMemFree_v2(uintptr_t address) { LIVE; return address == 4096 ? 0 : 1; }
int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t size) { LIVE; memcpy((void *)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size) { LIVE; memcpy(to, (void *)from, size); return 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
    (void)count; (void)options; (void)values;
    LIVE;
    *module = (void *)image;
    return strstr(image, ".entry") || strstr(image, "ELF") ? 0 : 218;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    LIVE;
    strncpy(entries[functions], name, 63);
    *function = entries[functions++ % 64];
    return 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; (void)attribute; (void)value; LIVE; return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    (void)extra;
    LIVE;
    if (stream) return 400;
    unsigned shape[] = {gx, gy, gz, bx, by, bz, shared};
    sticky = launched ? launched(function, shape, parameters) : 0;
    return 0; /* a kernel's fault is told by a later call */
}
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
