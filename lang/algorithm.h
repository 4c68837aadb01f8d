/* algorithm.h: a collective algorithm as a value: for each rank some channels, each a list of primitive
 * steps over chunks of named buffers. Generated (passes/algorithms/), read from files or synthesised:
 * every one is of this type.
 *
 * Place in the pipeline: beside plans. A backend executes it, the simulator times it, the cost model
 * counts its bytes (ccn__algorithm_traffic), the validator (algorithm_check.c) proves it, the executor
 * (algorithm_run.c) gives its bits.
 *
 * Chunks. The data of a collective are `pieces`, numbered; how many elements a piece has is said when the
 * algorithm is used (`count[piece]`, any number, 0 too), so one value serves every size. A buffer's chunk
 * holds one piece:
 *   allreduce, reduce, broadcast: slices x chunks; the elements cut in `slices` by the slice map (language
 *     reference, section 5), each again in `chunks`. Piece p is chunk p mod chunks of slice p / chunks.
 *   reducescatter, scatter, allgather, gather: the same with slices = ranks; slice r is rank r's.
 *   alltoall: ranks x ranks x chunks; piece (s*ranks + d)*chunks + j is part j of what goes from s to d.
 *   shift, permute: `chunks`; each rank's whole value, the same sizes everywhere.
 * `in` is what a rank contributes, all of its pieces in order (alltoall: by receiver), `out` what it gets
 * (alltoall: by sender), `scratch` what the algorithm says. A root's buffer is empty elsewhere. `inplace`:
 * in and out are the same memory, where a rank's smaller one is its part of the larger one.
 *
 * Widths. A contribution is in the tensor's dtype, also in messages; a sum of contributions is in the
 * accumulation dtype ("wide") until a step finishes it: divides it for `avg` and rounds it to the dtype,
 * once. So what is in `in` and `out`, and what was finished, is narrow; what was combined and not finished
 * is wide. Scratch says which of both each chunk holds. A REGISTER chunk is no memory: one channel's value
 * between two steps, of either width.
 *
 * Steps of a channel are done in order, each waits besides for one step of another channel of its rank
 * (`after`). Messages of a connection (sender, receiver, link) arrive in order; at most `capacity` of them
 * are on their way, and one is until the step that receives it is done. A connection has one sending and
 * one receiving channel. A step that receives and sends waits for both, then does all at once. `from` and
 * `to` of `copy` and `reduce` are ranks in whose memory src and dst lie (direct access); that is ordered
 * by barriers or messages, both behind the peer's start and before its end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_ALGORITHM_H
#define CCN_LANG_ALGORITHM_H

#include "order.h"

/* ---- the type -------------------------------------------------------------------------------- */

typedef enum ccn__prim {
#define PRIM(id, name, does, doc) CCN__PRIM_##id,
#include "prims.def"
#undef PRIM
  CCN__PRIM_COUNT
} ccn__prim;

enum { CCN__DOES_RECV = 1, CCN__DOES_SEND = 2, CCN__DOES_SRC = 4, CCN__DOES_DST = 8, CCN__DOES_ACC = 16 };
extern const struct ccn__prim_info {
  const char *name;
  uint8_t does;
  const char *doc;
} ccn__prim_table[CCN__PRIM_COUNT];
bool ccn__prim_combines(ccn__prim p);

typedef enum ccn__algo_buf { CCN__BUF_IN, CCN__BUF_OUT, CCN__BUF_SCRATCH, CCN__BUF_COUNT } ccn__algo_buf;
extern const char *const ccn__algo_buf_name[CCN__BUF_COUNT];

typedef enum ccn__algo_flag {
  CCN__ALGO_FROM_WIDE = 1, /* the message received is a sum in the accumulation dtype */
  CCN__ALGO_TO_WIDE = 2,   /* the message sent is one */
  CCN__ALGO_FINISH =
    4,               /* the value is complete: divided for avg, rounded to the dtype, then stored and sent */
  CCN__ALGO_SWAP = 8 /* the operands of the combination change places */
} ccn__algo_flag;

#define CCN__NO_CHANNEL UINT32_MAX
typedef struct ccn__algo_step {
  uint8_t prim, flags;             /* ccn__prim, ccn__algo_flag */
  uint8_t src_buf, dst_buf;        /* ccn__algo_buf */
  uint16_t from, to;               /* peers, or CCN__NOBODY */
  uint32_t src, dst;               /* first chunk */
  uint32_t count;                  /* chunks; one message whatever the count */
  uint16_t src_stride, dst_stride; /* from chunk to chunk */
  uint32_t after_channel,
    after_step; /* waits until that step of this rank is done; CCN__NO_CHANNEL: for none */
} ccn__algo_step;
_Static_assert(sizeof(ccn__algo_step) == 32, "there are millions of them");

