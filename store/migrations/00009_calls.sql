-- +goose Up
-- +goose StatementBegin
-- What of a call can be told without showing it: digests of its arguments and its result. Why it was not made; "": it was.
-- Whether it failed after its success was assumed.
ALTER TABLE tool_calls ADD COLUMN arguments_digest TEXT;
ALTER TABLE tool_calls ADD COLUMN result_digest TEXT;
ALTER TABLE tool_calls ADD COLUMN refusal TEXT;
ALTER TABLE tool_calls ADD COLUMN late BOOLEAN NOT NULL DEFAULT FALSE;
-- +goose StatementEnd
