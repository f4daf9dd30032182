# SPDX-License-Identifier: Apache-2.0
"""Makes traces whose clock runs so many times as fast: to a reader of the trace, one second looks like many."""
import time

BATCH, FREQUENCY, SYNC, CLOCK_SNAPSHOT, END_OF_GENERATION = 1, 8, 50, 51, 52
HEADER_BYTES = 16


def number(data, at):
    """An unsigned LEB128 number, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def numbers(*values):
    out = bytearray()
    for value in values:
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)


def _faster_clocks(events, factor, now_ns):
    """The batch with a generation's clocks: its frequency, from Go 1.25 on the time of day as well. That stays the time of day at the
    trace's end, and was so much earlier before."""
    at = 1 if events[0] == SYNC else 0
    if events[at] != FREQUENCY:
        return events
    frequency, end = number(events, at + 1)
    out = events[:at] + numbers(FREQUENCY, frequency // factor)
    if end == len(events):
        return out
    if events[end] != CLOCK_SNAPSHOT:
        raise ValueError(f"event {events[end]} follows a frequency")
    values, end = [], end + 1
    for _ in range(4):
        value, end = number(events, end)
        values.append(value)
    ticks, mono, seconds, ns = values
    wall = now_ns - (now_ns - seconds * 10**9 - ns) * factor
    return out + numbers(CLOCK_SNAPSHOT, ticks, mono * factor, *divmod(wall, 10**9)) + events[end:]


def make_faster(path, factor):
    """A trace without experiments, changed where it lies."""
    data, now_ns = path.read_bytes(), time.time_ns()
    out, at = [data[:HEADER_BYTES]], HEADER_BYTES
    while at < len(data):
        kind, at = data[at], at + 1
        if kind == END_OF_GENERATION:
            out.append(numbers(kind))
            continue
        if kind != BATCH:
            raise ValueError(f"a batch of type {kind} at offset {at - 1}")
        head = []
        for _ in range(4):
            value, at = number(data, at)
            head.append(value)
        events = _faster_clocks(data[at:at + head[3]], factor, now_ns)
        out += numbers(kind, *head[:3], len(events)), events
        at += head[3]
    path.write_bytes(b"".join(out))
