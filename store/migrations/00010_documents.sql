-- +goose Up
-- +goose StatementBegin
-- Documents of agents: files of a folder, or uploads, whose folder is ''.
CREATE TABLE documents (
  id TEXT PRIMARY KEY, agent_id TEXT NOT NULL REFERENCES agents ON DELETE CASCADE, folder TEXT NOT NULL, name TEXT NOT NULL, size BIGINT NOT NULL, modified_at BIGINT,
  hash TEXT, kind TEXT, title TEXT, state TEXT NOT NULL CHECK (state IN ('waiting', 'ready', 'failed')), fault TEXT, detail TEXT,
  pieces INTEGER NOT NULL, chars INTEGER NOT NULL, part BOOLEAN NOT NULL, reader INTEGER NOT NULL, vector_of TEXT, by_id TEXT, at BIGINT NOT NULL, read_at BIGINT,
  UNIQUE (agent_id, folder, name)
);
CREATE TABLE document_pieces (
  document_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, seq INTEGER NOT NULL, page INTEGER, heading TEXT, at_char INTEGER NOT NULL, text TEXT NOT NULL, vector BLOB,
  PRIMARY KEY (document_id, seq)
);
INSERT INTO changes (what, times) VALUES ('documents', 0);
-- +goose StatementEnd
