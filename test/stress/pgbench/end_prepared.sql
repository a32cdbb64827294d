-- Ends prepared transactions of other sessions, some at once and some late.
SELECT count(*) > 0 AS found, max(gid) AS gid, random() < 0.7 AS commit
FROM (SELECT gid FROM pg_prepared_xacts
      WHERE database = current_database() AND prepared < clock_timestamp() - random() * interval '300 ms'
      ORDER BY random() LIMIT 1) one \gset
\if :found
\if :commit
COMMIT PREPARED ':gid';
\else
ROLLBACK PREPARED ':gid';
\endif
INSERT INTO stress.prepared VALUES (':gid', ':commit');
\else
\sleep 5 ms
\endif
