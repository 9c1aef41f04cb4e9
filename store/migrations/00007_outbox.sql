-- +goose Up
-- +goose StatementBegin
-- A parcel asks or plays too, is one of a batch that was sent together, has a rank, a time, a key that its device gets once, an
-- answer, and why it has ended. held waits for its sender to say more, given is with a device that has not begun to say it. What
-- was being told when this step is taken is over: nobody knows what was heard of it.
CREATE TABLE parcels (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, batch TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('say', 'ask', 'play')), body TEXT NOT NULL, source TEXT NOT NULL, dedupe TEXT, rank INTEGER NOT NULL,
  at_once BOOLEAN NOT NULL, due_at BIGINT NOT NULL, not_before BIGINT, ends_at BIGINT,
  state TEXT NOT NULL CHECK (state IN ('held', 'waiting', 'given', 'telling', 'heard', 'answered', 'expired', 'cancelled')), reason TEXT,
  tries INTEGER NOT NULL DEFAULT 0, delivered_at BIGINT, heard_chars INTEGER, answer TEXT, by_id TEXT, at BIGINT NOT NULL
);
INSERT INTO parcels (id, device_id, batch, kind, body, source, rank, at_once, due_at, not_before, ends_at, state, reason, tries, delivered_at, heard_chars, by_id, at)
  SELECT id, device_id, id, 'say', body, source, 0, FALSE, at, not_before, ends_at, CASE state WHEN 'telling' THEN 'cancelled' ELSE state END,
    CASE state WHEN 'telling' THEN 'lost' WHEN 'cancelled' THEN 'withdrawn' END, tries, delivered_at, heard_chars, by_id, at FROM outbox;
DROP TABLE outbox;
ALTER TABLE parcels RENAME TO outbox;
CREATE INDEX outbox_device ON outbox (device_id, state, rank, due_at, id);
CREATE INDEX outbox_made ON outbox (at, id);
CREATE INDEX outbox_batch ON outbox (batch);
CREATE INDEX outbox_ends ON outbox (ends_at) WHERE state = 'waiting';
CREATE INDEX outbox_open ON outbox (state) WHERE state IN ('held', 'given', 'telling');
CREATE UNIQUE INDEX outbox_once ON outbox (device_id, dedupe) WHERE dedupe IS NOT NULL;
-- +goose StatementEnd
