"""The ledger's steps, each of them one Lua script: atomic, and timed by Redis's own clock, since the clocks of gateways
and workers may differ.

Keys that only a script can name (a message by its id, a client's chats) are made from prefixes: the ledger wants one
Redis, or one with replicas, and no cluster. `mesh:accepted` counts messages: it tells exactly what came after what.
"""

from __future__ import annotations

from mesh.bus import BELL_TOKENS

RECENT_KEPT = 500

NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# KEYS: message, chat's queue, due, recent, job, arq's queue, bell, client's chats, overflow, cancel channel, person.
# ARGV: message id, chat, body, kind, kept ms, job id, job, job's life ms, queue prefix, queue suffix, most in a chat,
# most of a client, whether it is STOP. 0: known already; 1: taken in; 2: over the cap, and the one that will tell so;
# 3: over the cap. STOP counts at once: what was asked before it may be answered no more, and no cap is in its way.
ACCEPT = (
    (
        NOW
        + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local kind, state, result = ARGV[4], 'accepted', 1
if ARGV[13] == '1' and tonumber(redis.call('HGET', KEYS[11], 'opted_out_at') or '0') == 0 then
  redis.call('HSET', KEYS[11], 'opted_out_at', now / 1000, 'silenced_by', ARGV[1])
end
local waiting = redis.call('LLEN', KEYS[2])
if waiting >= tonumber(ARGV[11]) then
  kind = 'over'
else
  redis.call('SADD', KEYS[8], ARGV[2])
  local of_client = 0
  for _, chat in ipairs(redis.call('SMEMBERS', KEYS[8])) do
    local length = chat == ARGV[2] and waiting or redis.call('LLEN', ARGV[9] .. chat .. ARGV[10])
    if length == 0 and chat ~= ARGV[2] then redis.call('SREM', KEYS[8], chat) end
    of_client = of_client + length
  end
  redis.call('PEXPIRE', KEYS[8], ARGV[5])
  if of_client >= tonumber(ARGV[12]) then kind = 'over' end
end
if kind == 'over' then
  state = 'over'
  local over = redis.call('INCR', KEYS[9])
  redis.call('PEXPIRE', KEYS[9], ARGV[5])
  result = over == 1 and 2 or 3
end
redis.call('HSET', KEYS[1], 'chat', ARGV[2], 'body', ARGV[3], 'at', now, 'state', state, 'kind', kind,
  'n', redis.call('INCR', 'mesh:accepted'))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('LPUSH', KEYS[4], ARGV[1])
redis.call('LTRIM', KEYS[4], 0, {recent} - 1)
if result == 3 then return result end
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], 'NX', now, ARGV[2])
redis.call('SET', KEYS[5], ARGV[7], 'PX', ARGV[8])
redis.call('ZADD', KEYS[6], now, ARGV[6])
if redis.call('LLEN', KEYS[7]) < {tokens} then redis.call('LPUSH', KEYS[7], '1') end
if kind == 'cancel' then redis.call('PUBLISH', KEYS[10], ARGV[2]) end
return result
"""
    )
    .replace("{tokens}", str(BELL_TOKENS))
    .replace("{recent}", str(RECENT_KEPT))
)

DELIVER = """
local function deliver(key, turn, id, state, rank, code, failed, undelivered, now)
  if tonumber(rank) <= tonumber(redis.call('HGET', key, 'delivery_rank') or '-1') then return 0 end
  redis.call('HSET', key, 'delivery', state, 'delivery_rank', rank, 'delivery_error', code)
  if failed == '1' then
    local due = code == '63018' and now + 30000 or now  -- too fast: not again at once
    redis.call('ZADD', undelivered, 'NX', due, turn .. '\\n' .. id .. '\\n' .. code)
  end
  return 1
end
"""

# KEYS: sent index, what came too early, undelivered. ARGV: turn prefix, provider's id, state, its rank, error code,
# failed 1/0, kept ms. Delivery only moves forward. A callback that is faster than our own note of the send is kept.
DELIVERED = (
    NOW
    + DELIVER
    + """
local turn = redis.call('GET', KEYS[1])
if not turn then
  if tonumber(ARGV[4]) > tonumber(redis.call('HGET', KEYS[2], 'rank') or '-1') then
    redis.call('HSET', KEYS[2], 'state', ARGV[3], 'rank', ARGV[4], 'code', ARGV[5], 'failed', ARGV[6])
    redis.call('PEXPIRE', KEYS[2], 3600000)
  end
  return 0
end
local key = ARGV[1] .. turn
if redis.call('HGET', key, 'provider_id') ~= ARGV[2] and ARGV[6] == '0' then return 0 end
return deliver(key, turn, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], KEYS[3], now)
"""
)

# KEYS: undelivered. ARGV: how long until another may take it, in ms. One that nobody works on, or nil.
UNDELIVERED = (
    NOW
    + """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
