#!/bin/sh
# Records PostgreSQL 15's settings into postgresql.tsv: those of the names it already has, and new ones
# that settings/table.rs has not. Usage: PGHOST=… PGPORT=… PGUSER=… ./record.sh
# name default unit category description more context type min max values
set -eu
cd "$(dirname "$0")"
ours=$(sed -n 's/^ *setting("\([^"]*\)".*/\1/p' table.rs | tr 'A-Z' 'a-z' | sed "s/.*/'&'/" | paste -sd,)
psql -XqAt -F "$(printf '\t')" -d template1 -c "select name,
    case name when 'data_directory_mode' then '0700' when 'log_file_mode' then '0600'
              when 'unix_socket_permissions' then '0777' when 'timezone_abbreviations' then 'Default' else coalesce(boot_val, '') end,
    coalesce(unit, ''), category, replace(short_desc, e'\n', ' '), replace(coalesce(extra_desc, ''), e'\n', ' '), context, vartype,
    coalesce(min_val, ''), coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '')
    from pg_settings
    where name !~ '\.' and lower(name) not in ($ours, 'restrict_nonsystem_relation_kind', 'extension_destdir')
    order by lower(name) collate \"C\"" > postgresql.tsv
