"""The cost model of SpMM's plans, as host/spmm/plan/cost_model/ has it, for arrays of candidates."""

import numpy as np

from .recorded import L1_BYTES, longest_uncut

# Where the fit starts, and how far it may go: the names are those of `Constants` in Rust.
START = {
    "memory_efficiency": 0.9,
    "l2_bytes_per_cycle": 32.0,
    "l2_share": 0.8,
    "l1_share": 0.4,
    "l1_cycles_per_line": 1.0,
    "overlap": 3.0,
    "instructions_per_nonzero": 8.0,
    "instructions_per_load": 4.0,
    "instructions_per_element": 4.0,
    "instructions_of_f64_element": 2.0,
    "instructions_of_16_bit_element": 1.5,
    "divergence": 0.1,
    "instructions_per_row_end": 60.0,
    "row_lookup": 10.0,
    "cycles_per_row_in_step": 2500.0,
    "cycles_per_nonzero_in_step": 80.0,
    "instructions_per_group": 60.0,
    "cycles_per_group": 2000.0,
    "cycles_per_batch": 600.0,
    "cycles_per_last_batch": 900.0,
    "cycles_per_binned_row": 2500.0,
    "cycles_per_step": 60.0,
    "cycles_per_added_row": 200.0,
    "l1_reuse_nonzeros": 12.0,
}

# Steps of a task in the model, unless all tasks run at the same time. Sizes are chosen after it.
STEPS = 128.0
# Where they do, the fewest steps of a task, and the part of the cycles of a task of STEPS steps that a task of any size
# takes.
LEAST_STEPS = 16.0
RESIDENT_TASK = 0.44
# Rows of up to so many nonzeros are not split, in the model, however small tasks are.
LEAST_SPLIT_ROW = 64.0
ROW_STEPS = 2.0
LAUNCH_MS = 3.0e-3
LINE = 128.0
WORD = 4.0
# The memory's time for a cache line of which a part is loaded, relative to a whole line, for random accesses.
PART_OF_LINE = 0.8
# The least time of the L2 cache for a line of which a part is loaded, relative to a whole line.
PART_OF_LINE_IN_L2 = 0.35
# Partitions of the L2 cache of both GPUs.
L2_PARTITIONS = 2
SCHEDULERS = 4.0
# Resident warps of a multiprocessor for which `in_step` divides long rows.
IN_STEP_WARPS = 24.0

# With other lanes than the usual ones, the time of `in_step` by the other formulas is multiplied by the usual lanes
# over these to this power. With more lanes that holds only from this mean row on, where each lane of a warp holds a
# nonzero. For many rows it holds up to this variation of the lengths.
OTHER_LANES_IN_STEP = 0.15
LANES_IN_STEP_ROW = 32
EVEN_ROWS = 0.25

# Waves from which on the rows of the last one have no teams.
MANY_WAVES = 8
# Mean nonzeros of a warp of a team from which on rows have it.
MIN_SHARE = 32
# Warps of the largest team.
TEAM = 4.0
# The part of the cycles of a batch of the longest row of `row_groups` that remains if all its rows of X are in the L1
# cache.
CACHED_BATCH = 0.5
# Cycles of a batch of the longest row of `row_bins` if all rows of X are in the L1 cache, extra cycles if none are, and
# extra cycles of it and of `row_groups` if all rows of X come from memory.
BINNED_BATCH_CYCLES = 305.0
BINNED_BATCH_L1_MISS_CYCLES = 361.0
BATCH_L2_MISS_CYCLES = 1200.0
# Threads of a block of `row_groups` or `row_bins`, and nonzeros of a lane that are loaded together.
GROUPS_BLOCK = 128.0
GROUPS_LOADS = 4.0
# Cycles of loading the index of a row of Y, if the rows of A are reordered.
LOOKUP_CYCLES = 250.0
# Bytes of a row in the list of rows in bins.
ITEM_BYTES = 16.0
# Cache lines of a row in a bin whose neighbours are in other bins: of Y and of its item, which is loaded twice.
LINES_OF_ROW = 3.0
# L1 time of a line of A's columns or values over that of a line of X: few of its bytes are loaded at a time.
LIST_LINE = 0.25
# The largest share of the nonzeros that end a row.
MOST_ROW_ENDS = 0.999
# The part of the used columns over which groups that started together are spread, if rows are equally long.
DRIFT = 0.1


