// Kernels that are written with cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// out[b] = sum of the 128 elements of block b; most[i] = the greatest of each 8
extern "C" __global__ void sums(const int* in, int* out, int* most) {
  __shared__ int part[4];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int rank = block.group_index().x * block.size() + block.thread_rank();
  int sum = in[rank];
  for (int i = warp.size() / 2; i > 0; i /= 2) sum += warp.shfl_down(sum, i);
  if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = sum;
  block.sync();
  if (block.thread_rank() == 0) {
    for (int i = 1; i < 4; ++i) sum += part[i];
    out[block.group_index().x] = sum;
  }
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
  int greatest = cg::reduce(tile, in[rank], cg::greater<int>());
  if (tile.thread_rank() == 0) most[rank / 8] = greatest;
}

// out[0] = how many elements are odd, behind it those, in any order: one atomic addition a group
extern "C" __global__ void odd(const int* in, int* out) {
  int value = in[threadIdx.x];
  if (value & 1) {
    cg::coalesced_group here = cg::coalesced_threads();
    int first;
    if (here.thread_rank() == 0) first = atomicAdd(out, here.size());
    out[1 + here.shfl(first, 0) + here.thread_rank()] = value;
  }
}

// all blocks wait for each other
extern "C" __global__ void everybody(int* out) {
  cg::this_grid().sync();
  out[threadIdx.x] = 1;
}
