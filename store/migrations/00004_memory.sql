-- +goose Up
-- +goose StatementBegin
-- Up to which turn memories were made of a talk. Those of before are not read.
ALTER TABLE conversations ADD COLUMN learned INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET learned = turns;
CREATE INDEX conversations_unlearned ON conversations (began_at, id) WHERE turns > learned;

-- Nothing has used this table so far.
DROP TABLE memories;
CREATE TABLE memories (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, agent_id TEXT NOT NULL, person TEXT, kind TEXT NOT NULL, text TEXT NOT NULL,
  keys TEXT, slot TEXT, language TEXT, conversation_id TEXT, turn_id TEXT, at BIGINT NOT NULL, sure INTEGER NOT NULL, told BOOLEAN NOT NULL DEFAULT FALSE,
  ended_at BIGINT, by_id TEXT, vector BLOB, vector_of TEXT
);
CREATE INDEX memories_device ON memories (device_id, agent_id, at, id);
CREATE INDEX memories_conversation ON memories (conversation_id);

-- What reading talks has cost.
CREATE TABLE memory_runs (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, agent_id TEXT NOT NULL, conversation_id TEXT NOT NULL, at BIGINT NOT NULL,
  took_ms BIGINT, llm TEXT, tokens_in INTEGER, tokens_out INTEGER, cost_micros BIGINT, facts INTEGER, fault TEXT
);
CREATE INDEX memory_runs_at ON memory_runs (at, id);
-- +goose StatementEnd
