// Faults planted on purpose, one a kernel, and a control that does the same things right.
// Each runs as one block of 64 threads. A mark such as `//! far_write` names the line at fault.
// Where a wrong access lands on a device is up to `distance`: what an access hits is decided by
// where buffers lie, not by the kernel.
#define PLANTED extern "C" __global__ void __launch_bounds__(64)

extern "C" __device__ void __assertfail(
    const char* message, const char* file, unsigned line, const char* function, size_t size);

// The control: bounds, ownership, shared memory, barriers, an assertion and a wait, all kept to.
PLANTED clean(int* out, const int* in, volatile int* flag, int limit) {
  __shared__ int shared[64];
  int t = threadIdx.x;
  while (*flag == 0) {
  }
  shared[t] = in[t];
  __syncthreads();
  if (t >= limit) __assertfail("t < limit", "planted.cu", 18, "clean", 1);
  out[t] = shared[63 - t];
}

PLANTED far_write(int* out, long long distance) {
  out[distance + threadIdx.x] = 1;  //! far_write
}

PLANTED far_read(int* out, const int* in, long long distance) {
  out[threadIdx.x] = in[distance + threadIdx.x];  //! far_read
}

PLANTED next_write(int* out, long long distance) {
  out[distance + threadIdx.x] = 1;  //! next_write
}

PLANTED pool_write(int* pool, long long first) {
  pool[first + threadIdx.x] = 1;  //! pool_write
}

PLANTED misaligned(int* out, const char* in, long long shift) {
  out[threadIdx.x] = *(const int*)(in + 4 * threadIdx.x + shift);  //! misaligned
}

PLANTED shared_bounds(int* out, int shift) {
  __shared__ int shared[64];
  shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x + shift];  //! shared_bounds
}

PLANTED shared_race(int* out, const int* in) {
  __shared__ int shared[64];
  shared[threadIdx.x] = in[threadIdx.x];  //! shared_race
  out[threadIdx.x] = shared[63 - threadIdx.x];
}

PLANTED unwritten_read(int* out, const int* in) {
  out[threadIdx.x] = in[threadIdx.x];  //! unwritten_read
}

PLANTED shared_unwritten(int* out) {
  __shared__ int shared[64];
  if (threadIdx.x < 32) shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];  //! shared_unwritten
}

PLANTED barrier(int* out) {
  if (threadIdx.x % 2) {
    out[threadIdx.x] = 1;
    asm volatile("bar.sync 0;");  //! barrier
  } else {
    out[threadIdx.x] = 2;
    asm volatile("bar.sync 0;");  //! barrier
  }
}

PLANTED assertion(int* out, int limit) {
  int t = threadIdx.x;
  if (t >= limit) __assertfail("t < limit", "planted.cu", 78, "assertion", 1);  //! assertion
  out[t] = t;
}

PLANTED hang(int* out, volatile int* flag) {
  while (*flag == 0) {  // nobody ever writes it
  }
  out[threadIdx.x] = 1;
}
