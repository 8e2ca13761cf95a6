// What device code calls: functions with structures, recursion, printf, assert, live variables.
extern "C" __device__ void __assertfail(
    const char* message, const char* file, unsigned line, const char* function, size_t size);

struct Span { int n; float scale; const float* data; };
struct Six { float v[6]; };

__device__ int counter = 5;
__constant__ float table[4] = {1, 2, 3, 4};
__device__ const float* pointers[2] = {table, table + 1};

__device__ __noinline__ Six ramp(int i) {
  Six s;
  for (int k = 0; k < 6; k++) s.v[k] = i + k;
  return s;
}

__device__ __noinline__ float blend(float a, Six s, int i) { return a * s.v[i & 3] + s.v[5]; }

__device__ __noinline__ char narrow(char c, bool keep, short s) { return keep ? c : (char)s; }

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void calls(Span span, float* out, int* numbers) {
  int i = threadIdx.x;
  if (i < span.n) out[i] = blend(span.data[i], ramp(i), i) * span.scale + pointers[i & 1][i & 1];
  numbers[i] = narrow(i, i & 1, i + 1);
  atomicAdd(&counter, 1);
  if (i == 3) printf("%d %5.2f %s %c %lld|%-4d|%04x\n", i, span.scale, "text", 'x', 1LL << 40, 7, 255);
}

extern "C" __global__ void recursive(int* out, int n) { out[threadIdx.x] = fibonacci(n + threadIdx.x % 3); }

extern "C" __global__ void checked(int* out, int limit) {
  int i = threadIdx.x;
  if (i >= limit) __assertfail("i < limit", "calls.cu", 40, "checked", 1);
  out[i] = i;
}

extern "C" __global__ void counted(int* out, int n) {
  int t = threadIdx.x;
  __shared__ int parts[32];
  int found = __syncthreads_count(t < n) + 1000 * __syncthreads_and(t < n);
  found += 100 * __syncthreads_or(t == n);
  if (t < 32) {
    parts[t] = 3 * t;
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    found += 10000 * parts[t - 32];
  }
  out[t] = found;
}
