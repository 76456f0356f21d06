"""Small kernels for the tests of the interpreter: right ones, and each kind of fault."""

# @triton.jit functions are not Python to a type checker:
# mypy: ignore-errors

import triton
import triton.language as tl
from triton.language import program_id
from triton.language.extra import libdevice
from triton.language.extra.libdevice import cbrt


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def scale(x_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * factor)


@triton.jit
def convert(x_ptr, out_ptr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING))


@triton.jit
def product(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a = tl.load(a_ptr + m * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n)
    tl.store(out_ptr + m * N + n, tl.dot(a, b))


@triton.jit
def bf16_operations(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x * y - x / y)
    tl.store(out_ptr + BLOCK + offsets, tl.where(x < y, -x, tl.maximum(x, y)))
    tl.store(out_ptr + 2 * BLOCK + offsets, tl.cumsum(x.to(tl.float32), 0).to(tl.bfloat16))
    tl.store(out_ptr + 3 * BLOCK, tl.max(x, 0))


@triton.jit
def high_product(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.umulhi(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)))


@triton.jit
def count(index_ptr, out_ptr, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr + index, tl.full((BLOCK,), 0.5, out_ptr.dtype.element_ty))


# ------------------------------------------------------------------------------------------ reading the language


@triton.jit
def clamp(x, low, high):
    if low > high:
        low, high = high, low
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def control(x_ptr, out_ptr, n, LOW: tl.constexpr, BLOCK: tl.constexpr):
    """Loops, chained comparisons, `and`, `not`, device functions, Python's min, and builtins imported by name."""
    offsets = tl.arange(0, BLOCK)
    total = 0
    for i in range(n):
        if i % 2 == 1 and not i == 3:  # noqa: SIM201 - the `not` is what is tested
            total += i
    i = 0
    while i < n:
        i += 1
    inside = 0 <= offsets < min(n, BLOCK)
    x = tl.load(x_ptr + offsets, mask=inside, other=LOW)
    tl.store(out_ptr + offsets, clamp(x, LOW, 2.0) + total + i + program_id(0))


@triton.jit
def wraps_loop_variable(out_ptr, n):
    for i in range(n - 1, n):
        tl.store(out_ptr, i * 2)


def closing_over(factor):
    @triton.jit
    def closure(x_ptr, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * factor)

    return closure


@triton.jit
def roots(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, cbrt(x) + libdevice.cbrt(x) + tl.math.sqrt(x))


@triton.jit
def assembly(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1))


@triton.jit
def not_a_power_of_two(x_ptr):
    tl.store(x_ptr + tl.arange(0, 96), 0)


@triton.jit
def block_condition(x_ptr):
    if tl.load(x_ptr + tl.arange(0, 4)) > 0:
        tl.store(x_ptr, 0)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def heuristic(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets, mask=offsets < n)


CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


def accumulate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0), 0))


tuned_sum = triton.autotune(CONFIGS, key=["n"])(triton.jit(accumulate))
tuned_sum_restored = triton.autotune(CONFIGS, key=["n"], restore_value=["out_ptr"])(triton.jit(accumulate))
tuned_sum_reset = triton.autotune(CONFIGS, key=["n"], reset_to_zero=["out_ptr"])(triton.jit(accumulate))


# -------------------------------------------------------------------------------------------------------- bounds


@triton.jit
def copy_unmasked(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x)


@triton.jit
def copy_before(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets - 3))


@triton.jit
def copy_strided(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * stride))


@triton.jit
def copy_by_address(x_ptr, out_ptr, BLOCK: tl.constexpr):
    address = x_ptr.to(tl.int64) + tl.arange(0, BLOCK) * 4
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(address.to(tl.pointer_type(tl.float32))))


@triton.jit
def copy_from_table(table_ptr, out_ptr, BLOCK: tl.constexpr):
    x_ptr = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + offsets, tl.load(x_ptr + offsets))


@triton.jit
def copy_either(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    chosen = tl.where(offsets % 2 == 0, x_ptr + offsets, y_ptr + offsets)
    tl.store(out_ptr + offsets, tl.load(chosen))


@triton.jit
def add_past(out_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr + tl.arange(0, BLOCK), 1)


@triton.jit
def copy_described(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    out.store([0, 0], x.load([0, 0]))


# --------------------------------------------------------------------------------------------- order and lanes


@triton.jit
def hand_over(x_ptr, total_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    carry = tl.load(total_ptr + program)
    x = tl.load(x_ptr + offsets)
    tl.store(x_ptr + offsets, x + carry)
    tl.store(total_ptr + program + 1, carry + tl.sum(x, 0))


@triton.jit
def add_unordered(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x, 0))


@triton.jit
def add_locked(lock_ptr, out_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + tl.program_id(0))
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def flag(out_ptr):
    tl.store(out_ptr, 1)


@triton.jit
def scatter(index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.load(index_ptr + offsets), offsets)


@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n)
    tl.store(out_ptr + row, tl.sum(x, 0))


@triton.jit
def row_maximum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr, tl.max(tl.where(offsets < n, x, -float("inf")), 0))


