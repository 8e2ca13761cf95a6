/* A scripted libnvidia-ml.so.1. The variable FAKE_NVML names a text file, a directive a line:
 *
 *   driver VERSION
 *   cuda NUMBER                    of the driver: 13000
 *   gpu NAME|UUID|PCI
 *   mig INDEX                      the GPU of this index is partitioned
 *   lost INDEX                     it is counted, and has no handle
 *   process INDEX PID MEBIBYTES
 *   recovery INDEX ACTION
 *   xid MILLISECONDS INDEX CODE    an event, so long after its event set was made
 *   fail FUNCTION CODE             from the first call on
 *   lose MILLISECONDS              from then on, waiting ends in GPU_IS_LOST
 *
 * Functions and structures as nvml.h of driver 580 has them; only what specrepro asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, TIMEOUT = 10, GPU_IS_LOST = 15 };
enum { MOST = 64, XID_EVENT = 8 };

typedef int Result;
typedef unsigned long long u64;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char busId[32];
} Pci;
typedef struct {
  void *device;
  u64 type, data;
  unsigned gpuInstance, computeInstance;
} Event;
typedef struct {
  u64 total, free, used;
} Memory;
typedef struct {
  unsigned pid;
  u64 memory;
  unsigned gpuInstance, computeInstance;
} Process;
typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  int valueType;
  Result result;
  union {
    double d;
    int si;
    unsigned ui;
    unsigned long ul;
    u64 ull;
    long long sll;
    unsigned short us;
  } value;
} FieldValue;

static struct {
  char name[96], uuid[80], bus[32];
  int mig, lost, recovery;
} gpus[16];
static struct {
  long at;
  int gpu, code, sent;
} xids[MOST];
static struct {
  int gpu;
  unsigned pid, mebibytes;
} processes[MOST];
static struct {
  char function[64];
  int code;
} failures[MOST];
static int gpuCount, xidCount, processCount, failureCount, initialized;
static long lostAt = -1;
static char driver[80] = "580.00";
static int cuda = 13000;
static struct {
  u64 mask[16];
  struct timespec made;
  int live;
} sets[8];

static void load(void) {
  const char *path = getenv("FAKE_NVML");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[512];
  int a, b;
  gpuCount = xidCount = processCount = failureCount = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "gpu %95[^|]|%79[^|]|%31s", gpus[gpuCount].name, gpus[gpuCount].uuid,
               gpus[gpuCount].bus) == 3) {
      gpus[gpuCount].mig = gpus[gpuCount].lost = gpus[gpuCount].recovery = 0;
      gpuCount++;
    } else if (sscanf(line, "xid %ld %d %d", &xids[xidCount].at, &xids[xidCount].gpu,
                      &xids[xidCount].code) == 3) {
      xids[xidCount++].sent = 0;
    } else if (sscanf(line, "process %d %u %u", &processes[processCount].gpu,
                      &processes[processCount].pid, &processes[processCount].mebibytes) == 3) {
      processCount++;
    } else if (sscanf(line, "fail %63s %d", failures[failureCount].function,
                      &failures[failureCount].code) == 2) {
      failureCount++;
    } else if (sscanf(line, "cuda %d", &a) == 1) {
      cuda = a;
    } else if (sscanf(line, "mig %d", &a) == 1) {
      gpus[a].mig = 1;
    } else if (sscanf(line, "lost %d", &a) == 1) {
      gpus[a].lost = 1;
    } else if (sscanf(line, "recovery %d %d", &a, &b) == 2) {
      gpus[a].recovery = b;
    } else if (sscanf(line, "lose %ld", &lostAt) != 1) {
      sscanf(line, "driver %79s", driver);
    }
  }
  if (file) fclose(file);
}

static Result gate(const char *function) {
  for (int i = 0; i < failureCount; i++)
    if (!strcmp(failures[i].function, function)) return failures[i].code;
  return initialized || !strcmp(function, "nvmlInit_v2") ? OK : UNINITIALIZED;
}

#define GATE                             \
  do {                                   \
    Result gated = gate(__func__);       \
    if (gated != OK) return gated;       \
  } while (0)
#define DEVICE(i) ((void *)((char *)0x1000 + (i)))
#define INDEX(handle)                              \
  int i = (int)((char *)(handle) - (char *)0x1000); \
  if (i < 0 || i >= gpuCount) return INVALID

static long since(const struct timespec *then) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

Result nvmlInit_v2(void) {
  load();
  GATE;
  initialized++;
  return OK;
}
Result nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}
Result nvmlShutdown(void) {
  GATE;
  initialized--;
  return OK;
}
const char *nvmlErrorString(Result result) {
  switch (result) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
  }
  return "Unknown Error";
}
Result nvmlSystemGetDriverVersion(char *text, unsigned size) {
  GATE;
  snprintf(text, size, "%s", driver);
  return OK;
}
Result nvmlSystemGetCudaDriverVersion_v2(int *version) {
  GATE;
  *version = cuda;
  return OK;
}
Result nvmlDeviceGetCount_v2(unsigned *count) {
  GATE;
  *count = (unsigned)gpuCount;
  return OK;
}
Result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  GATE;
  if ((int)index >= gpuCount) return INVALID;
  if (gpus[index].lost) return GPU_IS_LOST;
  *handle = DEVICE(index);
  return OK;
}
Result nvmlDeviceGetName(void *handle, char *text, unsigned size) {
  GATE;
  INDEX(handle);
  snprintf(text, size, "%s", gpus[i].name);
  return OK;
}
Result nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
  GATE;
  INDEX(handle);
  snprintf(text, size, "%s", gpus[i].uuid);
  return OK;
}
Result nvmlDeviceGetPciInfo_v3(void *handle, Pci *pci) {
  GATE;
  INDEX(handle);
  memset(pci, 0, sizeof *pci);
  snprintf(pci->busId, sizeof pci->busId, "%s", gpus[i].bus);
  return OK;
}
Result nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
  GATE;
  INDEX(handle);
  memory->total = 80ull << 30;
  memory->used = 1ull << 30;
  memory->free = memory->total - memory->used;
  return OK;
}
Result nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
  GATE;
  INDEX(handle);
  *major = 9;
  *minor = 0;
  return OK;
}
Result nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
  GATE;
  INDEX(handle);
  *current = *pending = (unsigned)gpus[i].mig;
  return OK;
}
Result nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *found) {
  GATE;
  INDEX(handle);
  unsigned room = *count, n = 0;
  for (int p = 0; p < processCount; p++) {
    if (processes[p].gpu != i) continue;
    if (found && n < room) {
      memset(&found[n], 0, sizeof found[n]);
      found[n].pid = processes[p].pid;
      found[n].memory = (u64)processes[p].mebibytes << 20;
    }
    n++;
  }
  *count = n;
  return n > room ? 7 : OK; /* INSUFFICIENT_SIZE */
}
Result nvmlDeviceGetFieldValues(void *handle, int count, FieldValue *values) {
  GATE;
  INDEX(handle);
  for (int v = 0; v < count; v++) {
    values[v].result = OK;
    values[v].valueType = 1;
    values[v].value.ui = (unsigned)gpus[i].recovery;
  }
  return OK;
}
Result nvmlDeviceGetSupportedEventTypes(void *handle, u64 *types) {
  GATE;
  INDEX(handle);
  *types = XID_EVENT | 0x10;
  return OK;
}
Result nvmlEventSetCreate(void **set) {
  GATE;
  for (int s = 0; s < 8; s++) {
    if (sets[s].live) continue;
    memset(&sets[s], 0, sizeof sets[s]);
    sets[s].live = 1;
    clock_gettime(CLOCK_MONOTONIC, &sets[s].made);
    *set = &sets[s];
    return OK;
  }
  return 999;
}
Result nvmlDeviceRegisterEvents(void *handle, u64 types, void *set) {
  GATE;
  INDEX(handle);
  ((__typeof__(&sets[0]))set)->mask[i] |= types;
  return OK;
}
Result nvmlEventSetWait_v2(void *given, Event *event, unsigned milliseconds) {
  GATE;
  __typeof__(&sets[0]) set = given;
  long start = since(&set->made);
  for (;;) {
    long now = since(&set->made);
    if (lostAt >= 0 && now >= lostAt) return GPU_IS_LOST;
    for (int x = 0; x < xidCount; x++) {
      if (xids[x].sent || xids[x].at > now || xids[x].gpu >= gpuCount) continue;
      if (!(set->mask[xids[x].gpu] & XID_EVENT)) continue;
      xids[x].sent = 1;
      memset(event, 0, sizeof *event);
      event->device = DEVICE(xids[x].gpu);
      event->type = XID_EVENT;
      event->data = (u64)xids[x].code;
      event->gpuInstance = gpus[xids[x].gpu].mig ? 3u : 0xffffffffu;
      event->computeInstance = gpus[xids[x].gpu].mig ? 0u : 0xffffffffu;
      return OK;
    }
    if (now - start >= (long)milliseconds) return TIMEOUT;
    struct timespec nap = {0, 2000000};
    nanosleep(&nap, NULL);
  }
}
Result nvmlEventSetFree(void *set) {
  GATE;
  ((__typeof__(&sets[0]))set)->live = 0;
  return OK;
}
