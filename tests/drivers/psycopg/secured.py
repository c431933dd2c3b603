"""psycopg 3 and servers that take nobody without TLS and a password."""

import psycopg

from checks import check, equal, other_root, url_with


@check(secured=True)
def a_connection_is_encrypted_and_bound_to_its_server():
    for parameters in ({}, {"channel_binding": "require"}, {"ssl_max_protocol_version": "TLSv1.2"}):
        with psycopg.connect(url_with(**parameters)) as connection:
            assert connection.pgconn.ssl_in_use and connection.pgconn.used_password
            version = parameters.get("ssl_max_protocol_version", "TLSv1.3")
            row = connection.execute("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
            equal(row, (True, version))


@check(secured=True)
def whoever_is_not_known_stays_outside():
    def failure(url):
        try:
            psycopg.connect(url, connect_timeout=10).close()
        except psycopg.OperationalError as error:
            return str(error)
        raise AssertionError(f"{url} is let in")

    assert 'password authentication failed for user "archipel"' in failure(url_with("wrong"))
    assert 'password authentication failed for user "nobody"' in failure(url_with(user="nobody"))
    assert "no password supplied" in failure(url_with("").replace(":@", "@"))
    said = failure(url_with(sslmode="disable"))
    assert "no pg_hba.conf entry" in said and said.rstrip().endswith("no encryption"), said
    assert "certificate verify failed" in failure(url_with(sslrootcert=other_root()))
    assert 'database "nowhere" does not exist' in failure(url_with(dbname="nowhere"))