@triton.jit
def zero_for_other(x_ptr, out_ptr, keep):
    tl.store(out_ptr, tl.load(x_ptr, mask=keep != 0, other=0.0))


@triton.jit
def add_once(total_ptr, flag_ptr):
    """A sum by compare-and-swap that does not try again."""
    old = tl.load(total_ptr)
    tl.atomic_cas(total_ptr, old, old + 1)


@triton.jit
def add_after_acquire(total_ptr, flag_ptr):
    """The same, by a program that sees what came before it."""
    tl.atomic_add(flag_ptr, 0, sem="acquire")
    old = tl.load(total_ptr)
    tl.atomic_cas(total_ptr, old, old + 1)


@triton.jit
def rounded_difference(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * x - x * x)


@triton.jit
def power(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp2(tl.load(x_ptr + i)))


@triton.jit
def barrier(count_ptr, N: tl.constexpr):
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < N:
        pass


@triton.jit
def counts_while_waiting(flag_ptr, out_ptr):
    turns = 0
    while tl.load(flag_ptr) == 0:
        turns += 1
    tl.store(out_ptr, turns)


@triton.jit
def counts_down(out_ptr, n):
    left = n
    while left > 0:
        left -= 1
    tl.store(out_ptr, left)


# ------------------------------------------------------------------------------------------------------ warnings


@triton.jit
def overflowing(out_ptr, n):
    tl.store(out_ptr, (n * n).to(tl.int64))


@triton.jit
def divided(x_ptr, y_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) // tl.load(y_ptr))


@triton.jit
def remainder(x_ptr, y_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) % tl.load(y_ptr))


@triton.jit
def shifted(x_ptr, y_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) << tl.load(y_ptr))


@triton.jit
def to_integer(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr).to(tl.int32))


@triton.jit
def hinted(x_ptr, out_ptr, first, MULTIPLE: tl.constexpr, RUN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.max_contiguous(tl.multiple_of(first + tl.arange(0, BLOCK), MULTIPLE), RUN)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offsets))


@triton.jit
def hinted_strided(x_ptr, out_ptr, RUN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.max_contiguous(tl.arange(0, BLOCK) * 2, RUN)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offsets))


@triton.jit
def assumed(x_ptr, n):
    tl.assume(n > 0)
    tl.store(x_ptr, n)


@triton.jit
def take_difference(a, b):
    return a - b


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def reduced(x_ptr, out_ptr, COMBINE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, BLOCK)), 0, COMBINE))


@triton.jit
def maximum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.max(tl.load(x_ptr + tl.arange(0, BLOCK)), 0))


@triton.jit
def gathered(index_ptr, x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    """A masked-off index is undefined, and may overflow: nothing comes of it."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.load(x_ptr + index * stride, mask=mask), mask=mask)


@triton.jit
def mark(out_ptr):
    tl.store(out_ptr + tl.program_id(0), 1.0)


@triton.jit
def plus_one(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


@triton.jit
def stepped(out_ptr):
    """Every second program's number, by keyword arguments, and the warps of the launch."""
    for i in tl.range(1, 8, step=3, num_stages=2):
        tl.store(out_ptr + i, i)
    for i in tl.static_range(0, 8, step=4):
        tl.store(out_ptr + i, tl.extra.cuda.num_warps())


@triton.jit
def asserted(x_ptr):
    tl.device_assert(tl.load(x_ptr) > 0, "not positive")


@triton.jit
def read_wider(x_ptr, out_ptr):
    wide = (x_ptr + 2).to(tl.pointer_type(tl.int64))
    tl.store(out_ptr, tl.load(wide))


FACTOR = tl.constexpr(3)


@triton.jit
def constants(out_ptr, BLOCK: tl.constexpr):
    """A constant's value, a global constant on the left of a product, a constant made of constants."""
    half: tl.constexpr = BLOCK.value // 2
    offsets = tl.arange(0, half.value)
    total = FACTOR * offsets
    total += FACTOR.value
    tl.store(out_ptr + offsets, total)


@triton.jit
def look_back(x_ptr, sum_ptr, done_ptr, BLOCK: tl.constexpr):
    """Each program adds to the sum of the one before it, once that says that it is done."""
    program = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + program * BLOCK + tl.arange(0, BLOCK)), 0)
    if program > 0:
        while tl.atomic_add(done_ptr + program - 1, 0, sem="acquire") == 0:
            pass
        total += tl.load(sum_ptr + program - 1)
    tl.store(sum_ptr + program, total)
    tl.atomic_xchg(done_ptr + program, 1, sem="release")