typedef struct ccn__algo_channel {
  /* The number of its connections: what it sends over link l arrives at the peer's channel of link l. */
  uint32_t link;
  CCN__VEC(ccn__algo_step) steps;
} ccn__algo_channel;

typedef enum ccn__algo_width { CCN__NARROW, CCN__WIDE, CCN__REGISTER, CCN__WIDTHS } ccn__algo_width;
typedef struct ccn__algo_slot {
  uint32_t piece; /* whose size it has */
  uint8_t width;
} ccn__algo_slot;

typedef struct ccn__algo_rank {
  CCN__VEC(ccn__algo_slot) scratch;
  CCN__VEC(ccn__algo_channel) channels;
} ccn__algo_rank;

typedef enum ccn__protocol { CCN__SIMPLE, CCN__LL, CCN__LL128, CCN__PROTOCOLS } ccn__protocol;
extern const char *const ccn__protocol_name[CCN__PROTOCOLS];

typedef struct ccn__algorithm {
  ccn__arena *arena;
  const char *name;
  ccn__op op; /* the collective it realises */
  uint32_t nranks;
  uint32_t root; /* of reduce, gather, broadcast, scatter */
  const uint16_t
    *source; /* of shift, permute: whose value rank r gets, or CCN__NOBODY (it has no `out` then) */
  uint32_t slices, chunks; /* see above */
  bool equal;              /* pieces must all have one size (MSCCL files): a chunk may then hold any piece */
  bool inplace;
  uint8_t protocol;  /* how messages are moved: bytes a flag of LL and LL128 cost are the cost model's */
  uint32_t capacity; /* messages on their way on each connection, at least 1 */
  int64_t min_bytes, max_bytes; /* sizes of the tensor it is meant for; max 0: no limit */
  int64_t order;                /* packed (order.h); of what only moves: CCN__ORDER_RANK */
  const ccn__merge *merges;     /* if not NULL the order is this instead: nranks - 1 merges for each slice */
  ccn__algo_rank *rank;
} ccn__algorithm;

bool ccn__algorithm_reduces(const ccn__algorithm *a); /* allreduce, reduce, reducescatter */
/* Whether there is a buffer `in`, `out` on the rank, and how many chunks it has. */
uint32_t ccn__algorithm_chunks(const ccn__algorithm *a, uint32_t rank, ccn__algo_buf buf);
uint32_t ccn__algorithm_pieces(const ccn__algorithm *a);
/* The piece in chunk i of a buffer; i is in range. */
uint32_t ccn__algorithm_piece(const ccn__algorithm *a, uint32_t rank, ccn__algo_buf buf, uint32_t i);
/* Whose contribution of the piece a rank that wants it gets, if the collective only moves. */
uint32_t ccn__algorithm_owner(const ccn__algorithm *a, uint32_t rank, uint32_t piece);
/* The expression of a piece's sum: fills nranks - 1 merges, returns the lane of the sum. */
uint32_t ccn__algorithm_merges(const ccn__algorithm *a, uint32_t piece, ccn__merge *out);

/* ---- sizes ----------------------------------------------------------------------------------- */

/* count[piece] of a value cut along one dim of `extent` in multiples of `unit`, `inner` elements to each
 * index. Of shift and permute the value is not cut into slices; of alltoall this gives blocks of equal
 * size along the dim. */
void ccn__algorithm_counts(const ccn__algorithm *a, int64_t extent, int64_t unit, int64_t inner,
                           int64_t *count);
/* Of an alltoall from slices of dim D to slices of dim E, `inner` elements to each pair of indices. */
void ccn__algorithm_counts2(const ccn__algorithm *a, int64_t d, int64_t d_unit, int64_t e, int64_t e_unit,
                            int64_t inner, int64_t *count);

/* What a rank moves. Elements of `item` bytes, sums of `acc` bytes. Chunks in registers cost nothing. */
typedef struct ccn__algo_traffic {
  int64_t sent, received; /* bytes of messages */
  int64_t messages;       /* sent */
  int64_t loaded, stored; /* bytes read from, written to peers' memory by this rank */
  int64_t read, written;  /* bytes of its own memory, by this rank */
  int64_t combined;       /* elements that were added to another */
  uint32_t steps, barriers;
} ccn__algo_traffic;
void ccn__algorithm_traffic(const ccn__algorithm *a, uint32_t rank, const int64_t *count, int64_t item,
                            int64_t acc, ccn__algo_traffic *out);