if not due then return false end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[1], due)
return due
"""
)

# KEYS: turn, what waits. ARGV: text, kept ms. A reply that could not be delivered waits for its person's next message,
# once.
WAIT = """
if redis.call('HSETNX', KEYS[1], 'waits', '1') == 0 then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""

# KEYS: due. ARGV: older than ms, how many. Chats that are due for so long.
OVERDUE = NOW + "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])"

# KEYS: the one who looks, last look. ARGV: period ms. The time of the look before, in ms; nil when somebody else looks
# in this period, and 0 for the first look ever.
LOOK = (
    NOW
    + """
if not redis.call('SET', KEYS[1], now, 'NX', 'PX', ARGV[1]) then return false end
return tonumber(redis.call('GET', KEYS[2]) or '0')
"""
)

# KEYS: the one who looks, last look, seen. ARGV: ids. Which of them the look before has seen, too.
LOOKED = """
local before = {}
for i, id in ipairs(ARGV) do before[i] = redis.call('SISMEMBER', KEYS[3], id) end
redis.call('DEL', KEYS[3])
for _, id in ipairs(ARGV) do redis.call('SADD', KEYS[3], id) end
redis.call('SET', KEYS[2], redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2]) or '0')
return before
"""

# KEYS: lease, fence. ARGV: life ms. The token, or 0 when somebody holds the lease.
LEASE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
return token
"""

# KEYS: lease. ARGV: token, life ms (0: give it back).
RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

HELD = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('LEASELOST') end
"""

# KEYS: lease, queue, current turn, due. ARGV: token, chat, turn prefix, message prefix, quiet ms, longest ms, most
# messages of one turn. The turn to go on with, or a new one of the messages that were written in a row; a number of ms
# to wait until the person is quiet; or nil when the chat has nothing left, and then the lease is given back in the same
# step, so that no message can fall between the look and the leave.
CLAIM = (
    NOW
    + HELD
    + """
local turn = redis.call('GET', KEYS[3])
if not turn then
  local quiet, longest = tonumber(ARGV[5]), tonumber(ARGV[6])
  local waiting = redis.call('LRANGE', KEYS[2], 0, ARGV[7] - 1)
  if #waiting == 0 then
    redis.call('ZREM', KEYS[4], ARGV[2])
    redis.call('DEL', KEYS[1])
    return false
  end
  local taken, first, last, closed = {}, 0, 0, quiet == 0
  for _, id in ipairs(waiting) do
    local at, kind = unpack(redis.call('HMGET', ARGV[4] .. id, 'at', 'kind'))
    at, kind = tonumber(at or '0'), kind or ''
    if #taken == 0 then
      first = at
    elseif kind ~= '' or quiet == 0 or at - last > quiet or at - first > longest then
      closed = true
      break
    end
    taken[#taken + 1], last = id, at
    if kind ~= '' then
      closed = true
      break
    end
  end
  if not closed and #taken < tonumber(ARGV[7]) then
    local left = math.min(last + quiet, first + longest) - now
    if left > 0 then return math.min(left, quiet) end
  end
  turn = taken[1]
  redis.call('LTRIM', KEYS[2], #taken, -1)
  redis.call('SET', KEYS[3], turn)
  local kind = redis.call('HGET', ARGV[4] .. turn, 'kind') or ''
  redis.call('HSET', ARGV[3] .. turn, 'chat', ARGV[2], 'message', turn, 'state', 'planned', 'planned_at', now,
    'messages', table.concat(taken, '\\n'), 'kind', kind, 'planned_n', redis.call('GET', 'mesh:accepted') or '0')
  for _, id in ipairs(taken) do redis.call('HSET', ARGV[4] .. id, 'turn', turn) end
end
local key = ARGV[3] .. turn
redis.call('HINCRBY', key, 'claims', 1)
redis.call('HSET', key, 'claimed_at', now)
return {turn, redis.call('HGETALL', key)}
"""
)

