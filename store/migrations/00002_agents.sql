-- +goose Up
-- +goose StatementBegin
-- Whose a turn was stands beside agent_rev, which counts for that agent alone. Settings of files have no revisions:
-- settings_id said nothing that these two do not say.
ALTER TABLE turns ADD COLUMN agent_id TEXT;
ALTER TABLE turns DROP COLUMN settings_id;
-- How often a device was given an agent: what was chosen before the last time counts no more.
ALTER TABLE devices ADD COLUMN agent_times INTEGER NOT NULL DEFAULT 0;
-- How often something was changed by anybody: other servers see by it that they must read it again.
CREATE TABLE changes (what TEXT PRIMARY KEY, times BIGINT NOT NULL);
INSERT INTO changes (what, times) VALUES ('agents', 0);
-- +goose StatementEnd
