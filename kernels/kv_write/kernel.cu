// Scatter the keys and values of new tokens to the paged cache by slot; device side of `kv_write`.
//
// Semantics: `reshape_and_cache_flash` of vLLM's csrc/cache_kernels.cu for a 16-bit cache: words are
// moved as they are, a negative slot (padding) is skipped.
// Row rule: grid x = token; the threads of a block share the words of the token.
// Not checked, as upstream: whether a slot lies within the cache.

extern "C" __global__ void __launch_bounds__(64)
kv_write(const unsigned short* key,
         const unsigned short* value,
         unsigned short* key_cache,
         unsigned short* value_cache,
         const long long* slots,
         int width,
         int key_stride,
         int value_stride,
         int cache_stride) {
  const long long token = blockIdx.x;
  const long long slot = slots[token];
  if (slot < 0) return;
#pragma unroll 1
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    key_cache[slot * cache_stride + i] = key[token * key_stride + i];
    value_cache[slot * cache_stride + i] = value[token * value_stride + i];
  }
}
