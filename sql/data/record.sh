#!/bin/sh
# Records the signatures of PostgreSQL 15's built-in types, functions, operators and casts into
# the .tsv files beside this script. Usage: PGHOST=… PGPORT=… PGUSER=… ./record.sh
# Which of them exist here is decided by the implementations in sql/types/src/function: a row without
# one is not offered.
set -eu
cd "$(dirname "$0")"
q() { psql -XqAt -F "$(printf '\t')" -d template1 -c "$1"; }
# Types this crate knows, and polymorphic and pseudo types their functions use.
types="16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,114,194,199,271,600,650,651,700,701,705,774,775,829,869,1000,1001,1002,1003,1005,1006,1007,1008,1009,1010,1011,1012,1013,1014,1015,1016,1017,1021,1022,1028,1033,1034,1040,1041,1042,1043,1082,1083,1114,1115,1182,1183,1184,1185,1186,1187,1231,1266,1270,1560,1561,1562,1563,1700,1790,2201,2202,2203,2204,2205,2206,2207,2208,2209,2210,2211,2249,2275,2276,2277,2278,2279,2283,2287,2776,2949,2950,2951,2970,3220,3221,3500,3802,3807,4072,4089,4090,4096,4097,5038,5039,5069,5077,5078,5079"
# oid name len byval category preferred element array align storage delimiter kind input output receive send typmodin typmodout collation
q "select oid, typname, typlen, typbyval, typcategory, typispreferred, typelem, typarray, typalign, typstorage, typdelim, typtype, typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid, typcollation
   from pg_type where oid in ($types) order by oid" > type.tsv
# oid name key kind retset strict volatility variadic result args argnames defaults allargs modes; enums
# last, whose forms and hashes no function gives
q "select p.oid, proname, case when lanname = 'sql' then 'sql_' || p.oid else prosrc end, prokind, proretset, proisstrict, provolatile, provariadic, prorettype, proargtypes,
   coalesce(array_to_string(proargnames, ','), ''), pronargdefaults, coalesce(array_to_string(proallargtypes, ' '), ''), coalesce(array_to_string(proargmodes, ''), '')
   from pg_proc p join pg_language l on l.oid = prolang
   where pronamespace = 'pg_catalog'::regnamespace and prorettype in ($types) and not exists (select from unnest(proargtypes) t where t not in ($types))
   and (proname !~ '_pg_' or proname = 'numeric_pl_pg_lsn')
   and proname !~ '^(hashenum|enum_(in|out|send|cmp|larger|smaller)$|hashenumextended)' order by coalesce(proargtypes[0] = 3500 and proname <> 'anyenum_out', false), p.oid" > proc.tsv
# oid name left right result function commutator negator merges hashes restrict join; enums last
q "select o.oid, oprname, oprleft, oprright, oprresult, oprcode::oid, oprcom, oprnegate, oprcanmerge, oprcanhash, oprrest::oid, oprjoin::oid from pg_operator o
   where oprresult in ($types) and oprright in ($types,3500) and oprleft in (0,$types,3500) and oprcode <> 0 order by (oprright = 3500), o.oid" > operator.tsv
# oid family left right strategy operator method of the operators that btree and hash search by
q "select oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amopopr, amopmethod from pg_amop
   where amopmethod in (403, 405) and amoppurpose = 's' and amoplefttype in ($types,3500) and amoprighttype in ($types,3500) order by oid" > amop.tsv
