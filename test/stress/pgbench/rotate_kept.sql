CALL idem_rotate('kept');
