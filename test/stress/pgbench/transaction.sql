-- Claim, work and settling in one transaction, which then commits, rolls back, or is left to another session to end.
\set deliveries random(1, 3)
\set end random(1, 100)
\set gid random(1, 1000000000000000)
\set pause random(0, 8000) * CASE WHEN random(0, 9) = 0 THEN 15 ELSE 1 END
\set meets random(0, 1)
\if :meets
SELECT stress.meet();
\endif
BEGIN;
SELECT stress.deliver_some(:deliveries);
\sleep :pause us
\if :end <= 12
ROLLBACK;
\elif :end <= 18
PREPARE TRANSACTION 'stress-:gid';
\else
COMMIT;
\endif
