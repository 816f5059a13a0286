-- What failed for good, and what operators do about it. Every shard holds the incidents of its tenants. What belongs to no
-- tenant (messages that are not ours, replays of many, alerts) is in the first shard.

CREATE TABLE dlq_incidents (
  seq           INTEGER PRIMARY KEY,         -- an integer key: the row, payload included, is written once
  incident_id   TEXT NOT NULL,               -- a stable hash of (tenant, event, topic), or of a foreign message's bytes
  kind          TEXT NOT NULL CHECK (kind IN ('dead_letter', 'abandoned', 'foreign')),
  tenant_id     TEXT NOT NULL,               -- empty where the message is not ours, as are event_id and topic
  event_id      TEXT NOT NULL,
  topic         TEXT NOT NULL,
  type          TEXT,
  source_queue  TEXT NOT NULL,
  error_message TEXT NOT NULL,
  error_stack   TEXT,
  generation    INTEGER NOT NULL DEFAULT 0,  -- which repetition of the dispatch this failure belongs to
  retry_count   INTEGER NOT NULL DEFAULT 0,  -- how often it failed again after a replay
  payload       TEXT,                        -- as the ledger holds it, or the text of a foreign message
  payload_ref   TEXT,                        -- or where R2 keeps it
  status        TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'triaged', 'retrying', 'resolved', 'ignored')),
  last_op       TEXT,                        -- the operation that changed it last; tells a call that it was the one
  alert_at      TEXT,                        -- when operators are to be told of it next; none once it is closed
  alerted_at    TEXT,
  replayed_at   TEXT,
  resolved_at   TEXT,
  resolved_by   TEXT,
  created_at    TEXT NOT NULL,
  updated_at    TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX dlq_incidents_identity ON dlq_incidents (incident_id);
CREATE INDEX dlq_incidents_by_status ON dlq_incidents (status, created_at);
CREATE INDEX dlq_incidents_by_tenant ON dlq_incidents (tenant_id, created_at);
CREATE INDEX dlq_incidents_to_alert ON dlq_incidents (alert_at) WHERE alert_at IS NOT NULL;

-- Replays of many, worked off step by step by whoever holds the runner's lease.
CREATE TABLE replays (
  replay_id       TEXT PRIMARY KEY,
  of              TEXT NOT NULL CHECK (of IN ('incidents', 'events')),
  filter          TEXT NOT NULL CHECK (json_valid(filter)),
  topics          TEXT CHECK (topics IS NULL OR json_valid(topics)),
  status          TEXT NOT NULL CHECK (status IN ('running', 'completed', 'cancelled')),
  total           INTEGER NOT NULL,          -- what matched when it was asked for
  rate_per_second INTEGER NOT NULL,
  resume_at       TEXT NOT NULL,             -- when its rate allows the next step
  runner          TEXT,
  runner_until    TEXT,
  created_by      TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX replays_running ON replays (created_at) WHERE status = 'running';

-- How far a replay of many has come in this shard. Written in the same batch as what it moves, so that the count is exact
-- wherever a runner dies, and so that of two runners only one takes a step.
CREATE TABLE replay_progress (
  replay_id TEXT PRIMARY KEY,
  steps     INTEGER NOT NULL DEFAULT 0,
  last_op   TEXT,                            -- the step that was taken last; tells a runner that it was the one
  position  TEXT,                            -- the status or tenant that it goes through; none once this shard is done
  after_at  TEXT NOT NULL,                   -- with the next, the last row that it has seen there
  after_seq INTEGER NOT NULL DEFAULT 0,
  seen      INTEGER NOT NULL DEFAULT 0,      -- how many dispatches it has come across,
  moved     INTEGER NOT NULL DEFAULT 0       -- and how many of them it has sent on their way
) STRICT, WITHOUT ROWID;

-- Who did what. Never changed, never deleted.
CREATE TABLE ops_log (
  op_id       TEXT PRIMARY KEY,
  at          TEXT NOT NULL,
  actor       TEXT NOT NULL,
  action      TEXT NOT NULL,
  incident_id TEXT,
  replay_id   TEXT,
  note        TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX ops_log_by_incident ON ops_log (incident_id, at) WHERE incident_id IS NOT NULL;
CREATE INDEX ops_log_by_time ON ops_log (at);

-- One message to one sink, kept until the sink has taken it.
CREATE TABLE alerts (
  alert_id      TEXT PRIMARY KEY,            -- a stable hash of the sink and of what the alert tells
  sink          TEXT NOT NULL,
  body          TEXT NOT NULL CHECK (json_valid(body)),
  attempts      INTEGER NOT NULL DEFAULT 0,
  next_retry_at TEXT,                        -- none once it is sent or given up
  last_error    TEXT,
  created_at    TEXT NOT NULL,
  sent_at       TEXT
) STRICT, WITHOUT ROWID;

-- By sink, so that each is served from its own end of the index, however much waits for another.
CREATE INDEX alerts_due ON alerts (sink, next_retry_at) WHERE next_retry_at IS NOT NULL;

-- The incidents of a shard that the alerts of a round tell of, written together with those alerts, until they are marked: so
-- an incident is told of once, wherever the round dies.
CREATE TABLE alert_marks (
  shard     INTEGER PRIMARY KEY,
  incidents TEXT NOT NULL CHECK (json_valid(incidents)),
  told_at   TEXT NOT NULL
) STRICT;

-- Which run works at what. Sweepers own a topic of a shard for as long as they renew it, so that claiming costs no row per
-- dispatch; other regular work is owned the same way.
CREATE TABLE lanes (
  lane   TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far regular work has come that may be too much for one run.
CREATE TABLE bookmarks (
  name     TEXT PRIMARY KEY,
  position TEXT NOT NULL
) STRICT, WITHOUT ROWID;
