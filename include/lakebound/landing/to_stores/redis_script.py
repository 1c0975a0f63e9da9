"""The one script by which a store in Redis is changed, and what it is given. Pure.

Redis runs a script without anything between, and writes all of its effects to its log as one. It does not roll back: so the
script looks at everything before it writes anything, and what it writes first is that a commit has begun (``writing``). The
ledger comes last and takes that away. Should a script end in the middle for a reason that nobody has thought of, the next
commit finds ``writing``: rows are written again by the same batch, and of counters a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebound.landing.to_stores.bucket_counts import BUCKET, KEY, oldest_expired
from lakebound.landing.to_stores.store_rows import Changes, texts
from lakebound.spec.to_stores import COUNT, ToStoreSpec

_ITEMS_AT_ONCE = 5000
"""Of one argument; a text of all would be built as a whole three times."""

MOST_BYTES = 1000 * 2**20
"""Of all arguments. By default a server takes 1 GiB of one command (``client-query-buffer-limit`` in redis.conf), and closes
the connection at more. The rest is for the protocol, and for the script."""
MOST_ARGUMENT_BYTES = 512 * 2**20
"""Of one argument, by default (``proto-max-bulk-len`` in redis.conf)."""

_RAW, _ARRAY = b"\xdb", b"\xdd"

SCRIPT = r"""
local ledger, expected, epoch, commit = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local entry, at, now, mode = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local cuts, listed = {}, cmsgpack.unpack(ARGV[8])
for place = 1, #listed, 2 do cuts[listed[place]] = tonumber(listed[place + 1]) end
local kind = redis.call('TYPE', ledger).ok
if kind ~= 'none' and kind ~= 'hash' then return {'foreign', ledger} end
local held = redis.call('HMGET', ledger, 'commit', 'epoch', 'version', 'writing')
if (held[1] or '') ~= expected then return {'moved', held[1] or ''} end
if tonumber(held[2] or '0') > epoch then return {'fenced', held[2]} end
if held[4] and mode == 'counters' then return {'torn', held[4]} end

