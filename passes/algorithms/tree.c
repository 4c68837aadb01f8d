/* tree.c
 * Purpose: all-reduce, reduce and broadcast over one binary tree: sums go up to the root, results down.
 * Needs:   nothing. The chunks follow each other, so with many of them every link works all the time.
 * Order:   binary, (left + own) + right; the root of a reduce is the root of the tree.
 * Source:  the tree of NCCL; Sanders, Speck, Traeff, "Two-tree algorithms", Parallel Computing 2009.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

typedef struct node {
  ccn__builder b;
  uint32_t up, left, right; /* ranks, or CCN__NOBODY */
  bool left_leaf, right_leaf;
} node;

static uint32_t rank_of(const ccn__algorithm *a, const ccn__btree_plan *t, uint32_t position) {
  return position == CCN__NOBODY ? CCN__NOBODY : t->rank_at(a->nranks, t->turn, position);
}

static bool is_leaf(const ccn__algorithm *a, uint32_t position) {
  const ccn__btree x = ccn__btree_at(a->nranks, position);
  return x.left == CCN__NOBODY && x.right == CCN__NOBODY;
}

static node find_node(ccn__algorithm *a, const ccn__btree_plan *t, uint32_t position) {
  const ccn__btree x = ccn__btree_at(a->nranks, position);
  return (node){.b = {a, rank_of(a, t, position), 0, 1},
                .up = rank_of(a, t, x.up),
                .left = rank_of(a, t, x.left),
                .right = rank_of(a, t, x.right),
                .left_leaf = x.left != CCN__NOBODY && is_leaf(a, x.left),
                .right_leaf = x.right != CCN__NOBODY && is_leaf(a, x.right)};
}

/* What came from `child` and what is at src, to the parent, or at the root finished to out. */
static void pass_up(node *x, uint32_t c, uint32_t child, bool child_leaf, ccn__at src, bool src_first) {
  const uint8_t flags = (child_leaf ? 0 : CCN__ALGO_FROM_WIDE) | (src_first ? CCN__ALGO_SWAP : 0);
  ccn__algo_step *s;
  if (x->up == CCN__NOBODY) {
    s = ccn__build_both(&x->b, CCN__PRIM_RECV_REDUCE_COPY, ccn__out(c, 1), src, flags | CCN__ALGO_FINISH);
  } else {
    s = ccn__build_send(&x->b, src, x->up, flags | CCN__ALGO_TO_WIDE);
    s->prim = CCN__PRIM_RECV_REDUCE_SEND;
  }
  s->from = (uint16_t)child;
}

static void go_up(node *x, uint32_t c) {
  const ccn__at in = ccn__in(c, 1);
  if (x->left != CCN__NOBODY && x->right != CCN__NOBODY) {
    const ccn__at reg = ccn__scratch(ccn__algorithm_scratch(x->b.a, x->b.rank, c, CCN__WIDE), 1);
    ccn__build_both(&x->b, CCN__PRIM_RECV_REDUCE_COPY, reg, in, x->left_leaf ? 0 : CCN__ALGO_FROM_WIDE)
      ->from = (uint16_t)x->left;
    pass_up(x, c, x->right, x->right_leaf, reg, true);
  } else if (x->left != CCN__NOBODY) {
    pass_up(x, c, x->left, x->left_leaf, in, false);
  } else if (x->right != CCN__NOBODY) {
    pass_up(x, c, x->right, x->right_leaf, in, true);
  } else if (x->up != CCN__NOBODY) {
    ccn__build_send(&x->b, in, x->up, 0);
  } else {
    ccn__build_both(&x->b, CCN__PRIM_COPY, ccn__out(c, 1), in, CCN__ALGO_FINISH);
  }
}

/* The root's result is made by step `made` of channel `up`; without it the input is what is broadcast. */
static void go_down(node *x, uint32_t c, uint32_t up, uint32_t made) {
  const uint32_t child[2] = {x->left, x->right};
  ccn__algo_step *s = NULL;
  if (x->up != CCN__NOBODY) s = ccn__build_recv(&x->b, ccn__out(c, 1), x->up, 0);
  else if (up == CCN__NO_CHANNEL) ccn__build_both(&x->b, CCN__PRIM_COPY, ccn__out(c, 1), ccn__in(c, 1), 0);
  for (int i = 0; i < 2; i++) {
    if (child[i] == CCN__NOBODY) continue;
    if (s) { /* the first child gets it as it comes */
      s->prim = CCN__PRIM_RECV_COPY_SEND;
      s->to = (uint16_t)child[i];
      s = NULL;
      continue;
    }
    ccn__algo_step *send = ccn__build_send(&x->b, ccn__out(c, 1), child[i], 0);
    if (x->up != CCN__NOBODY || up == CCN__NO_CHANNEL) continue;
    send->after_channel = up;
    send->after_step = made;
  }
}

void ccn__build_btree(ccn__algorithm *a, const ccn__btree_plan *t) {
  for (uint32_t p = 0; p < a->nranks; p++) {
    node x = find_node(a, t, p);
    for (uint32_t c = t->chunk; c < t->chunk + t->chunks; c++) {
      uint32_t made = 0;
      if (t->up != CCN__NO_CHANNEL) {
        x.b.channel = t->up;
        go_up(&x, c);
        made = a->rank[x.b.rank].channels.at[t->up].steps.n - 1;
      }
      x.b.channel = t->down;
      if (t->down != CCN__NO_CHANNEL) go_down(&x, c, t->up, made);
    }
  }
}

static uint32_t turned(uint32_t n, uint32_t turn, uint32_t position) { return (position + turn) % n; }

void ccn__generate_tree(ccn__algorithm *a, const ccn__algo_want *want) {
  const bool up = a->op != CCN__OP_BROADCAST, down = a->op != CCN__OP_REDUCE;
  a->slices = 1;
  for (uint32_t r = 0; r < a->nranks; r++)
    for (uint32_t c = 0; c < (uint32_t)up + down; c++) ccn__algorithm_channel(a, r, c);
  const ccn__btree_plan t = {.rank_at = turned,
                             .turn = a->op == CCN__OP_ALLREDUCE ? 0 : a->root,
                             .chunks = want->chunks,
                             .up = up ? 0 : CCN__NO_CHANNEL,
                             .down = down ? (uint32_t)up : CCN__NO_CHANNEL};
  ccn__build_btree(a, &t);
}
