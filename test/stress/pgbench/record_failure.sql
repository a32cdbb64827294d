-- A sender's next delivery may come before it, or never.
SELECT stress.record_failure(stress.pick_table('brief', 'wide', 'leased', 'kept'));
