/* script_type.c: types as script values: f32[n, 3] sliced(0) over tp, with every size known.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

/* ---- dims ---------------------------------------------------------------------------------------------- */

typedef struct open_names { /* unknown names of a type that load() matches with the file */
  bool allowed;
  uint32_t n;
  ccn__name at[CCN__MAX_RANK];
} open_names;

static int64_t open_number(open_names *o, ccn__name name) {
  uint32_t i = 0;
  while (i < o->n && o->at[i] != name) i++;
  if (i == o->n) o->at[o->n++] = name; /* at most one a dim */
  return -1 - (int64_t)i;
}

static int64_t dim_of(ccn__rt *rt, ccn__env *env, const ccn__ast *e, open_names *open) {
  if (e->kind == CCN__AST_STAR)
    ccn__fail(rt, 805, e->span, "no size",
              "[*] stands in the parameters of programs; a bundle is a list of tensors",
              "a type in a script has sizes");
  if (open->allowed && e->kind == CCN__AST_NAME && !ccn__env_lookup(env, e->name))
    return open_number(open, e->name);
  int64_t n = ccn__whole(rt, ccn__eval(rt, env, e), e->span, "a dim");
  if (n < 0)
    ccn__fail(rt, 310, e->span, "negative", "sizes are 0 or more", "a dim cannot be %lld", (long long)n);
  return n;
}

/* ---- placements ---------------------------------------------------------------------------------------- */

static uint32_t axis_of(ccn__rt *rt, const ccn__ast *e) {
  ccn__nearest near;
  ccn__nearest_init(&near, e->name);
  for (uint32_t a = 0; a < rt->mesh.naxes; a++) {
    if (rt->mesh.name[a] == e->name) return a;
    ccn__nearest_try(&near, rt->mesh.name[a]);
  }
  ccn__diag *d = ccn__error(rt->diags, 311, e->span, "no such axis", "the mesh has no axis `%s`", e->name);
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(rt->diags, d, "axes are declared in the script's first statement: mesh (dp)");
  ccn__rt_raise(rt, d);
}

/* The axes of a placement as a bit mask. */
static uint32_t axes_of(ccn__rt *rt, const ccn__ast *place, bool every) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < place->axes.n; i++) mask |= 1u << axis_of(rt, place->axes.at[i]);
  if (mask) return mask;
  if (every) return (1u << rt->mesh.naxes) - 1;
  if (rt->mesh.naxes == 1) return 1;
  if (rt->mesh.naxes == 0)
    ccn__fail(rt, 300, place->span, "over which axis?", "begin the script with a mesh: mesh (dp)",
              "there is no mesh to place values on");
  ccn__fail(rt, 307, place->span, "over which axis?", "name it: sliced(0) over tp",
            "the mesh has %u axes, and the placement names none", rt->mesh.naxes);
}

static const ccn__ast *argument(const ccn__ast *place, const char *name, uint32_t position) {
  for (uint32_t i = 0; i < place->list.n; i++) {
    const ccn__ast *a = place->list.at[i];
    if (a->name ? strcmp(a->name, name) == 0 : i == position) return a->a;
  }
  return NULL;
}

static void check_arguments(ccn__rt *rt, const ccn__ast *place, const char *first, const char *second) {
  for (uint32_t i = 0; i < place->list.n; i++) {
    const ccn__ast *a = place->list.at[i];
    bool known = a->name ? strcmp(a->name, first) == 0 || (second && strcmp(a->name, second) == 0) : i == 0;
    if (!known)
      ccn__fail(rt, 806, a->name ? a->nspan : a->span, "not known",
                "placements are sliced(0), sliced(0, unit: 64), partial(sum), at(2)",
                "`%s` has no such argument", place->name);
  }
  if (!argument(place, first, 0))
    ccn__fail(rt, 800, place->span, "incomplete",
              "placements are sliced(0), sliced(0, unit: 64), partial(sum), at(2)", "`%s` needs its %s",
              place->name, first);
}

static ccn__cplace sliced(ccn__rt *rt, ccn__env *env, const ccn__ast *place, const ccn__typeval *t) {
  check_arguments(rt, place, "dim", "unit");
  const ccn__ast *dim = argument(place, "dim", 0), *unit = argument(place, "unit", UINT32_MAX);
  ccn__cplace p = {.kind = CCN__SLICED, .unit = 1};
  int64_t d = ccn__whole(rt, ccn__eval(rt, env, dim), dim->span, "the dim of a slice");
  if (d < -(int64_t)t->rank || d >= t->rank)
    ccn__fail(rt, 309, dim->span, "no such dim", "dims go from 0 to the rank - 1, or from the end with -1",
              "a tensor of rank %u has no dim %lld", t->rank, (long long)d);
  p.dim = (uint16_t)(d < 0 ? d + t->rank : d);
  if (unit) p.unit = ccn__whole(rt, ccn__eval(rt, env, unit), unit->span, "a unit");
  if (p.unit < 1)
    ccn__fail(rt, 310, unit->span, "not positive", "units are 1 or more", "a unit cannot be %lld",
              (long long)p.unit);
  return p;
}

