-- The trace of the write that has caused an event, if that was traced.
alter table outbox add column traceparent text;
