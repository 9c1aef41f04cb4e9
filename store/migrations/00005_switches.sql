-- +goose Up
-- +goose StatementBegin
-- What people have switched on beside the settings, until a time or, without one, until they switch it off.
CREATE TABLE switches (name TEXT PRIMARY KEY, ends_at BIGINT, by_name TEXT, at BIGINT NOT NULL);
-- +goose StatementEnd
