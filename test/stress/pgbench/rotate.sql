\set pause random(0, 20)
SELECT stress.pick_table('brief', 'wide', 'leased') AS name \gset
CALL idem_rotate(':name');
\sleep :pause ms
