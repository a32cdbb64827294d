-- Objects of the extension idem: the chapters in sql/, put together by the build. Names are found through pg_extension, so
-- that the extension may live in any schema.

\echo Use "CREATE EXTENSION idem" to load this file. \quit
