// Planted faults and, from the same lines, their near misses: NAME_bad and NAME_ok.
// All kernels run as 2 blocks of 128 threads; in and out hold 256 integers.
// A mark such as `//! read` names the line for the tests.
#define KERNEL(name)                                                                \
  extern "C" __global__ void name##_bad(int* out, int* in) { name<true>(out, in); } \
  extern "C" __global__ void name##_ok(int* out, int* in) { name<false>(out, in); }
#define BODY template <bool BAD> __device__ __forceinline__ void
#define T int(threadIdx.x)
#define I int(blockIdx.x * blockDim.x + threadIdx.x)

// --- shared_race ---------------------------------------------------------------------------------
BODY reverse(int* out, int* in) {  // no barrier between the store and the loads of it
  __shared__ int s[128];
  s[T] = in[I];  //! reverse write
  if (!BAD) __syncthreads();
  out[I] = s[127 - T];  //! reverse read
}
KERNEL(reverse)

BODY next_turn(int* out, int* in) {  // a loop without the second barrier
  __shared__ int s[128];
  int sum = 0;
  for (int turn = 0; turn < 3; turn++) {
    s[T] = in[I] + turn;  //! next_turn write
    __syncthreads();
    sum += s[(T + 64) % 128];  //! next_turn read
    if (!BAD) __syncthreads();
  }
  out[I] = sum;
}
KERNEL(next_turn)

BODY lock_step(int* out, int* in) {  // a tree of one warp that trusts in lock step
  __shared__ volatile int s[128];
  s[T] = in[I];
  __syncthreads();
  if (T < 32) {
    for (int half = 16; half; half /= 2) {
      int mine = s[T];
      int other = T < half ? s[T + half] : 0;  //! lock_step read
      if (!BAD) __syncwarp();
      s[T] = mine + other;  //! lock_step write
      if (!BAD) __syncwarp();
    }
  }
  __syncthreads();
  out[I] = s[0];
}
KERNEL(lock_step)

BODY mixed(int* out, int* in) {  // a plain write beside atomic ones
  __shared__ int s;
  if (T == 0) s = 0;  //! mixed write
  if (!BAD) __syncthreads();
  atomicAdd(&s, in[I]);  //! mixed update
  __syncthreads();
  out[I] = s;
}
KERNEL(mixed)

BODY last_wins(int* out, int* in) {  // one instruction, different values
  __shared__ int s[4];
  s[T / 32] = BAD ? T : T / 32;  //! last_wins write
  __syncthreads();
  out[I] = s[T / 32];
}
KERNEL(last_wins)

BODY warp_only(int* out, int* in) {  // a warp's barrier where another warp's data is read
  __shared__ int s[128];
  s[T] = in[I];  //! warp_only write
  __syncwarp();
  out[I] = s[BAD ? (T + 32) % 128 : T ^ 1];  //! warp_only read
}
KERNEL(warp_only)

BODY half_warp(int* out, int* in) {  // the halves of a warp meet apart, and read each other's
  __shared__ int s[128];
  s[T] = in[I];  //! half_warp write
  __syncwarp(T % 32 < 16 ? 0xffff : 0xffff0000);
  out[I] = s[BAD ? T ^ 16 : T ^ 8];  //! half_warp read
}
KERNEL(half_warp)

BODY bytes(int* out, int* in) {  // a word is read over a byte that another thread writes
  __shared__ __align__(4) unsigned char s[128 * 4];
  for (int i = 0; i < 4; i++) s[T * 4 + i] = in[I] >> 8 * i;
  __syncthreads();
  if (T % 2) s[(BAD ? T - 1 : T) * 4 + 3] = 7;  //! bytes write
  out[I] = *(int*)&s[T * 4];  //! bytes read
}
KERNEL(bytes)

BODY branch(int* out, int* in) {  // two ways of a branch touch the same place
  __shared__ int s[128];
  s[T] = 0;
  __syncthreads();
  if (T < 64) {
    s[T] = in[I];  //! branch write
  } else {
    out[I] = s[BAD ? T - 64 : T];  //! branch read
  }
}
KERNEL(branch)

// --- initialised ---------------------------------------------------------------------------------
BODY half_filled(int* out, int* in) {
  __shared__ int s[128];
  if (T < (BAD ? 96 : 128)) s[T] = in[I];
  __syncthreads();
  out[I] = s[T ^ 1];  //! half_filled read
}
KERNEL(half_filled)

