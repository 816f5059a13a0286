-- What did not go to plan with a dispatch, oldest first, as a JSON array: failed sends and attempts, losses in transit, replays.
-- It is written in the statements that move the dispatch anyway, so it costs no row; one that is delivered at once has none.
-- Expand only: Workers of before this migration neither read nor write it.

ALTER TABLE event_dispatches ADD COLUMN history TEXT CHECK (history IS NULL OR json_valid(history));