local chunks, most = {}, 9.0e18
for number = 9, #ARGV do chunks[#chunks + 1] = cmsgpack.unpack(ARGV[number]) end
for _, chunk in ipairs(chunks) do
  for _, item in ipairs(chunk) do
    kind = redis.call('TYPE', item[1]).ok
    if kind ~= 'none' and kind ~= 'hash' then return {'foreign', item[1]} end
    if mode == 'counters' then
      local fields = {}
      for place = 1, #item[2], 2 do fields[#fields + 1] = item[2][place] end
      item[4] = false
      for start = 1, #fields, 1000 do
        local values = redis.call('HMGET', item[1], unpack(fields, start, math.min(start + 999, #fields)))
        for offset, value in ipairs(values) do
          local place = start + offset - 1
          if not value then
            item[4] = true
          elseif not string.find(value, '^%-?%d+$') then
            return {'spoilt', item[1], fields[place]}
          elseif math.abs(tonumber(value)) + math.abs(tonumber(item[2][2 * place])) > most then
            return {'spoilt', item[1], fields[place]}
          end
        end
      end
    end
  end
end

redis.call('HSET', ledger, 'writing', commit)
for _, chunk in ipairs(chunks) do
  for _, item in ipairs(chunk) do
    local key, fields = item[1], item[2]
    if mode == 'rows' then
      redis.call('DEL', key)
      for start = 1, #fields, 1000 do
        redis.call('HSET', key, unpack(fields, start, math.min(start + 999, #fields)))
      end
    else
      for place = 1, #fields, 2 do redis.call('HINCRBY', key, fields[place], fields[place + 1]) end
      if item[4] then
        for _, field in ipairs(redis.call('HKEYS', key)) do
          local window, begin = string.match(field, '^(%w+):(%d+):')
          if window and (not cuts[window] or tonumber(begin) <= cuts[window]) then redis.call('HDEL', key, field) end
        end
      end
      local left = tonumber(item[3]) - now
      if redis.call('PTTL', key) < left then redis.call('PEXPIRE', key, left) end
    end
  end
end
local version = tonumber(held[3] or '0') + 1
redis.call('HSET', ledger, 'commit', commit, 'epoch', ARGV[2], 'version', version, 'entry', entry, 'at_ms', at)
redis.call('HDEL', ledger, 'writing')
return {'done', tostring(version)}
"""

BEGIN = r"""
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'commit', ARGV[1], 'epoch', ARGV[2], 'version', '1', 'entry', ARGV[3], 'at_ms', ARGV[4])
return 'done'
"""
"""Puts a first entry in the place of a ledger, whatever it holds."""

PROBE = r"""
local key, ledger, failed = KEYS[1], KEYS[2], ''
local function try(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err and failed == '' then failed = answer.err end
end
try('TYPE', key)
try('HSET', key, 'probe', '1')
try('HINCRBY', key, 'probe', '1')
try('HMGET', key, 'probe')
try('HKEYS', key)
try('PTTL', key)
try('PEXPIRE', key, '1000')
try('HDEL', ledger, 'probe')
try('HDEL', key, 'probe')
try('DEL', key)
return failed
"""
"""Calls what ``SCRIPT`` calls, and leaves nothing: rights that lack are found out before any row is written."""


def ledger_key(spec: ToStoreSpec) -> str:
    """Return the key of the hash that is a store's ledger."""
    return f"lakebound:ledger:{spec.name}"


def row_key(spec: ToStoreSpec, value: bytes) -> bytes:
    """Return the key in Redis of a row or of counters.

    Args:
        spec: The store.
        value: The row's key, as ``store_rows.texts`` gives it.
    """
    return f"{spec.name}:".encode() + value


def counter_field(window: str, begin: int, what: str) -> str:
    """Return the field of a counter: the window, when its bucket begins in seconds since 1970, and ``count`` or the column."""
    return f"{window}:{begin}:{what}"


def arguments(spec: ToStoreSpec, changes: Changes) -> list[bytes]:
    """Return the script's last arguments: what is removed by age, and the rows or counters in pieces.

    Args:
        spec: The store.
        changes: Of a batch.
    """
    items = _rows(spec, changes) if spec.counters is None else _counters(spec, changes)
    cuts: list[str] = []
    for window in spec.counters.windows if spec.counters is not None else ():
        assert spec.counters is not None
        cuts += [window, str(oldest_expired(spec.counters, window, changes.now))]
    pieces = [items[start : start + _ITEMS_AT_ONCE] for start in range(0, len(items), _ITEMS_AT_ONCE)]
    return [packed(one) for one in (cuts, *pieces)]


def size_problem(given: Sequence[bytes]) -> str | None:
    """Return why a server with the settings by default does not take the arguments; None where it does.

    Such a server closes the connection without an answer, as in an outage.

    Args:
        given: The arguments that ``arguments`` returns.
    """
    whole, largest = sum(map(len, given)), max(map(len, given), default=0)
    bounds = (
        ("client-query-buffer-limit", whole, MOST_BYTES),
        ("proto-max-bulk-len", largest, MOST_ARGUMENT_BYTES),
    )
    for setting, size, most in bounds:
        if size > most:
            return (
                f"a batch has {size / 2**20:,.0f} MiB for its script, and a server takes {most / 2**20:,.0f} MiB ({setting}); "
                f"lower limits.max_records_per_batch of the pipeline"
            )
    return None


def packed(value: Any) -> bytes:
    """Return lists of lists, texts and bytes in MessagePack, without its type for bytes, which older servers do not know.

    Args:
        value: A list, text or bytes.
    """
    if isinstance(value, list):
        return _ARRAY + len(value).to_bytes(4, "big") + b"".join(map(packed, value))
    raw = value.encode() if isinstance(value, str) else value
    return _RAW + len(raw).to_bytes(4, "big") + raw


def _rows(spec: ToStoreSpec, changes: Changes) -> list[Any]:
    """Return an item per key: the key, and its fields with their values; no fields of a key that goes."""
    items: list[Any] = [[row_key(spec, value or b""), []] for value in ([] if changes.gone is None else texts(changes.gone))]
    if changes.rows is None:
        return items
    names = changes.rows.column_names
    columns = [texts(changes.rows[name]) for name in names]
    keys = columns[names.index(spec.key)]
    for position, key in enumerate(keys):
        fields = [
            part
            for name, column in zip(names, columns, strict=True)
            if column[position] is not None
            for part in (name, column[position])
        ]
        items.append([row_key(spec, key or b""), fields])
    return items


def _counters(spec: ToStoreSpec, changes: Changes) -> list[Any]:
    """Return an item per key: the key, its fields with what is added to each, and until when it is kept in milliseconds."""
    assert spec.counters is not None
    added: dict[bytes, list[str]] = {}
    until: dict[bytes, int] = {}
    for window, counts in changes.counts.items():
        whole, length = spec.counters.seconds[window]
        for key, begin, increments in _increments(counts, (COUNT, *spec.counters.sums)):
            fields = added.setdefault(key, [])
            for what, number in increments.items():
                fields += [counter_field(window, begin, what), str(number)]
            until[key] = max(until.get(key, 0), (begin + length + whole) * 1000)
    return [[row_key(spec, key), fields, str(until[key])] for key, fields in added.items()]


def _increments(counts: pa.Table, names: Sequence[str]) -> list[tuple[bytes, int, Mapping[str, int]]]:
    columns = [counts[name].to_pylist() for name in names]
    numbers = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    keys = [key or b"" for key in texts(counts[KEY])]
    return list(zip(keys, counts[BUCKET].to_pylist(), numbers, strict=True))
