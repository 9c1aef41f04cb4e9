-- +goose Up
-- +goose StatementBegin
-- What is done at times, or when something happens. One that was set by voice goes with its device; of one that stands in a file
-- only its state is kept here.
CREATE TABLE routines (
  id TEXT PRIMARY KEY, source TEXT NOT NULL CHECK (source IN ('file', 'voice', 'api')), device_id TEXT REFERENCES devices ON DELETE CASCADE,
  body TEXT NOT NULL, state TEXT NOT NULL, token_hash TEXT, by_id TEXT, by_name TEXT, at BIGINT NOT NULL
);
CREATE INDEX routines_device ON routines (device_id);
-- +goose StatementEnd