BODY halo(int* out, int* in) {  // the borders of a stencil are nobody's
  __shared__ int s[130];
  s[T + 1] = in[I];
  if (!BAD && T == 0) s[0] = s[129] = 0;
  __syncthreads();
  out[I] = s[T] + s[T + 2];  //! halo read
}
KERNEL(halo)

BODY count(int* out, int* in) {  // an atomic counter that starts as it is
  __shared__ int s;
  if (!BAD && T == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, in[I]);  //! count update
  __syncthreads();
  out[I] = s;
}
KERNEL(count)

BODY local_table(int* out, int* in) {
  int own[8];
  for (int i = 0; i < (BAD ? 4 : 8); i++) own[i * 5 % 8] = in[I] + i;
  out[I] = own[in[I] & 7];  //! local_table read
}
KERNEL(local_table)

BODY gap(int* out, int* in) {  // out is uninitialised: only even places were written
  if (!BAD || I % 2 == 0) out[I] = in[I];
  __syncthreads();
  in[I] = out[I];  //! gap read
}
KERNEL(gap)

// --- barrier -------------------------------------------------------------------------------------
BODY odd_barrier(int* out, int* in) {  // half of each warp waits at another place
  if (BAD ? T % 2 : T / 32 % 2) {
    out[I] = 1;
    asm volatile("bar.sync 0;");  //! odd_barrier one
  } else {
    out[I] = 2;
    asm volatile("bar.sync 0;");  //! odd_barrier other
  }
}
KERNEL(odd_barrier)

BODY numbers(int* out, int* in) {  // two barriers, each with half of the block, for ever
  if (T < 64) {
    out[I] = 1;
    asm volatile("bar.sync 1;");  //! numbers one
  } else {
    out[I] = 2;
    if (BAD) asm volatile("bar.sync 2;");  //! numbers other
    else asm volatile("bar.sync 1;");
  }
}
KERNEL(numbers)

BODY extra_turn(int* out, int* in) {  // lanes leave a loop with a barrier one after the other
  for (int i = 0; i <= (BAD ? T % 4 : T / 32); i++) {
    out[I] = i;
    asm volatile("bar.sync 0;");  //! extra_turn loop
  }
  if (BAD) asm volatile("bar.sync 0;");  //! extra_turn after
}
KERNEL(extra_turn)


BODY left_out(int* out, int* in) {  // a mask without some of those who come
  __syncwarp(BAD ? 0x7fffffff : 0xffffffff);  //! left_out meet
  out[I] = 1;
}
KERNEL(left_out)

BODY quarrel(int* out, int* in) {  // lanes that name each other with different masks
  unsigned mask = T % 32 < 16 ? 0xffff : BAD ? 0xffffff00 : 0xffff0000;
  __syncwarp(mask);  //! quarrel meet
  out[I] = 1;
}
KERNEL(quarrel)

BODY lost_lanes(int* out, int* in) {  // a shuffle waits for lanes that wait at the barrier
  if (T % 32 < 8) {
    int value = T;
    asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, %1;" : "+r"(value) : "r"(BAD ? -1 : 0xff));  //! lost_lanes meet
    out[I] = value;
    if (!BAD) return;
    asm volatile("bar.sync 0;");
  } else {
    asm volatile("bar.sync 0;");
  }
}
KERNEL(lost_lanes)

// --- global_race ---------------------------------------------------------------------------------
BODY tail(int* out, int* in) { out[BAD ? T : I] = in[I]; }  //! tail write
KERNEL(tail)

BODY flag(int* out, int* in) {  // all blocks write the same
  if (BAD ? T == 0 : I == 0) out[0] = 1;  //! flag write
}
KERNEL(flag)

BODY neighbour(int* out, int* in) {  // what another block writes is read
  in[I] = I;  //! neighbour write
  out[I] = in[BAD ? (I + 1) % 256 : I];  //! neighbour read
}
KERNEL(neighbour)

BODY total(int* out, int* in) {
  if (BAD) out[0] += in[I];  //! total write
  else atomicAdd(out, in[I]);
}
KERNEL(total)

BODY reset(int* out, int* in) {  // one block clears what another one counts in
  if (I == 0) out[BAD ? 0 : 1] = 0;  //! reset write
  if (blockIdx.x == 1) atomicAdd(out, in[I]);  //! reset update
}
KERNEL(reset)

