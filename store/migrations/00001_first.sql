-- The first schema. The same text serves SQLite and PostgreSQL: the reader of migrations swaps BLOB for BYTEA.
-- Ids are UUIDs of version 7 as text, so that they sort by time, but for devices, whose id the server makes.
-- *_at are milliseconds since 1970, UTC. JSON is TEXT. What belongs to a device goes with its row.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE users (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, shown TEXT NOT NULL, role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  password TEXT, totp TEXT, locale TEXT, created_at BIGINT NOT NULL, password_at BIGINT, disabled_at BIGINT
);
CREATE TABLE sessions (
  hash TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at BIGINT NOT NULL, seen_at BIGINT NOT NULL, proved_at BIGINT NOT NULL, ends_at BIGINT NOT NULL, remote TEXT, browser TEXT
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE TABLE invites (
  hash TEXT PRIMARY KEY, role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  user_id TEXT REFERENCES users ON DELETE CASCADE, by_id TEXT, ends_at BIGINT NOT NULL, used_at BIGINT
);
CREATE INDEX invites_user ON invites (user_id);
CREATE TABLE api_tokens (
  id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users ON DELETE CASCADE, name TEXT NOT NULL, head TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL, streams TEXT, rate INTEGER, created_at BIGINT NOT NULL, used_at BIGINT, ends_at BIGINT, revoked_at BIGINT
);
CREATE INDEX api_tokens_user ON api_tokens (user_id);

CREATE TABLE agents (
  id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, owner_id TEXT REFERENCES users ON DELETE SET NULL, rev INTEGER NOT NULL, deleted_at BIGINT
);
CREATE INDEX agents_owner ON agents (owner_id);
CREATE TABLE agent_revisions (
  agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE, rev INTEGER NOT NULL, doc TEXT NOT NULL, note TEXT, by_id TEXT, at BIGINT NOT NULL,
  PRIMARY KEY (agent_id, rev)
);

-- A device is an address with a Client-Id, of which a hash stands here, as of its tokens. id is what all other rows name.
CREATE TABLE devices (
  id TEXT PRIMARY KEY, address TEXT NOT NULL, client TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('new', 'paired', 'stranger', 'refused', 'browser')),
  name TEXT, accepted_by TEXT, token TEXT, offered TEXT, keeps BOOLEAN NOT NULL, told BOOLEAN NOT NULL, board TEXT, firmware TEXT,
  first_at BIGINT NOT NULL, seen_at BIGINT, since_at BIGINT,
  owner_id TEXT REFERENCES users ON DELETE SET NULL, agent_id TEXT REFERENCES agents ON DELETE SET NULL,
  chip TEXT, language TEXT, zone TEXT, features TEXT, remote TEXT, overrides TEXT, keep_text_days INTEGER, keep_sound_days INTEGER,
  asked_at BIGINT, hello_at BIGINT, turn_at BIGINT, last_step TEXT,
  UNIQUE (address, client)
);
CREATE UNIQUE INDEX devices_known ON devices (address) WHERE state IN ('paired', 'browser');
CREATE INDEX devices_first ON devices (first_at, id);
CREATE INDEX devices_owner ON devices (owner_id);
CREATE INDEX devices_agent ON devices (agent_id);
-- What the server has learned of a device, by name: history, pause, tools, things, role.
CREATE TABLE device_states (
  device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, name TEXT NOT NULL, doc TEXT NOT NULL, at BIGINT NOT NULL,
  PRIMARY KEY (device_id, name)
);
CREATE TABLE pairings (
  device_id TEXT PRIMARY KEY REFERENCES devices ON DELETE CASCADE, code TEXT NOT NULL, challenge TEXT NOT NULL, remote TEXT,
  began_at BIGINT NOT NULL, ends_at BIGINT NOT NULL
);

CREATE TABLE settings_revisions (
  id BIGINT PRIMARY KEY, base_id BIGINT, doc TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('active', 'past', 'undone')),
  note TEXT, by_id TEXT, at BIGINT NOT NULL, why_undone TEXT
);
CREATE TABLE secrets (name TEXT PRIMARY KEY, sealed TEXT NOT NULL, tail TEXT, bound TEXT, by_id TEXT, at BIGINT NOT NULL);