# KEYS: lease, queue, turn. ARGV: token, message prefix, turn id, quiet ms, most messages of one turn, most times. Takes
# what was written meanwhile into a turn whose reply is not under way yet, and has it planned again: all of it up to a
# /cancel, but for commands and notices, which stand for themselves (STOP, then /cancel); or else what was written since
# it was planned. How many were taken.
GATHER = (
    NOW
    + HELD
    + """
local state, messages, merges, planned_n, part = unpack(redis.call('HMGET', KEYS[3],
  'state', 'messages', 'merges', 'planned_n', 'part'))
if (state ~= 'planned' and state ~= 'ready') or (part or '0') ~= '0' then return 0 end
messages = messages or ARGV[3]
local waiting = redis.call('LRANGE', KEYS[2], 0, ARGV[5] - 1)
local newer, alone, cancel = {}, {}, 0
for i, id in ipairs(waiting) do
  local kind, n = unpack(redis.call('HMGET', ARGV[2] .. id, 'kind', 'n'))
  newer[i] = (kind or '') == '' and tonumber(n or '0') > tonumber(planned_n or '0')
  alone[i] = kind == 'command' or kind == 'notice'
  if kind == 'cancel' and cancel == 0 then cancel = i end
end
local taken = cancel
if cancel == 0 and ARGV[4] ~= '0' and tonumber(merges or '0') < tonumber(ARGV[6]) then
  while newer[taken + 1] do taken = taken + 1 end
end
if taken == 0 then return 0 end
redis.call('LTRIM', KEYS[2], taken, -1)
for i = taken, 1, -1 do
  if alone[i] then redis.call('LPUSH', KEYS[2], waiting[i]) end
end
for i = 1, taken do
  if not alone[i] then
    messages = messages .. '\\n' .. waiting[i]
    redis.call('HSET', ARGV[2] .. waiting[i], 'turn', ARGV[3])
  end
end
redis.call('HSET', KEYS[3], 'messages', messages, 'state', 'planned', 'claims', 0, 'planned_at', now, 'planned_n',
  redis.call('GET', 'mesh:accepted') or '0')
redis.call('HDEL', KEYS[3], 'reply', 'took')
redis.call('HINCRBY', KEYS[3], 'merges', 1)
if cancel > 0 then redis.call('HSET', KEYS[3], 'kind', 'cancelled') end
return taken
"""
)

# KEYS: lease, turn. ARGV: token, field. Whether this is the first time.
ONCE = HELD + "return redis.call('HSETNX', KEYS[2], ARGV[2], 1)"

# KEYS: lease, turn, current turn, window, dead, sent index, what came too early, undelivered, what waits.
# ARGV: token, from, to, kept ms, ended 1/0, lines kept, turn id, message prefix, then field-value pairs. Instead of a
# field: `+line` a line of the conversation, `-` a field that goes, `+sent` which part was sent, and as what, `+wait`
# what waits for the person's next message. A turn's field `took` says how much of what waits is in its reply; that much
# waits no longer once a part of it is sent.
ADVANCE = (
    NOW
    + DELIVER
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[2], 'state') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'state', ARGV[3], ARGV[3] .. '_at', now)
local function said_what_waited()
  local took = redis.call('HGET', KEYS[2], 'took')
  if took then redis.call('LTRIM', KEYS[9], took, -1) end
  redis.call('HDEL', KEYS[2], 'took')
end
for i = 9, #ARGV, 2 do
  if ARGV[i] == '+line' then
    redis.call('RPUSH', KEYS[4], ARGV[i + 1])
  elseif ARGV[i] == '-' then
    redis.call('HDEL', KEYS[2], ARGV[i + 1])
  elseif ARGV[i] == '+wait' then
    said_what_waited()
    redis.call('RPUSH', KEYS[9], ARGV[i + 1])
    redis.call('PEXPIRE', KEYS[9], ARGV[4])
    redis.call('HSET', KEYS[2], 'waits', '1')
  elseif ARGV[i] == '+sent' then
    local part, id = string.match(ARGV[i + 1], '^(%d+) (.+)$')
    said_what_waited()
    redis.call('SET', KEYS[6], ARGV[7], 'PX', ARGV[4])
    redis.call('HSET', KEYS[2], 'provider_id', id, 'piece:' .. id, part)
    redis.call('HDEL', KEYS[2], 'delivery', 'delivery_rank', 'delivery_error')
    local early = redis.call('HMGET', KEYS[7], 'state', 'rank', 'code', 'failed')
    if early[1] then
      deliver(KEYS[2], ARGV[7], id, early[1], early[2], early[3], early[4], KEYS[8], now)
      redis.call('DEL', KEYS[7])
    end
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
if ARGV[3] == 'sending' then
  redis.call('HINCRBY', KEYS[2], 'attempts', 1)
  redis.call('HSETNX', KEYS[2], 'first_intent_at', now)
end
if ARGV[5] == '1' then
  redis.call('DEL', KEYS[3])
  local messages = redis.call('HGET', KEYS[2], 'messages') or ARGV[7]
  for id in string.gmatch(messages, '[^\\n]+') do
    local key = ARGV[8] .. id
    if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'state', ARGV[3]) end
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('LTRIM', KEYS[4], -tonumber(ARGV[6]), -1)
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
  if ARGV[3] == 'dead' or redis.call('HGET', KEYS[2], 'dead_letter') then redis.call('LPUSH', KEYS[5], ARGV[7]) end
end
return 1
"""
)
