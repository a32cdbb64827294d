-- Claim in one transaction, settle in another, with the lease running, or running out, between them.
\set pause random(0, 90000)
\set end random(1, 100)
\set gid random(1, 1000000000000000)
SELECT * FROM stress.take_lease() \gset
\if :acquired
\sleep :pause us
SELECT stress.hold_lease(('leased', ':handler', ':event_id'), ':owner', :attempt, ':taken_at');
\sleep :pause us
BEGIN;
SELECT stress.finish_lease(('leased', ':handler', ':event_id'), :attempt, ':taken_at');
\if :end <= 8
ROLLBACK;
\elif :end <= 18
PREPARE TRANSACTION 'stress-:gid';
\else
COMMIT;
\endif
\endif