# --------------------------------------------------------------------------------------- what orders programs


@triton.jit
def last_one_sums(x_ptr, part_ptr, count_ptr, out_ptr, PROGRAMS: tl.constexpr, SEM: tl.constexpr):
    tl.store(part_ptr + tl.program_id(0), tl.load(x_ptr + tl.program_id(0)))
    if tl.atomic_add(count_ptr, 1, sem=SEM) == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def add_own(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + 1)


@triton.jit
def place_of_maximum(x_ptr, out_ptr, LEFT: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.argmax(x, 0, tie_break_left=LEFT))


@triton.jit
def keep_later(a, i, b, j):
    return tl.maximum(a, b), tl.where(a > b, i, j)


@triton.jit
def place_by_hand(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _, place = tl.reduce((tl.load(x_ptr + i), i), 0, keep_later)
    tl.store(out_ptr, place)


@triton.jit
def picked(x_ptr, index_ptr, out_ptr, FALLBACK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i)
    found = tl.gather(tl.load(x_ptr + i), index, 0)
    if FALLBACK:
        found = tl.where((index >= 0) & (index < BLOCK), found, 0.0)
    tl.store(out_ptr + i, found)


@triton.jit
def binned(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)), BINS)
    tl.store(out_ptr + tl.arange(0, BINS), counts)


@triton.jit
def quotient(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x / x)


@triton.jit
def quotient_by_power(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) / 8.0)


@triton.jit
def root(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sqrt(tl.load(x_ptr + i)))


@triton.jit
def described_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [BLOCK, columns], [columns, 1], [BLOCK, BLOCK])
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + at, x.load([0, 0]))


@triton.jit
def reciprocal_root(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.rsqrt(tl.load(x_ptr + i)))


@triton.jit
def poll(flags_ptr, out_ptr, AHEAD: tl.constexpr):
    """Each program waits for the one before it, or with AHEAD for one that comes after."""
    program = tl.program_id(0)
    if program + AHEAD > 0:
        tl.atomic_poll(flags_ptr + program + AHEAD, 1)
    tl.store(out_ptr + program, 1)
    tl.atomic_xchg(flags_ptr + program + 1, 1)


@triton.jit
def count_in_scope(count_ptr, SCOPE: tl.constexpr):
    tl.atomic_add(count_ptr, 1, scope=SCOPE)


@triton.jit
def claim(count_ptr, out_ptr, SEM: tl.constexpr):
    """Programs store different values to one element, each with an atomic of its own before."""
    tl.atomic_add(count_ptr + tl.program_id(0), 1, sem=SEM)
    tl.store(out_ptr, tl.program_id(0))


@triton.jit
def mark_rows(out_ptr, stride, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * stride + columns, 1.0, mask=columns < N)


@triton.jit
def shift_right(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) >> 4)


@triton.jit
def difference(a, b):
    return a - b


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scanned(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.associative_scan(tl.load(x_ptr + i), 0, difference))


@triton.jit
def scanned_back(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a_ptr + i), tl.load(b_ptr + i)), 0, recurrence, reverse=True)
    tl.store(out_ptr + i, h)
    tl.store(out_ptr + BLOCK + i, tl.cumsum(tl.load(b_ptr + i), 0, reverse=True))


@triton.jit
def add_under_lock(locks_ptr, out_ptr, LOCKS: tl.constexpr):
    """Programs add to one element, under one lock of several."""
    lock = locks_ptr + tl.program_id(0) % LOCKS
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def pass_through(flags_ptr, kept_ptr, out_ptr, LINKED: tl.constexpr):
    """The first program stores, the third reads; the second waits for the one and is waited for by the other."""
    program = tl.program_id(0)
    if program == 0:
        tl.store(kept_ptr, 5)
    if program == 1 and LINKED:
        while tl.atomic_add(flags_ptr, 0, sem="acquire") == 0:
            pass
    if program == 2:
        while tl.atomic_add(flags_ptr + 1, 0, sem="acquire") == 0:
            pass
        tl.store(out_ptr, tl.load(kept_ptr))
    tl.atomic_xchg(flags_ptr + program, 1, sem="release")