def power_of_two(numbers):
    """The largest power of two of at most 128 that divides each number."""
    numbers = numbers.astype(int)
    return np.minimum(128, numbers & -numbers).astype(float)


def resident_warps(s):
    """Resident warps of a multiprocessor, as the registers of the measured kernels allow."""
    width = s.width
    vector = np.select(
        [s.blocks > 1, (width == 4) & (s.lanes == 32), (width == 4) | (s.lanes == 16)], [28.0, 32.0, 28.0], 36.0
    )
    # The kernels for another order of the rows have other registers.
    ordered = s.ordered & (s.blocks == 1)
    vector = np.select([ordered & (width == 1) & (s.lanes > 8), ordered & (width == 4)], [32.0, 28.0], vector)
    in_step = np.where(width == 2, 36.0, 32.0)
    widths = [width == 8, width == 4]
    of_16_bits = np.select(widths, [np.where(ordered, 24.0, 28.0), 36.0], 28.0)
    types = [s.element == 8, s.element == 2]
    vector = np.select(types, [16.0, of_16_bits], vector)
    in_step = np.select(types, [16.0, np.select(widths, [28.0, 40.0], 32.0)], in_step)
    return np.select([s.vector, s.in_step, s.binned & (s.element == 8)], [vector, in_step, 40.0], 48.0)


