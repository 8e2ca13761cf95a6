// Merge partial attention results by their log-sum-exp; device side of `merge_states`.
//
// Semantics: FlashInfer's `PersistentVariableLengthMergeStatesKernel`, the second pass of split-KV
// attention: the chunks of a request are split[indptr_at + row] up to split[indptr_at + row + 1], as
// the plan in the library's work space says. No chunk, or only chunks of weight 0, gives 0.
// Row rule: grid x = request, grid y = query head; a lane takes a dimension.
// Not checked, as upstream: the plan against the partial results. A plan of another step reads rows
// past them; it never writes a wrong place (vllm#40756: row 33,621 of 85, Xid 31 on a read).

#include <math_constants.h>

extern "C" __global__ void __launch_bounds__(32)
merge_states(const float* partial_out,
             const float* partial_lse,
             const int* split,
             float* out,
             int heads,
             int head_dim,
             int out_stride,
             int indptr_at) {
  const long long row = blockIdx.x;
  const int head = blockIdx.y;
  const int first = split[indptr_at + row];
  const int last = split[indptr_at + row + 1];
#pragma unroll 1
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
    float peak = -CUDART_INF_F;
    float total = 0.0f;
    float mixed = 0.0f;
#pragma unroll 1
    for (int chunk = first; chunk < last; ++chunk) {
      const long long at = (long long)chunk * heads + head;
      const float lse = partial_lse[at];
      const float value = partial_out[at * head_dim + d];
      if (lse == -CUDART_INF_F && peak == -CUDART_INF_F) continue;
      const float higher = fmaxf(peak, lse);
      const float shrink = __expf(peak - higher);
      const float weight = __expf(lse - higher);
      mixed = mixed * shrink + weight * value;
      total = total * shrink + weight;
      peak = higher;
    }
    out[row * out_stride + head * head_dim + d] = total == 0.0f ? 0.0f : __fdiv_rn(mixed, total);
  }
}