// --- alignment -----------------------------------------------------------------------------------
BODY pairs(int* out, int* in) {
  long long two = *(long long*)(in + (BAD ? 1 : 2) * (T < 100));  //! pairs read
  out[I] = int(two);
}
KERNEL(pairs)

BODY quads(int* out, int* in) {
  *(int4*)(out + (T % 16 + 1) * (BAD ? 2 : 4)) = make_int4(1, 2, 3, in[I]);  //! quads write
}
KERNEL(quads)

BODY packed(int* out, int* in) {  // an integer at an odd place of shared memory
  __shared__ __align__(4) char s[640];
  for (int i = 0; i < 5; i++) s[T * 5 + i] = in[I];
  __syncthreads();
  out[I] = *(int*)(s + T * (BAD ? 5 : 4));  //! packed read
}
KERNEL(packed)

BODY shorts(int* out, int* in) {
  out[I] = *(unsigned short*)((char*)in + T * (BAD ? 1 : 2));  //! shorts read
}
KERNEL(shorts)

// --- shared_race, barriers of some threads --------------------------------------------------------
BODY handed_over(int* out, int* in) {  // a warp hands over to the next one, or to the one after
  __shared__ int s[128];
  int warp = T / 32;
  if (warp == 0) {
    s[T] = in[I];  //! handed_over write
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else if (warp == 1) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (!BAD) out[I] = s[T - 32];
  } else if (warp == 2) {
    if (BAD) out[I] = s[T - 64];  //! handed_over read
  }
}
KERNEL(handed_over)

BODY too_late(int* out, int* in) {  // what is written after the arrival is not handed over
  __shared__ int s[128];
  int warp = T / 32;
  if (warp == 0) {
    if (!BAD) s[T] = in[I];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    if (BAD) s[T] = in[I];  //! too_late write
  } else if (warp == 1) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[I] = s[T - 32];  //! too_late read
  }
}
KERNEL(too_late)

BODY chain(int* out, int* in) {  // from warp to warp, each with the next
  __shared__ int s[128];
  int warp = T / 32;
  if (warp == 0) {
    s[T] = in[I];  //! chain write
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else if (warp == 1) {
    if (!BAD) asm volatile("bar.sync 1, 64;" ::: "memory");
    asm volatile("bar.sync 2, 64;" ::: "memory");
    if (BAD) asm volatile("bar.sync 1, 64;" ::: "memory");
  } else if (warp == 2) {
    asm volatile("bar.sync 2, 64;" ::: "memory");
    out[I] = s[T - 64];  //! chain read
  }
}
KERNEL(chain)

// --- copies that a thread does not wait for --------------------------------------------------------
#define BEGIN_COPY(to, from)                                                 \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::                 \
                   "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from) : "memory")

BODY no_wait(int* out, int* in) {  // shared_race: read after a barrier but before the wait
  __shared__ int s[128];
  s[T] = 0;
  BEGIN_COPY(s + T, in + I);  //! no_wait write
  if (!BAD) asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[I] = s[127 - T];  //! no_wait read
  if (BAD) asm volatile("cp.async.wait_all;" ::: "memory");
}
KERNEL(no_wait)

BODY own_copy(int* out, int* in) {  // shared_race: of a thread with its own copy
  __shared__ int s[128];
  s[T] = 0;
  BEGIN_COPY(s + T, in + I);  //! own_copy write
  if (!BAD) asm volatile("cp.async.wait_all;" ::: "memory");
  out[I] = s[T];  //! own_copy read
  if (BAD) asm volatile("cp.async.wait_all;" ::: "memory");
}
KERNEL(own_copy)

BODY too_early(int* out, int* in) {  // shared_race: a copy into what others still read
  __shared__ int s[128];
  s[T] = in[I];
  __syncthreads();
  int v = s[127 - T];  //! too_early read
  if (!BAD) __syncthreads();
  BEGIN_COPY(s + T, in + T);  //! too_early write
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[I] = v + s[T];
}
KERNEL(too_early)

BODY carried(int* out, int* in) {  // initialised: a copy of what nobody wrote, read later
  __shared__ int s[128];
  if (!BAD) out[I] = 1;
  BEGIN_COPY(s + T, out + I);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  if (T < 32) in[I] = s[T];  //! carried read
}
KERNEL(carried)