def binned_rows(s):
    """Warps that take the rows in bins, the batches of nonzeros that they load, those of the longest row, and the loads
    of a column by all groups.

    As host/spmm/plan/cost_model/bins.rs has it, but long rows have the lanes of the measured kernel."""
    uncut = longest_uncut(s)[:, None]
    lanes = s.lanes[:, None]
    rows, nonzeros = s.row_bins[:, :, 0], s.row_bins[:, :, 1]
    above = 2.0 ** np.arange(1, rows.shape[1] + 1)
    mean = nonzeros / np.maximum(rows, 1)
    is_cut = mean > uncut
    items = np.where(is_cut, nonzeros / uncut, rows)
    of_lane = np.clip(2 * lanes, 4, 16)
    group = np.where(is_cut, 32, np.clip(above // of_lane * lanes, lanes, 32))
    # If the warps run in a few waves, long rows get fewer lanes until there is one; then no row has more.
    waves = lambda group: (items * group / 32).sum(1) / (s.multiprocessors * 48)
    is_long = ~is_cut & (above >= 256)
    few = (waves(group) >= 1) & (waves(group) < 4)
    most = np.full_like(s.lanes, 32)
    for fewer in (1, 2, 4, 8, 16):
        fits = few & (fewer >= s.lanes) & (waves(np.where(is_long, np.minimum(group, fewer), group)) <= 1)
        most = np.where(fits, fewer, most)
    group = np.where(is_cut, 32, np.minimum(group, most[:, None]))
    batches = lambda length, group: length * lanes / (group * GROUPS_LOADS) + 0.5
    warps = items * group / 32
    loaded = warps * batches(np.minimum(mean, uncut), group)
    empty = np.maximum(s.rows_ - rows.sum(1), 0) * s.lanes / 32
    length = np.minimum(np.where(is_cut, uncut, above), s.longest[:, None])
    longest = np.where(rows > 0, batches(length, group), 0).max(1)
    column_loads = np.where(is_cut, items * uncut, nonzeros) * lanes / group
    return warps.sum(1) + empty, loaded.sum(1), longest, column_loads.sum(1)


def predict(s, c, parts=False):
    """Milliseconds of each candidate of the sweeps `s` with the constants `c`."""
    element = s.element
    nonzero = WORD + s.value
    tiles = np.ceil(s.features / s.tile)
    row_bytes = s.features * element
    tile_bytes = np.minimum(s.tile, s.features) * element
    mean_tile = row_bytes / tiles
    aligned = power_of_two(row_bytes)
    aligned = np.where(tiles > 1, np.minimum(aligned, power_of_two(s.tile * element)), aligned)
    touched = lambda unit: mean_tile + unit - np.minimum(unit, aligned)
    mean_row = s.nnz / s.rows_
    ends = s.rows_ * s.blocks
    steps = s.nnz + ROW_STEPS * ends
    of_warp = s.lanes / 32
    # Nonzeros that a group of `row_groups` loads together: the last ones of a row are seldom as many.
    batch = s.group / s.lanes * GROUPS_LOADS
    batches = lambda length: length / batch + 0.5
    # The groups of a warp wait for that with the longest row: so many standard deviations more than the mean, of 16,
    # 8, 4 and 2 normally distributed lengths.
    deviations = np.select([s.group == 2, s.group == 4, s.group == 8, s.group == 16], [1.77, 1.42, 1.03, 0.56], 0.0)
    longest_of_warp = mean_row * (1 + deviations * s.variation)
    warps_of_bins, batches_of_bins, longest_of_bins, column_loads_of_bins = binned_rows(s)

    # The L1 cache.
    neighbours = np.where(s.vector, np.where(s.lanes > 8, 4, 8), np.where(s.in_step, 4, 1))
    neighbours = np.where(s.grouped, GROUPS_BLOCK / s.group, neighbours)
    neighbours = np.where(s.binned, np.maximum(GROUPS_BLOCK / 32 * s.rows_ / warps_of_bins, 1), neighbours)
    own = np.where(s.vector, np.maximum(1, c["l1_reuse_nonzeros"] / mean_row), 1)
    local = s.locality_of(neighbours * own)
    # A load of a sub-warp, and the cache lines that it touches.
    load = np.where(s.binned | s.grouped, tile_bytes, s.load * element)
    loads = np.ceil(row_bytes / load)
    aligned_load = np.where(loads > 1, np.minimum(power_of_two(row_bytes), power_of_two(load)), power_of_two(row_bytes))
    lines = (row_bytes / loads + LINE - np.minimum(LINE, aligned_load)) / LINE
    l1 = c["l1_share"] * L1_BYTES / tile_bytes
    missed = s.missed(l1, 1)
    # The rows of `in_step` that a multiprocessor has at a time are at the same columns. Those of `row_groups` are so
    # nearly, if they are equally long and the cache holds the columns between them.
    distinct = lambda nonzeros: s.expected_distinct(nonzeros) / nonzeros
    between = lambda drift: s.used_columns * np.minimum(drift + s.variation, 1)
    of_groups = np.minimum(resident_warps(s) * 32 / s.group, s.rows_ / s.multiprocessors)
    in_phase = np.where(s.grouped, of_groups, IN_STEP_WARPS) * mean_row
    phase = np.maximum(distinct(in_phase), np.where(s.grouped, 1 - l1 / between(DRIFT), 0))
    l1_misses = local * np.where(s.in_step | s.grouped, np.minimum(phase, missed), missed)

    # The L2 cache.
    warps = s.multiprocessors * resident_warps(s)
    slots = np.where(s.vector | s.grouped, warps * 32 / s.group, warps)
    # A tile occupies whole lines, which it may share with the next tile of its row, not with other rows.
    occupied = np.minimum(row_bytes, touched(LINE))
    # Rows of X that a partition holds.
    l2 = c["l2_share"] * s.l2_bytes / L2_PARTITIONS / occupied
    l2_misses = s.missed(l2 * s.blocks, L2_PARTITIONS) * s.locality[-1]
    # Groups go through the columns together there, too. Each wave of them begins where the one before has drifted to.
    waves_of_groups = np.maximum(1, np.where(s.binned, warps_of_bins, s.rows_) / slots)
    drift = DRIFT * (1 + waves_of_groups) / 2
    phase = np.maximum(distinct(s.nnz / waves_of_groups), 1 - l2 / between(drift))
    l2_misses = np.where(s.binned | s.grouped, np.minimum(l2_misses, phase), l2_misses)
    all_bytes = (s.cols + s.rows_) * row_bytes + nonzero * s.nnz
    streamed = np.clip(all_bytes / s.l2_bytes - 0.7, 0, 0.6) / 0.6
    l2_misses = np.minimum(np.maximum(l2_misses, streamed * s.used_columns / s.nnz), l1_misses)

    # Each resource's time.
    per_ms = s.multiprocessors * s.clock / 1e3
    loaded = s.nnz * tiles
    # The share of the rows whose neighbours in the matrix are in other bins; empirical. They share no accesses to
    # memory, of columns and of values, and no sectors of Y.
    filled = s.row_bins[:, :, 0].sum(1)
    scattered = np.minimum(1, 2 * (1 - (s.row_bins[:, :, 0] ** 2).sum(1) / np.maximum(filled, 1) ** 2))
    of_binned_row = ITEM_BYTES * s.rows_ + 2 * (PART_OF_LINE * LINE - 4) * filled * scattered
    lists = nonzero * s.nnz + s.binned * of_binned_row
    of_binned_y = row_bytes + scattered * (touched(32.0) - row_bytes)
    results = s.rows_ * np.where(s.binned, of_binned_y, row_bytes * (2 * s.blocks - 1))
    # Tiles at random addresses: those of X, and of Y if its rows are in another order.
    of_tile = np.maximum(touched(32.0), PART_OF_LINE * touched(LINE))
    of_results = np.where(s.ordered, s.rows_ * tiles * of_tile * (2 * s.blocks - 1), results)
    # Each tile reads the lists again.
    from_memory = loaded * of_tile * l2_misses + streamed * (lists * tiles + of_results)
    memory = from_memory / (s.memory_rate * c["memory_efficiency"] / 1e3)
    of_tile = np.maximum(touched(32.0), PART_OF_LINE_IN_L2 * touched(LINE))
    l2_time = (loaded * of_tile * l1_misses + lists * tiles + results) / (per_ms * c["l2_bytes_per_cycle"])
    # A load of n consecutive words touches 1 + 4 n / 128 lines in the mean. There is one of values for each of columns.
    columns_of_load = np.select([s.vector, s.in_step], [s.lanes, 32.0], s.group / s.lanes)
    # The rows of the groups of a warp follow one another, so short ones share lines.
    shared = np.where(s.grouped, np.minimum(1, mean_row * WORD / LINE + s.group / 32), 1)
    column_loads = np.where(s.binned, column_loads_of_bins, s.nnz / columns_of_load * shared)
    list_lines = tiles * (2 * column_loads + nonzero * s.nnz / LINE)
    # Nonzeros of a row that are loaded together share lines, the more of them the denser the row. Its columns are taken
    # for random.
    rows_of_line = np.maximum(1, LINE / row_bytes)
    density = np.minimum(1, mean_row / s.used_columns)
    of_row = (1 - (1 - density) ** rows_of_line) / (density * rows_of_line)
    together = np.maximum(np.select([s.vector, s.grouped], [1.0, s.group / s.lanes], 32 / s.lanes), 1)
    lines = lines * (of_row + (1 - of_row) / together)
    in_order = s.rows_ * row_bytes / LINE + 2 * np.maximum(warps_of_bins, s.rows_ * ITEM_BYTES / LINE)
    row_lines = s.binned * (scattered * LINES_OF_ROW * s.rows_ + (1 - scattered) * in_order)
    all_lines = s.nnz * loads * s.parts * lines + row_lines + LIST_LINE * list_lines
    l1_time = all_lines * c["l1_cycles_per_line"] / per_ms
    of_types = [c["instructions_of_f64_element"], c["instructions_of_16_bit_element"]]
    of_type = np.select([s.element == 8, s.element == 2], of_types, 1.0)
    of_vectors = np.where(s.binned | s.grouped, s.width, s.tile / s.lanes)
    per_lane = of_vectors * of_type
    per_nonzero = (
        c["instructions_per_nonzero"]
        + c["instructions_per_load"] * s.parts * s.tile / s.load
        + c["instructions_per_element"] * per_lane
    )
    # Sub-warps of a warp that are at different places of their tasks issue for themselves.
    issuing = np.where(s.vector, of_warp + c["divergence"] * (1 - of_warp), of_warp)
    # Where a row of a warp of `vector` ends, those of its other sub-warps may end, too.
    end = np.minimum(1 / mean_row, MOST_ROW_ENDS)
    together = end / of_warp / (1 - (1 - end) ** (1 / of_warp))
    row_end = np.where(s.vector, c["instructions_per_row_end"] / together, 0) + s.ordered * c["row_lookup"]
    of_row = batches(longest_of_warp) * GROUPS_LOADS * per_nonzero + c["instructions_per_group"]
    issued = tiles * np.select(
        [s.grouped, s.binned],
        [
            ends * s.group / 32 * of_row,
            batches_of_bins * GROUPS_LOADS * per_nonzero + warps_of_bins * c["instructions_per_group"],
        ],
        s.nnz * issuing * per_nonzero + ends * row_end,
    )
    issue = issued / (per_ms * SCHEDULERS)

    # Latency: what the resident warps do one after the other.
    # A warp of `row_groups` or `row_bins` takes the tiles of its rows one after the other.
    items = np.select([s.vector, s.binned], [steps / STEPS, warps_of_bins], s.rows_)
    items = items * np.where(s.binned | s.grouped, 1, tiles)
    most = np.clip(1.5 * s.nnz / (s.multiprocessors * IN_STEP_WARPS), 256, 2048)
    # As if blocks waited for the longest of four rows at random.
    uneven = np.maximum(s.expected_longest(TEAM, most) / mean_row, 1)
    of_nonzeros = s.nnz * of_warp * c["cycles_per_nonzero_in_step"] * uneven
    lookups = s.ordered * LOOKUP_CYCLES
    in_step = s.rows_ * (c["cycles_per_row_in_step"] + lookups) + of_nonzeros
    added_rows = (s.blocks - 1) * s.rows_
    cycles = np.select(
        [s.vector, s.in_step, s.grouped],
        [
            steps * c["cycles_per_step"] + added_rows * c["cycles_per_added_row"] + ends * lookups,
            in_step,
            s.rows_ * (c["cycles_per_group"] + lookups + batches(longest_of_warp) * c["cycles_per_batch"]),
        ],
        warps_of_bins * c["cycles_per_binned_row"] + batches_of_bins * c["cycles_per_batch"],
    )
    # Tasks are many and small. Rows take nearly the same time, so a wave that is not full takes as long as the others,
    # unless teams take the rows of the last one.
    waves = items / slots
    of_nonzero = of_warp * c["cycles_per_nonzero_in_step"]
    fits = lambda team: (waves < MANY_WAVES) & (team * (waves % 1) <= 1) & (mean_row >= MIN_SHARE * team)
    team = np.select([fits(TEAM), fits(TEAM / 2)], [TEAM, TEAM / 2], 1)
    of_item = cycles * tiles / items
    of_team = c["cycles_per_row_in_step"] + mean_row / team * of_nonzero
    waited = np.where(s.vector, np.maximum(waves, 1), np.ceil(waves)) * of_item
    waited = np.where(s.in_step & (waves % 1 > 0), np.floor(waves) * of_item + of_team, waited)
    steps_of_task = np.clip(steps * tiles / slots, LEAST_STEPS, STEPS)
    of_task = (RESIDENT_TASK * STEPS + (1 - RESIDENT_TASK) * steps_of_task) * c["cycles_per_step"]
    are_resident = s.vector & (s.blocks == 1) & (items < slots)
    one_after_the_other = np.where(are_resident, of_task, waited) / s.clock * 1e3
    of_any = np.where(waves < 1, team, 1)
    path = np.where(s.longest > most, np.maximum(s.longest / TEAM, most / of_any), s.longest / of_any)
    longest = np.where(s.in_step, path * of_nonzero / s.clock * 1e3, 0)
    of_binned = BINNED_BATCH_CYCLES + BINNED_BATCH_L1_MISS_CYCLES * l1_misses
    of_groups = (CACHED_BATCH + (1 - CACHED_BATCH) * l1_misses) * c["cycles_per_last_batch"]
    of_last_batch = np.where(s.binned, of_binned, of_groups) + BATCH_L2_MISS_CYCLES * l2_misses
    of_part = c["cycles_per_binned_row"] + longest_of_bins * of_last_batch
    longest = np.where(s.binned, tiles * of_part / s.clock * 1e3, longest)
    # Where not all groups run at the same time, long rows may be the last ones to start.
    of_last = c["cycles_per_group"] + batches(s.longest) * of_last_batch
    last = np.where(s.grouped, tiles * of_last / s.clock * 1e3, 0)
    starts_late = s.rows_ > slots
    longest = np.where(s.grouped & ~starts_late, last, longest)

    power = c["overlap"]
    named = dict(
        memory=memory, l2=l2_time, l1=l1_time, issue=issue, latency=one_after_the_other, longest_row=longest
    )
    uncut = np.where(are_resident, np.maximum(steps_of_task, LEAST_SPLIT_ROW), STEPS)
    launches = s.blocks * (1 + (s.vector & (s.longest > uncut)))
    of_lanes = s.usual_share_in_step**OTHER_LANES_IN_STEP
    more_pay = (mean_row >= LANES_IN_STEP_ROW) & ((s.variation <= EVEN_ROWS) | (waves < MANY_WAVES))
    of_lanes = np.where(more_pay, of_lanes, np.maximum(of_lanes, 1))
    together = of_lanes * sum(time**power for time in named.values()) ** (1 / power)
    total = LAUNCH_MS * launches + together + np.where(starts_late, last, 0)
    if parts:
        return total, dict(named, l1_misses=l1_misses, l2_misses=l2_misses)
    return total
