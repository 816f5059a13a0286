-- The ledger of accepted events and the outbox of their dispatches. Times are TEXT 'YYYY-MM-DD HH:MM:SS.SSS' in UTC, bound
-- by the application. D1 bills every row and index entry written, so each index here is paid for by a hot statement.

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

CREATE UNIQUE INDEX event_ledger_identity ON event_ledger (tenant_id, event_id);
CREATE INDEX event_ledger_by_tenant ON event_ledger (tenant_id, created_at);
-- Tells whether anything still refers to an object. Only events with a large payload pay for it.
CREATE INDEX event_ledger_by_ref ON event_ledger (payload_ref) WHERE payload_ref IS NOT NULL;

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
  updated_at    TEXT NOT NULL,
  PRIMARY KEY (tenant_id, event_id, topic),
  FOREIGN KEY (tenant_id, event_id) REFERENCES event_ledger (tenant_id, event_id),
  -- A dead letter is looked at again until its incident exists, in case the letter itself gets lost.
  CHECK (next_retry_at IS NOT NULL OR status NOT IN ('pending', 'failed', 'enqueued')),
  CHECK (next_retry_at IS NULL OR status NOT IN ('delivered', 'dlq_abandoned')),
  CHECK ((lease IS NULL) = (lease_holder IS NULL))
) STRICT, WITHOUT ROWID;

-- Only rows that somebody must look at again; one that is delivered costs nothing here. By topic, so that the sweeper serves
-- each topic from its own end of the index, however long the queue of another is.
CREATE INDEX event_dispatches_due ON event_dispatches (topic, next_retry_at) WHERE next_retry_at IS NOT NULL;

-- Where each event stands as a whole, derived so that it costs no row. `EventState::of` says the same in Rust.
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
