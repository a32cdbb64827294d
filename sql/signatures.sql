-- Signatures of webhooks.

-- One secret or several, one header or all of them. A parameter or literal without a type is taken for text, which never
-- quotes a secret in an error as the input of an array would.

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    header    text,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_header_secret';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, text, text, interval) IS
    'whether a webhook is signed with this secret, by its one header: stripe, github, shopify, line, meta, hmac-sha256';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    header    text,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_header_secrets';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, text, text[], interval) IS
    'whether a webhook is signed with one of these secrets, by its one header: stripe, github, shopify, line, meta, hmac-sha256';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_headers_secret';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, jsonb, text, interval) IS
    'whether a webhook is signed with this secret, by all its headers, or parameters: standard-webhooks, stripe, github, shopify, slack, wecom, line, meta';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_headers_secrets';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, jsonb, text[], interval) IS
    'whether a webhook is signed with one of these secrets, by all its headers, or parameters: standard-webhooks, stripe, github, shopify, slack, wecom, line, meta';

-- The same arguments, for who debugs.

CREATE FUNCTION idem_signature_fault(
    scheme    text,
    payload   bytea,
    header    text,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS text LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_signature_fault_header_secret';
COMMENT ON FUNCTION idem_signature_fault(text, bytea, text, text, interval) IS
    'why idem_verify_signature does not verify a webhook with this secret and its one header; null = it does. For who debugs, never for the sender';

CREATE FUNCTION idem_signature_fault(
    scheme    text,
    payload   bytea,
    header    text,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS text LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_signature_fault_header_secrets';
COMMENT ON FUNCTION idem_signature_fault(text, bytea, text, text[], interval) IS
    'why idem_verify_signature does not verify a webhook with one of these secrets and its one header; null = it does. For who debugs, never for the sender';

CREATE FUNCTION idem_signature_fault(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS text LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_signature_fault_headers_secret';
COMMENT ON FUNCTION idem_signature_fault(text, bytea, jsonb, text, interval) IS
    'why idem_verify_signature does not verify a webhook with this secret and all its headers; null = it does. For who debugs, never for the sender';

CREATE FUNCTION idem_signature_fault(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS text LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_signature_fault_headers_secrets';
COMMENT ON FUNCTION idem_signature_fault(text, bytea, jsonb, text[], interval) IS
    'why idem_verify_signature does not verify a webhook with one of these secrets and all its headers; null = it does. For who debugs, never for the sender';
