-- The JSON of a long text. It counts the bytes that the answer has left in a setting of the transaction, and writes
-- nothing more when none are left: control characters take PostgreSQL ten times as long as letters. See
-- src/storage/select/dialect.ts.
create function counted_json(value text) returns text language plpgsql volatile as $$
declare
  bytes_left integer := current_setting('duet.left')::integer;
  json text;
begin
  if bytes_left < 0 then
    return '';
  end if;
  json := to_json(value)::text;
  perform set_config('duet.left', (bytes_left - octet_length(json))::text, true);
  return json;
end
$$;
