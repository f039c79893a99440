-- Beside it: 0.1.0
-- The JSON of a long text. It counts the bytes that the answers of a transaction have left in a setting, which the end
-- of the transaction resets. When none are left, it makes the answer too long once, and then writes nothing more:
-- control characters take PostgreSQL ten times as long as letters. See src/storage/select/dialect.ts.
create function counted_json(value text, most integer) returns text language plpgsql volatile as $$
declare
  bytes_left integer := coalesce(nullif(current_setting('duet.left', true), '')::integer, most);
  json text;
begin
  if bytes_left < 0 then
    return '';
  end if;
  json := to_json(value)::text;
  bytes_left := bytes_left - octet_length(json);
  perform set_config('duet.left', bytes_left::text, true);
  return case when bytes_left < 0 then repeat(' ', most + 1) else json end;
end
$$;
