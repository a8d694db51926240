-- What a statement did, asked in its own session and transaction, where alone it can be seen.
-- Both functions belong to the administrator and bring their own search path, so that the SQL under
-- evaluation can neither replace them nor put operators of its own in their way.
CREATE SCHEMA fairlead_scratch;

CREATE FUNCTION fairlead_scratch.activity(everywhere bool) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
WITH held AS MATERIALIZED (
  SELECT relation, mode FROM pg_locks
  WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted AND relation >= 16384
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
SELECT json_build_object(
  'locks', (SELECT coalesce(json_agg(json_build_array(relation::bigint, mode)), '[]') FROM held),
  -- Nothing is read without a lock; but counters of a transaction before may not be flushed yet, so
  -- all are read once at the beginning.
  'reads', (
    SELECT coalesce(json_agg(json_build_array(c.oid::bigint, scans.own, scans.indexes)), '[]')
    FROM pg_class c,
    LATERAL (
      SELECT pg_stat_get_xact_numscans(c.oid) AS own, (
        SELECT coalesce(sum(pg_stat_get_xact_numscans(i.indexrelid)), 0)::bigint
        FROM pg_index i WHERE i.indrelid = c.oid) AS indexes
    ) scans
    WHERE c.relkind IN ('r', 'm') AND c.oid >= 16384
      AND (everywhere OR c.oid IN (SELECT relation FROM held))
      AND (scans.own > 0 OR scans.indexes > 0)
  ),
  'writes', (
    SELECT json_object_agg(name, pg_stat_get_xact_tuples_inserted(name::regclass)
      + pg_stat_get_xact_tuples_updated(name::regclass)
      + pg_stat_get_xact_tuples_deleted(name::regclass))
    FROM unnest(ARRAY['pg_class', 'pg_attribute', 'pg_constraint', 'pg_index', 'pg_trigger',
      'pg_policy', 'pg_rewrite', 'pg_proc', 'pg_type', 'pg_enum', 'pg_namespace']) AS name
  )
)::text
$$;

-- The rows of a catalogue, all of them or those that this transaction wrote, and how many there are:
-- a row that is gone shows by the count alone.
CREATE FUNCTION fairlead_scratch.catalogue(wanted text, fresh bool) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  found text;
  total bigint;
BEGIN
  CASE wanted
  WHEN 'pg_class' THEN
    SELECT json_agg(json_build_array(
      c.oid::bigint, n.nspname, c.relname, c.relkind, c.relfilenode::bigint,
      c.relrowsecurity OR c.relforcerowsecurity, c.relispartition, c.relacl::text[])) FILTER (WHERE NOT fresh OR age(c.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'm', 'v', 'f', 'S', 'i', 'I', 'c')
      AND n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT IN ('information_schema', 'fairlead_scratch');
  WHEN 'pg_attribute' THEN
    SELECT json_agg(json_build_array(
      a.attrelid::bigint, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
      a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '')) FILTER (WHERE NOT fresh OR age(a.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attrelid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped
      AND c.relkind IN ('r', 'p', 'm', 'v', 'f', 'c') AND n.nspname NOT LIKE 'pg\_%'
      AND n.nspname <> 'information_schema';
  WHEN 'pg_constraint' THEN
    SELECT json_agg(json_build_array(
      oid::bigint, conname, contype, conrelid::bigint, confrelid::bigint, convalidated)) FILTER (WHERE NOT fresh OR age(pg_constraint.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_constraint WHERE oid >= 16384;
  WHEN 'pg_index' THEN
    SELECT json_agg(json_build_array(
      i.indexrelid::bigint, c.relname, i.indrelid::bigint, i.indisunique)) FILTER (WHERE NOT fresh OR age(i.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indexrelid >= 16384 AND c.relkind IN ('i', 'I');
  WHEN 'pg_trigger' THEN
    SELECT json_agg(json_build_array(oid::bigint, tgname, tgrelid::bigint, tgenabled)) FILTER (WHERE NOT fresh OR age(pg_trigger.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_trigger WHERE NOT tgisinternal;
  WHEN 'pg_policy' THEN
    SELECT json_agg(json_build_array(
      oid::bigint, polname, polrelid::bigint, md5(concat(polcmd, polroles, polqual, polwithcheck)))) FILTER (WHERE NOT fresh OR age(pg_policy.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_policy;
  WHEN 'pg_rewrite' THEN
    SELECT json_agg(json_build_array(
      oid::bigint, rulename, ev_class::bigint, md5(concat(ev_enabled, ev_qual, ev_action)))) FILTER (WHERE NOT fresh OR age(pg_rewrite.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_rewrite WHERE oid >= 16384;
  WHEN 'pg_proc' THEN
    SELECT json_agg(json_build_array(
      oid::bigint, oid::regprocedure::text, md5(concat(prosrc, prosqlbody, prorettype, prosecdef, proconfig)),
      proacl::text[])) FILTER (WHERE NOT fresh OR age(pg_proc.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_proc WHERE oid >= 16384;
  WHEN 'pg_type' THEN
    SELECT json_agg(json_build_array(oid::bigint, oid::regtype::text, typtype)) FILTER (WHERE NOT fresh OR age(pg_type.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_type WHERE oid >= 16384 AND typtype IN ('e', 'd', 'r');
  WHEN 'pg_enum' THEN
    SELECT json_agg(json_build_array(oid::bigint, enumlabel, enumtypid::regtype::text)) FILTER (WHERE NOT fresh OR age(pg_enum.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_enum;
  WHEN 'pg_namespace' THEN
    SELECT json_agg(json_build_array(oid::bigint, nspname, nspacl::text[])) FILTER (WHERE NOT fresh OR age(pg_namespace.xmin) <= 0),
      count(*)
    INTO found, total
    FROM pg_namespace WHERE oid >= 16384 AND nspname NOT LIKE 'pg\_%';
  END CASE;
  RETURN format('{"rows": %s, "total": %s}', coalesce(found, '[]'), total);
END
$$;

GRANT USAGE ON SCHEMA fairlead_scratch TO PUBLIC;
