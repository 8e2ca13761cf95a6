// Sources of kernels.ptx: small kernels with a loop, shared memory, shuffles, atomics, inlining.
#include <cuda_fp16.h>

__device__ __forceinline__ float square(float x) { return x * x; }

extern "C" __global__ void scatter(const unsigned short* key, unsigned short* cache,
                                   const long long* slots, int width, long long stride) {
  long long slot = slots[blockIdx.x];
  if (slot < 0) return;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    cache[slot * stride + i] = key[blockIdx.x * (long long)width + i];
}

extern "C" __global__ void row_sum(const float* x, float* out, int n) {
  __shared__ float part[4];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += square(x[blockIdx.x * (long long)n + i]);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int i = 0; i < blockDim.x / 32; i++) all += part[i];
    out[blockIdx.x] = all;
  }
}

extern "C" __global__ void compact(const int* in, int* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 3 == 0) out[atomicAdd(count, 1)] = in[i];
}

extern "C" __global__ void functions(const float* x, float* out, double* wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  out[5 * i] = expf(v);
  out[5 * i + 1] = powf(v, 1.5f);
  out[5 * i + 2] = logf(v);
  out[5 * i + 3] = sinf(v);
  out[5 * i + 4] = tanhf(v);
  wide[i] = exp(wide[i]) / 3.0;
}

extern "C" __global__ void halves(const __half* x, const __half* y, __half* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __hfma(x[i], y[i], __hmax(x[i], y[i]));
}
