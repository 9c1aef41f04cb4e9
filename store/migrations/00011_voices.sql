-- +goose Up
-- +goose StatementBegin
-- People whose voices are known, with or without an account. folded is the name by which they are found, once.
CREATE TABLE people (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL UNIQUE, user_id TEXT REFERENCES users ON DELETE SET NULL, by_name TEXT, at BIGINT NOT NULL
);
CREATE INDEX people_user ON people (user_id);
-- A print of a voice, made by a model; without one the service keeps it under the id. No sound is kept.
CREATE TABLE voices (
  id TEXT PRIMARY KEY, person_id TEXT NOT NULL REFERENCES people ON DELETE CASCADE, service TEXT NOT NULL, model TEXT NOT NULL, print BLOB,
  source TEXT NOT NULL, device_id TEXT, ms INTEGER NOT NULL, at BIGINT NOT NULL
);
CREATE INDEX voices_person ON voices (person_id, at, id);
-- Prints that a service is still to forget.
CREATE TABLE voice_removals (
  id TEXT PRIMARY KEY, service TEXT NOT NULL, at BIGINT NOT NULL, next_at BIGINT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, fault TEXT
);
-- Who was speaking: the id of a person, - for a stranger, NULL where it was not looked for; and how much the voices were alike, in per cent.
ALTER TABLE turns ADD COLUMN speaker TEXT;
ALTER TABLE turns ADD COLUMN speaker_sure SMALLINT;
INSERT INTO changes (what, times) VALUES ('people', 0);
-- +goose StatementEnd