CREATE TABLE conversations (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, agent_id TEXT, user_id TEXT,
  began_at BIGINT NOT NULL, ended_at BIGINT, cause TEXT, turns INTEGER NOT NULL DEFAULT 0, title TEXT, kept BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX conversations_device ON conversations (device_id, began_at, id);
CREATE INDEX conversations_began ON conversations (began_at, id);
CREATE TABLE turns (
  id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE, device_id TEXT NOT NULL, seq INTEGER NOT NULL,
  at BIGINT NOT NULL, kind TEXT NOT NULL, mode TEXT, agent_rev INTEGER, settings_id BIGINT, language TEXT,
  heard TEXT, said TEXT, cause TEXT NOT NULL, fault TEXT,
  eou_ms INTEGER, asr_ms INTEGER, ttft_ms INTEGER, ttfs_ms INTEGER, ttfb_ms INTEGER, added_ms INTEGER, e2e_ms INTEGER, lead_min_ms INTEGER,
  frames INTEGER, underruns INTEGER, steps INTEGER, speculation TEXT, asr TEXT, llm TEXT, tts TEXT,
  tokens_in INTEGER, tokens_out INTEGER, tts_chars INTEGER, asr_sound_ms INTEGER, cost_micros BIGINT, rating SMALLINT, spans TEXT
);
CREATE INDEX turns_device ON turns (device_id, at, id);
CREATE INDEX turns_at ON turns (at, id);
CREATE INDEX turns_conversation ON turns (conversation_id, seq);
CREATE TABLE messages (
  turn_id TEXT NOT NULL REFERENCES turns ON DELETE CASCADE, seq INTEGER NOT NULL, role TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (turn_id, seq)
);
CREATE TABLE tool_calls (
  id TEXT PRIMARY KEY, turn_id TEXT REFERENCES turns ON DELETE CASCADE, device_id TEXT REFERENCES devices ON DELETE CASCADE, at BIGINT NOT NULL,
  caller TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL, kind TEXT NOT NULL, arguments TEXT, action INTEGER, result TEXT, fault TEXT,
  consent TEXT, took_ms INTEGER
);
CREATE INDEX tool_calls_device ON tool_calls (device_id, at, id);
CREATE INDEX tool_calls_at ON tool_calls (at, id);
CREATE INDEX tool_calls_turn ON tool_calls (turn_id);
CREATE TABLE recordings (
  turn_id TEXT NOT NULL REFERENCES turns ON DELETE CASCADE, side TEXT NOT NULL CHECK (side IN ('user', 'reply')), path TEXT NOT NULL,
  ms INTEGER NOT NULL, bytes BIGINT NOT NULL, ends_at BIGINT NOT NULL, PRIMARY KEY (turn_id, side)
);
CREATE INDEX recordings_end ON recordings (ends_at);

CREATE TABLE reminders (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, kind TEXT NOT NULL CHECK (kind IN ('timer', 'alert')),
  state TEXT NOT NULL CHECK (state IN ('armed', 'snoozed', 'ringing', 'missed', 'told', 'deleted')), text TEXT NOT NULL, language TEXT,
  due_at BIGINT NOT NULL, length_ms BIGINT, wall TEXT, zone TEXT, rule TEXT, rang_at BIGINT, made_at BIGINT NOT NULL
);
CREATE INDEX reminders_due ON reminders (state, due_at, id);
CREATE INDEX reminders_device ON reminders (device_id, due_at, id);
CREATE TABLE outbox (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, body TEXT NOT NULL, source TEXT NOT NULL,
  not_before BIGINT, ends_at BIGINT, state TEXT NOT NULL CHECK (state IN ('waiting', 'telling', 'heard', 'expired', 'cancelled')),
  tries INTEGER NOT NULL DEFAULT 0, delivered_at BIGINT, heard_chars INTEGER, by_id TEXT, at BIGINT NOT NULL
);
CREATE INDEX outbox_device ON outbox (device_id, state, at, id);
CREATE INDEX outbox_due ON outbox (state, not_before);
CREATE TABLE memories (
  id TEXT PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices ON DELETE CASCADE, agent_id TEXT, person TEXT, kind TEXT NOT NULL, text TEXT NOT NULL,
  vector BLOB, made_turn TEXT, at BIGINT NOT NULL, used_at BIGINT
);
CREATE INDEX memories_device ON memories (device_id, at, id);

-- No words of talks and no secrets stand here.
CREATE TABLE audit (
  id TEXT PRIMARY KEY, at BIGINT NOT NULL, who TEXT NOT NULL, via TEXT NOT NULL, remote TEXT, act TEXT NOT NULL, object TEXT, detail TEXT,
  ok BOOLEAN NOT NULL
);
CREATE INDEX audit_at ON audit (at, id);
-- +goose StatementEnd
