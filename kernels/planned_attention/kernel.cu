// Split-KV decode attention by a plan: one chunk of pages of one request; device side of
// `planned_attention`.
//
// Semantics: the partial pass of FlashInfer's batch decode (split KV) as vLLM calls it
// (v1/attention/backends/flashinfer.py). The host plans: indptr, page indices and the length of the
// last page come from the engine, the split into chunks from the library's own work space. A chunk
// without positions gives 0 and -infinity. Online softmax in fp32, log-sum-exp natural.
// Row rule: grid x = chunk, grid y = query head; the threads of a block are one warp, a lane takes a
// position and keeps a dimension.
// Not checked, as upstream: anything the plan says. A plan of another step (vllm#40756) reads pages
// and queries of other requests, or past the end of what it indexes.

#include <cuda_fp16.h>
#include <math_constants.h>

__device__ float largest_of_warp(float x) {
#pragma unroll 1
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

__device__ float sum_of_warp(float x) {
#pragma unroll 1
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

extern "C" __global__ void __launch_bounds__(32)
planned_attention(const __half* query,
                  const __half* key_cache,
                  const __half* value_cache,
                  const int* page_indptr,
                  const int* page_indices,
                  const int* last_page_len,
                  const int* split,
                  float* partial_out,
                  float* partial_lse,
                  int heads,
                  int head_dim,
                  int group,
                  int query_stride,
                  int cache_stride,
                  int pages_in_chunk,
                  int request_at,
                  int tile_at,
                  int block_size,
                  float scale) {
  const long long chunk = blockIdx.x;
  const int head = blockIdx.y;
  const int lane = threadIdx.x;
  const long long request = split[request_at + chunk];
  const long long tile = split[tile_at + chunk];
  const long long first_page = page_indptr[request];
  const long long pages = page_indptr[request + 1] - first_page;
  const long long length = (pages - 1) * block_size + last_page_len[request];
  const long long begin = tile * pages_in_chunk * block_size;
  const long long chunk_end = begin + (long long)pages_in_chunk * block_size;
  const long long end = length < chunk_end ? length : chunk_end;
  const __half* q = query + request * query_stride + head * head_dim;
  const int kv_at = head / group * head_dim;
  const long long out_at = chunk * heads + head;
#pragma unroll 1
  for (int from = 0; from < head_dim; from += 32) {  // every pass keeps 32 dimensions, a lane one
    float peak = -CUDART_INF_F;
    float total = 0.0f;
    float mixed = 0.0f;
#pragma unroll 1
    for (long long start = begin; start < end; start += 32) {
      const long long position = start + lane;
      const bool seen = position < end;
      float score = -CUDART_INF_F;
      long long element = 0;
      if (seen) {
        const long long page = page_indices[first_page + position / block_size];
        element = (page * block_size + position % block_size) * cache_stride + kv_at;
        score = 0.0f;
#pragma unroll 1
        for (int d = 0; d < head_dim; ++d)
          score += __half2float(q[d]) * __half2float(key_cache[element + d]);
        score *= scale;
      }
      const float higher = fmaxf(peak, largest_of_warp(score));
      const float shrink = __expf(peak - higher);
      const float weight = __expf(score - higher);
      total = total * shrink + sum_of_warp(weight);
      mixed *= shrink;
#pragma unroll 1
      for (int d = from; d < head_dim && d < from + 32; ++d) {
        const float value = seen ? __half2float(value_cache[element + d]) : 0.0f;
        const float sum = sum_of_warp(weight * value);
        if (lane == d - from) mixed += sum;
      }
      peak = higher;
    }
    if (from + lane < head_dim)
      partial_out[out_at * head_dim + from + lane] = begin < end ? __fdiv_rn(mixed, total) : 0.0f;
    if (from + lane == 0) partial_lse[out_at] = begin < end ? peak + __logf(total) : -CUDART_INF_F;
  }
}
