-- The whole schema, as all migrations leave it. Made by `cargo xtask check --bless`; edit those instead.

CREATE TABLE alert_marks (
  shard     INTEGER PRIMARY KEY,
  incidents TEXT NOT NULL CHECK (json_valid(incidents)),
  told_at   TEXT NOT NULL
) STRICT;

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

CREATE INDEX alerts_due ON alerts (sink, next_retry_at) WHERE next_retry_at IS NOT NULL;

CREATE TABLE billing_invoices_paid (
  tenant_id    TEXT NOT NULL,
  invoice_id   TEXT NOT NULL,
  amount_paid  INTEGER NOT NULL,            -- in the currency's smallest unit
  currency     TEXT NOT NULL,
  payments     INTEGER NOT NULL DEFAULT 1,  -- how often this invoice was entered: 1, or something is wrong
  event_id     TEXT NOT NULL,               -- the event that entered it first
  paid_at      TEXT NOT NULL,
  PRIMARY KEY (tenant_id, invoice_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE bookmarks (
  name     TEXT PRIMARY KEY,
  position TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE INDEX dlq_incidents_by_status ON dlq_incidents (status, created_at);

CREATE INDEX dlq_incidents_by_tenant ON dlq_incidents (tenant_id, created_at);

CREATE UNIQUE INDEX dlq_incidents_identity ON dlq_incidents (incident_id);

CREATE INDEX dlq_incidents_to_alert ON dlq_incidents (alert_at) WHERE alert_at IS NOT NULL;

CREATE TABLE event_dispatches (
  tenant_id     TEXT NOT NULL,
  event_id      TEXT NOT NULL,
  topic         TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN
                  ('pending', 'failed', 'enqueued', 'delivered', 'dead_lettered', 'dlq_abandoned')),
  attempts      INTEGER NOT NULL DEFAULT 0, -- failed sends
  max_attempts  INTEGER NOT NULL DEFAULT 5,
  next_retry_at TEXT,                       -- when somebody must look at it again; none once it is at rest
  claimed_by    TEXT,                       -- the run that is about to send it, until next_retry_at
  lease         TEXT,                       -- until when a consumer owns it
  lease_holder  TEXT,                       -- the run of the consumer that owns it
  starts        INTEGER NOT NULL DEFAULT 0, -- leases taken since a consumer last came to an end with it, good or bad
  replays       INTEGER NOT NULL DEFAULT 0, -- how often operators had it repeated; messages of an earlier count are void
  replay_of     TEXT,                       -- the incident or delivery that an operator had repeated
  last_error    TEXT,
  created_at    TEXT NOT NULL,
  updated_at    TEXT NOT NULL, history TEXT CHECK (history IS NULL OR json_valid(history)),
  PRIMARY KEY (tenant_id, event_id, topic),
  FOREIGN KEY (tenant_id, event_id) REFERENCES event_ledger (tenant_id, event_id),
  -- A dead letter is looked at again until its incident exists, in case the letter itself gets lost.
  CHECK (next_retry_at IS NOT NULL OR status NOT IN ('pending', 'failed', 'enqueued')),
  CHECK (next_retry_at IS NULL OR status NOT IN ('delivered', 'dlq_abandoned')),
  CHECK ((lease IS NULL) = (lease_holder IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX event_dispatches_due ON event_dispatches (topic, next_retry_at) WHERE next_retry_at IS NOT NULL;

CREATE TABLE event_ledger (
  seq          INTEGER PRIMARY KEY,         -- an integer key: the row, payload included, is written once
  tenant_id    TEXT NOT NULL,
  event_id     TEXT NOT NULL,
  type         TEXT NOT NULL,
  occurred_at  TEXT NOT NULL,               -- the event's own timestamp
  source       TEXT,
  subject      TEXT,
  context      TEXT NOT NULL DEFAULT '{}',  -- version, correlationId, causationId, actor, traceparent as a JSON object
  payload      TEXT,                        -- the payload's text, to the byte, up to 64 KiB
  payload_ref  TEXT,                        -- or where R2 keeps it
  payload_hash TEXT NOT NULL,               -- SHA-256 in hex
  receipt      TEXT NOT NULL,               -- the accepting call; tells it that it was first, even if D1's answer got lost
  created_at   TEXT NOT NULL,
  CHECK ((payload IS NULL) <> (payload_ref IS NULL)),
  CHECK (json_valid(context))
) STRICT;

CREATE INDEX event_ledger_by_ref ON event_ledger (payload_ref) WHERE payload_ref IS NOT NULL;

CREATE INDEX event_ledger_by_tenant ON event_ledger (tenant_id, created_at);

CREATE UNIQUE INDEX event_ledger_identity ON event_ledger (tenant_id, event_id);

CREATE TABLE lanes (
  lane   TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE rejections (
  minute   TEXT NOT NULL,
  provider TEXT NOT NULL,
  reason   TEXT NOT NULL,
  counter  TEXT NOT NULL,                    -- the instance that has counted
  count    INTEGER NOT NULL,
  PRIMARY KEY (minute, provider, reason, counter)
) STRICT, WITHOUT ROWID;

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

CREATE VIEW event_status AS
SELECT l.tenant_id, l.event_id,
       CASE WHEN count(d.topic) = 0 THEN 'undelivered'
            WHEN sum(d.status IN ('dead_lettered', 'dlq_abandoned')) > 0 THEN 'dlq'
            WHEN sum(d.status = 'delivered') = count(d.topic) THEN 'completed'
            WHEN sum(d.status = 'delivered') > 0 THEN 'processing'
            ELSE 'received' END AS status
  FROM event_ledger l
  LEFT JOIN event_dispatches d ON d.tenant_id = l.tenant_id AND d.event_id = l.event_id
 GROUP BY l.tenant_id, l.event_id;
