// Products of fragments that a warp holds together.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;

// c = 2 a b; a by rows and b by columns of `depth` elements, c by rows of `stride`; one warp a tile
extern "C" __global__ void product(
    const half* a, const half* b, float* c, int depth, int stride) {
  Left left;
  Right right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  const half* row = a + blockIdx.x * 16 * depth;
  const half* column = b + threadIdx.y * 16 * depth;
  for (int i = 0; i < depth; i += 16) {
    wmma::load_matrix_sync(left, row + i, depth);
    wmma::load_matrix_sync(right, column + i, depth);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 2;
  float* tile = c + blockIdx.x * 16 * stride + threadIdx.y * 16;
  wmma::store_matrix_sync(tile, sum, stride, wmma::mem_row_major);
}

// out = transposed c + transposed a b, all of 16 x 16 halves, b through shared memory
extern "C" __global__ void halves(const half* a, const half* b, half* c, half* out) {
  __shared__ half shared[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> sum;
  for (int i = threadIdx.x; i < 256; i += 32) shared[i] = b[i];
  __syncwarp();
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_col_major);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, shared, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
