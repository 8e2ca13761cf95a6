// Rotate the heads of every token by its position, in place; device side of `rope`.
//
// Semantics: `rotary_embedding_kernel` of vLLM's csrc/pos_encoding_kernels.cu, neox style: the two
// halves of a head are the two coordinates. A row of the table holds head_dim / 2 cosines, then as
// many sines. fp16 in and out, fp32 between; products are not fused, so results are the reference's.
// Row rule: grid x = token; the threads of a block share the pairs of the token.
// Not checked, as upstream (vllm#48894): whether a position lies within the table.

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(64)
rope(__half* x,
     const long long* positions,
     const float* table,
     int heads,
     int head_dim,
     int x_stride,
     int table_stride) {
  const long long token = blockIdx.x;
  const int half = head_dim / 2;
  const float* cosines = table + positions[token] * table_stride;
  const float* sines = cosines + half;
#pragma unroll 1
  for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
    const int pair = i % half;
    __half* first = x + token * x_stride + i / half * head_dim + pair;
    __half* second = first + half;
    const float a = __half2float(*first);
    const float b = __half2float(*second);
    const float c = cosines[pair];
    const float s = sines[pair];
    *first = __float2half_rn(__fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s)));
    *second = __float2half_rn(__fadd_rn(__fmul_rn(b, c), __fmul_rn(a, s)));
  }
}