# source target function context method
q "select oid, castsource, casttarget, castfunc, castcontext, castmethod from pg_cast where castsource in ($types) and casttarget in ($types) order by oid" > cast.tsv
# schema name oid kind columns (name:type:typmod:notnull, domains replaced by their base types)
# of the catalog relations offered here.
q "select n.nspname, c.relname, c.oid, c.relkind,
   string_agg(a.attname || ':' || case when t.typtype = 'd' then t.typbasetype else a.atttypid end || ':' || case when t.typtype = 'd' then t.typtypmod else a.atttypmod end || ':' || case when a.attnotnull then 't' else 'f' end, ' ' order by a.attnum)
   from pg_class c join pg_namespace n on n.oid = relnamespace join pg_attribute a on attrelid = c.oid and attnum > 0 join pg_type t on t.oid = a.atttypid
   where n.nspname = 'pg_catalog' and c.relname in ('pg_namespace','pg_class','pg_attribute','pg_attrdef','pg_type','pg_proc','pg_index','pg_constraint',
     'pg_description','pg_shdescription','pg_database','pg_authid','pg_auth_members','pg_am','pg_collation','pg_tablespace','pg_inherits','pg_operator',
     'pg_cast','pg_opclass','pg_opfamily','pg_sequence','pg_trigger','pg_rewrite','pg_policy','pg_publication','pg_publication_rel','pg_publication_namespace',
     'pg_statistic_ext','pg_depend','pg_shdepend','pg_enum','pg_range','pg_extension','pg_language','pg_foreign_table','pg_foreign_server',
     'pg_foreign_data_wrapper','pg_user_mapping','pg_partitioned_table','pg_event_trigger','pg_aggregate','pg_conversion','pg_db_role_setting',
     'pg_default_acl','pg_init_privs','pg_seclabel','pg_largeobject_metadata','pg_transform','pg_amop','pg_amproc','pg_subscription',
     'pg_roles','pg_user','pg_group','pg_tables','pg_indexes','pg_views','pg_matviews','pg_sequences','pg_locks','pg_rules','pg_policies','pg_publication_tables',
     'pg_available_extensions','pg_available_extension_versions','pg_largeobject','pg_parameter_acl','pg_prepared_xacts','pg_replication_origin','pg_replication_origin_status','pg_replication_slots',
     'pg_seclabels','pg_shadow','pg_shseclabel','pg_statistic','pg_stats','pg_subscription_rel','pg_timezone_abbrevs','pg_timezone_names',
     'pg_ts_config','pg_ts_config_map','pg_ts_dict','pg_ts_parser','pg_ts_template','pg_user_mappings')
   or n.nspname = 'information_schema' and c.relname in ('tables','columns','schemata','table_constraints','key_column_usage','constraint_column_usage',
     'constraint_table_usage','referential_constraints','check_constraints','routines','parameters','sequences','views','triggers','domains',
     'enabled_roles','applicable_roles','information_schema_catalog_name','character_sets','collations','table_privileges','column_privileges',
     'role_table_grants','attributes','view_table_usage','domain_constraints','column_domain_usage','role_column_grants',
     'element_types','routine_privileges','role_routine_grants','usage_privileges','role_usage_grants','udt_privileges','role_udt_grants','user_defined_types',
     'administrable_role_authorizations')
   group by 1, 2, 3, 4 order by 1 desc, 2" > relation.tsv
# oid method name namespace owner family type default keytype of btree operator classes
q "select oid, opcmethod, opcname, opcfamily, opcintype, opcdefault, opckeytype from pg_opclass where opcmethod = 403 and opcintype in ($types) and opcintype <> 3500 order by oid" > opclass.tsv
# method name type default of the operator classes of methods that serve no query here
q "select amname, opcname, opcintype, opcdefault from pg_opclass c join pg_am a on a.oid = opcmethod
   where amname in ('gin', 'gist', 'spgist', 'brin') and opcintype in ($types,3500) order by 1, 3, 2" > nominal_opclass.tsv
# word category barelabel and their descriptions of PostgreSQL's keywords
q "select * from pg_get_keywords() order by word collate \"C\"" > keyword.tsv
# oid name args result volatility strict of what reads, writes and takes apart these types, enums and
# domains: pg_type names it
q "select oid, proname, proargtypes, prorettype, provolatile, proisstrict from pg_proc
   where oid in (select unnest(array[typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript]) from pg_type where oid in ($types,3500))
   or proname in ('enum_in', 'enum_out', 'enum_recv', 'enum_send', 'domain_in', 'domain_recv') order by oid" > type_function.tsv
