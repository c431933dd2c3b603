#!/bin/sh
# Records the signatures of PostgreSQL 15's built-in types, functions, operators and casts into
# the .tsv files beside this script. Usage: PGHOST=… PGPORT=… PGUSER=… ./record.sh
# Which of them exist here is decided by the implementations in sql/src/function: a row without
# one is not offered.
set -eu
cd "$(dirname "$0")"
q() { psql -XqAt -F "$(printf '\t')" -d template1 -c "$1"; }
# Types this crate knows, and polymorphic and pseudo types their functions use.
types="16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,114,194,199,700,701,705,1000,1001,1002,1003,1005,1006,1007,1008,1009,1010,1011,1012,1013,1014,1015,1016,1021,1022,1028,1033,1034,1042,1043,1082,1083,1114,1115,1182,1183,1184,1185,1186,1187,1231,1266,1270,1700,1790,2201,2202,2203,2204,2205,2206,2207,2208,2209,2210,2211,2249,2275,2276,2277,2278,2279,2283,2287,2776,2950,2951,2970,3220,3802,3807,4072,4089,4090,4096,4097,5038,5039,5069,5077,5078,5079"
# oid name len byval category preferred element array align storage delimiter kind input output receive send typmodin typmodout collation
q "select oid, typname, typlen, typbyval, typcategory, typispreferred, typelem, typarray, typalign, typstorage, typdelim, typtype, typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typmodin::oid, typmodout::oid, typcollation
   from pg_type where oid in ($types) order by oid" > type.tsv
# oid name key kind retset strict volatility variadic result args argnames defaults allargs modes
q "select p.oid, proname, case when lanname = 'sql' then 'sql_' || p.oid else prosrc end, prokind, proretset, proisstrict, provolatile, provariadic, prorettype, proargtypes,
   coalesce(array_to_string(proargnames, ','), ''), pronargdefaults, coalesce(array_to_string(proallargtypes, ' '), ''), coalesce(array_to_string(proargmodes, ''), '')
   from pg_proc p join pg_language l on l.oid = prolang
   where pronamespace = 'pg_catalog'::regnamespace and prorettype in ($types) and not exists (select from unnest(proargtypes) t where t not in ($types))
   and proname !~ '_pg_' order by p.oid" > proc.tsv
# oid name left right result function commutator negator
q "select o.oid, oprname, oprleft, oprright, oprresult, oprcode::oid, oprcom, oprnegate from pg_operator o
   where oprresult in ($types) and oprright in ($types) and oprleft in (0,$types) and oprcode <> 0 order by o.oid" > operator.tsv
# source target function context method
q "select oid, castsource, casttarget, castfunc, castcontext, castmethod from pg_cast where castsource in ($types) and casttarget in ($types) order by oid" > cast.tsv
