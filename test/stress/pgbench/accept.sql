-- Claim, work and settling in one statement.
SELECT stress.meet();
SELECT stress.accept(stress.pick(stress.pick_table('brief', 'wide', 'leased', 'kept')));
