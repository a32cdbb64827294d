-- Claim, work and settling in one statement, in each form; its transaction may roll back after others were answered.
\set form random(1, 3)
\set end random(1, 100)
\set pause random(0, 8000) * CASE WHEN random(0, 9) = 0 THEN 15 ELSE 1 END
SELECT stress.meet();
BEGIN;
\if :form = 1
SELECT stress.accept(stress.pick(stress.pick_table('brief', 'wide', 'leased', 'kept')));
\elif :form = 2
SELECT stress.accept_unseen(stress.pick(stress.pick_table('brief', 'wide', 'leased', 'kept')), true);
\else
SELECT stress.accept_unseen(stress.pick(stress.pick_table('brief', 'wide', 'leased', 'kept')), false);
\endif
\sleep :pause us
\if :end <= 25
ROLLBACK;
\else
COMMIT;
\endif