static ccn__cplace partial(ccn__rt *rt, const ccn__ast *place) {
  check_arguments(rt, place, "op", NULL);
  const ccn__ast *op = argument(place, "op", 0);
  ccn__redop r = CCN__RED_NONE;
  if (op->kind != CCN__AST_NAME || !ccn__redop_find(op->name, &r) || r == CCN__RED_AVG)
    ccn__fail(rt, 801, op->span, "no such operator", "a value owes sum, prod, max or min",
              "this is no operator that a value can owe");
  return (ccn__cplace){.kind = CCN__PARTIAL, .op = (uint8_t)r, .unit = 1};
}

static ccn__cplace at_coordinate(ccn__rt *rt, ccn__env *env, const ccn__ast *place, uint32_t mask) {
  check_arguments(rt, place, "coordinate", NULL);
  const ccn__ast *e = argument(place, "coordinate", 0);
  int64_t i = ccn__whole(rt, ccn__eval(rt, env, e), e->span, "a coordinate");
  for (uint32_t a = 0; a < rt->mesh.naxes; a++)
    if ((mask >> a & 1) && (i < 0 || i >= rt->mesh.size[a]))
      ccn__fail(rt, 308, e->span, "outside", "coordinates go from 0 to the axis's size - 1",
                "axis `%s` has no coordinate %lld", rt->mesh.name[a], (long long)i);
  return (ccn__cplace){.kind = CCN__AT, .coord = (int32_t)i, .unit = 1};
}

static void place_type(ccn__rt *rt, ccn__env *env, const ccn__ast *place, ccn__typeval *t, uint32_t *taken) {
  static const char *const kinds[] = {"replicated", "sliced", "local", "partial", "at"};
  uint32_t kind = 0;
  while (kind < CCN__COUNT(kinds) - 1 && strcmp(kinds[kind], place->name)) kind++;
  uint32_t mask = axes_of(rt, place, kind == CCN__REPLICATED || kind == CCN__LOCAL);
  if (mask & *taken)
    ccn__fail(rt, 307, place->span, "once more", "give each axis one placement",
              "two placements over one axis");
  *taken |= mask;
  ccn__cplace p = {.kind = (uint8_t)kind, .unit = 1};
  if (kind == CCN__SLICED) p = sliced(rt, env, place, t);
  if (kind == CCN__PARTIAL) p = partial(rt, place);
  if (kind == CCN__PARTIAL && t->dtype == CCN__BOOL && p.op != CCN__RED_MAX && p.op != CCN__RED_MIN)
    ccn__fail(rt, 104, place->span, "not for bool",
              "a bool owes partial(max), which is any, or partial(min), which is all",
              "booleans are not added or multiplied");
  if (kind == CCN__AT) p = at_coordinate(rt, env, place, mask);
  for (uint32_t a = 0; a < rt->mesh.naxes; a++)
    if (mask >> a & 1) t->place[a] = p;
}

/* ---- types --------------------------------------------------------------------------------------------- */

ccn__val ccn__eval_type(ccn__rt *rt, ccn__env *env, const ccn__ast *e, bool open) {
  open_names names = {.allowed = open};
  ccn__dtype dtype;
  uint32_t taken = 0;
  if (e->kind != CCN__AST_TENSOR_TYPE)
    ccn__fail(rt, 805, e->span, "not a type", "types are written f32[n, 3] sliced(0)", "expected a type");
  if (!ccn__dtype_find(e->name, &dtype) || ccn__dtype_size(dtype) == 0)
    ccn__fail(rt, 100, e->nspan, "not available", "the dtypes are f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool",
              "there are no tensors of `%s` yet", e->name);
  if (e->list.n > CCN__MAX_RANK)
    ccn__fail(rt, 208, e->list.at[CCN__MAX_RANK]->span, "one dim too many", "reshape it to fewer dims",
              "a tensor has at most %d dims", CCN__MAX_RANK);
  ccn__typeval *t = ccn__obj_new(rt, CCN__V_TYPE, sizeof *t);
  t->dtype = (uint8_t)dtype;
  t->rank = (uint8_t)e->list.n;
  t->naxes = (uint8_t)rt->mesh.naxes;
  t->has_dims = e->op == 1;
  for (uint32_t d = 0; d < e->list.n; d++) t->dim[d] = dim_of(rt, env, e->list.at[d], &names);
  for (uint32_t a = 0; a < rt->mesh.naxes; a++) t->place[a].unit = 1;
  for (uint32_t i = 0; i < e->params.n; i++) place_type(rt, env, e->params.at[i], t, &taken);
  return (ccn__val){.kind = CCN__V_TYPE, .type = t};
}
