-- The two tables of the source document's sections 4.1 and 4.3 as they stand there: text keys, and an index for every question.
-- Only a measure to hold our own ledger against.

CREATE TABLE event_ledger (
  event_id   TEXT PRIMARY KEY,
  tenant_id  TEXT NOT NULL,
  topic      TEXT NOT NULL,
  status     TEXT DEFAULT 'received' CHECK (status IN ('received', 'processing', 'completed', 'failed', 'dlq')),
  payload    TEXT NOT NULL,
  attempts   INTEGER DEFAULT 0,
  last_error TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  updated_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX ledger_by_tenant ON event_ledger (tenant_id, created_at);
CREATE INDEX ledger_by_status ON event_ledger (status, updated_at);

CREATE TABLE event_dispatches (
  dispatch_id   TEXT PRIMARY KEY,
  event_id      TEXT NOT NULL REFERENCES event_ledger (event_id),
  topic         TEXT NOT NULL,
  status        TEXT DEFAULT 'pending' CHECK (status IN ('pending', 'enqueued', 'failed', 'dlq_abandoned')),
  attempts      INTEGER NOT NULL DEFAULT 0,
  max_attempts  INTEGER NOT NULL DEFAULT 5,
  next_retry_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_error    TEXT,
  created_at    TEXT NOT NULL DEFAULT (datetime('now')),
  updated_at    TEXT NOT NULL DEFAULT (datetime('now')),
  UNIQUE (event_id, topic)
);
CREATE INDEX dispatches_by_status ON event_dispatches (status, next_retry_at);
