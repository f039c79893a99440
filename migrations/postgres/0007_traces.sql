-- Beside it: 0.1.0. It leaves the column empty.
-- The trace of the write that has caused an event, if that was traced.
alter table outbox add column traceparent text;
