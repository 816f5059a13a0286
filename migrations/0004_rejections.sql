-- How many requests did not pass, per minute, provider and reason. Every instance of the Worker that counts has rows of its own
-- and writes what it has counted so far, so that writing twice changes nothing. All of it is in the first shard.

CREATE TABLE rejections (
  minute   TEXT NOT NULL,
  provider TEXT NOT NULL,
  reason   TEXT NOT NULL,
  counter  TEXT NOT NULL,                    -- the instance that has counted
  count    INTEGER NOT NULL,
  PRIMARY KEY (minute, provider, reason, counter)
) STRICT, WITHOUT ROWID;
