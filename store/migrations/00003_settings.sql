-- +goose Up
-- +goose StatementBegin
-- How a revision came: somebody changed something, took something back, read it from a file, or the server undid it by itself.
ALTER TABLE settings_revisions ADD COLUMN kind TEXT;
-- +goose StatementEnd