/* ---- making ---------------------------------------------------------------------------------- */

/* Without channels; capacity 2, order rank, 1 slice a rank, 1 chunk. Everything lives in the arena. */
ccn__algorithm *ccn__algorithm_new(ccn__arena *arena, const char *name, ccn__op op, uint32_t nranks);
uint32_t ccn__algorithm_channel(ccn__algorithm *a, uint32_t rank, uint32_t link); /* its number on the rank */
uint32_t ccn__algorithm_scratch(ccn__algorithm *a, uint32_t rank, uint32_t piece, ccn__algo_width width);
/* A step with count 1, strides 1, no peers; waits for none. */
ccn__algo_step *ccn__algorithm_step(ccn__algorithm *a, uint32_t rank, uint32_t channel, ccn__prim prim);

/* ---- validation (algorithm_check.c, algorithm_races.c) --------------------------------------- */

typedef enum ccn__algo_fault_kind {
  CCN__FAULT_NONE,
  CCN__FAULT_FORM, /* a number out of range, a peer that a step has no use for, two senders on a connection */
  CCN__FAULT_STUCK,  /* deadlock, or a message that nobody sends */
  CCN__FAULT_UNREAD, /* a message that nobody receives */
  CCN__FAULT_VALUE,  /* nothing there, the wrong piece, a sum where none fits */
  CCN__FAULT_RESULT, /* a result that lacks a contribution, has one twice, or adds in another order */
  CCN__FAULT_RACE    /* two accesses of one chunk of which one writes, and nothing orders them */
} ccn__algo_fault_kind;

typedef struct ccn__algo_fault {
  ccn__algo_fault_kind kind;
  uint32_t rank, channel, step; /* where; channel and step are CCN__NO_CHANNEL of a RESULT */
  uint32_t chunk;               /* of the buffer that the text names, or CCN__NO_CHANNEL */
  const char *text;             /* in words; of STUCK the cycle; in the arena passed */
} ccn__algo_fault;

/* Proves that for every size and every interleaving the algorithm ends, each result has each contribution
 * exactly once in the declared order (of `any`: in some order), and no two accesses conflict. Time and
 * memory grow with the number of steps; the search for races with steps times channels where channels
 * share memory. False: *out says what is wrong first. The value may be anything that has its arrays. */
bool ccn__algorithm_check(const ccn__algorithm *a, ccn__arena *scratch, ccn__algo_fault *out);

/* ---- execution on data (algorithm_run.c) ----------------------------------------------------- */

typedef struct ccn__algo_data {
  ccn__dtype dtype, acc; /* acc: ccn__dtype_acc(dtype), unless somebody chose another */
  ccn__redop redop;      /* CCN__RED_NONE if the collective only moves */
  const int64_t *count;  /* of each piece */
  const void *const *in; /* of each rank: its chunks one behind the other; NULL where there are none */
  void *const *out;      /* the same; may be the same memory as in, if the algorithm is `inplace` */
  uint64_t seed;         /* which of the ready channels goes on is drawn from it */
} ccn__algo_data;

/* All ranks in one thread, in some legal interleaving. The algorithm has passed the check. False: `equal`
 * and the pieces have different sizes. Scratch memory comes from the arena. */
bool ccn__algorithm_run(const ccn__algorithm *a, const ccn__algo_data *d, ccn__arena *scratch);

/* ---- text (algorithm_text.c, algorithm_json.c) ----------------------------------------------- */

/* Print and read back exactly. Readers take anything: NULL and *out_error, a text in the arena with a line
 * (of JSON none), if it is no algorithm. What was read is not checked yet. */
void ccn__algorithm_print(const ccn__algorithm *a, ccn__text *out);
ccn__algorithm *ccn__algorithm_read(ccn__arena *arena, const char *text, size_t size, const char **out_error);
void ccn__algorithm_print_json(const ccn__algorithm *a, ccn__text *out);
ccn__algorithm *ccn__algorithm_read_json(ccn__arena *arena, const char *text, size_t size,
                                         const char **out_error);
void ccn__algo_step_print(const ccn__algo_step *s, ccn__text *out); /* "send in[3] to 1" */
/* For people: a table with a column a rank and a row a step of each channel. */
void ccn__algorithm_picture(const ccn__algorithm *a, ccn__text *out);

#endif
