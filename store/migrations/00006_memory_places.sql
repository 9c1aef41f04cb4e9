-- +goose Up
-- +goose StatementBegin
-- Up to which turn a memory service was given a talk; what was said before stays here.
ALTER TABLE conversations ADD COLUMN given INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET given = turns;
CREATE INDEX conversations_ungiven ON conversations (began_at, id) WHERE learned > given;

-- What memory services keep, and what of it they still have to delete: all of a device with an agent (what is ''), a fact or a talk. It outlasts the device.
CREATE TABLE memory_places (
  service TEXT NOT NULL, device_id TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, gone BOOLEAN NOT NULL DEFAULT FALSE, at BIGINT NOT NULL,
  PRIMARY KEY (service, device_id, agent, what)
);
-- +goose StatementEnd
