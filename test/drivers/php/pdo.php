<?php
// PDO.

[, $bodyFile, $signature, $secret] = $argv;
$body = file_get_contents($bodyFile);
$headers = json_encode(['X-Hub-Signature-256' => $signature, 'User-Agent' => '张三']);
$cents = json_encode(['cents' => 1000]);
$events = '{evt_4,evt_5}';

$statements = [];
foreach (file(__DIR__ . '/../statements', FILE_IGNORE_NEW_LINES) as $line) {
    [$name, $statement] = explode(': ', $line, 2);
    $statements[$name] = preg_replace('/\$\d/', '?', $statement);
}
$pdo = new PDO(sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE')),
    getenv('PGUSER'), getenv('PGPASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);

// A parameter is a value, or [value, PDO::PARAM_…].
function ask(string $name, ...$parameters): array
{
    global $pdo, $statements;
    $statement = $pdo->prepare($statements[$name]);
    foreach ($parameters as $number => $parameter) {
        $statement->bindValue($number + 1, ...(array) $parameter);
    }
    $statement->execute();
    return $statement->fetchAll(PDO::FETCH_ASSOC);
}

// The one value that came back, or the SQLSTATE.
function attempt(...$call)
{
    try {
        return current(ask(...$call)[0]);
    } catch (PDOException $error) {
        return $error->getCode();
    }
}

function bytes(string $value): array
{
    return [$value, PDO::PARAM_LOB];
}

$seen = [];
foreach (['new' => $body, 'duplicate' => $body, 'conflict' => 'other'] as $what => $fingerprint) {
    [$seen[$what]] = ask('accept', 'evt_1', bytes($fingerprint), $cents);
}
$types = array_map('get_debug_type', $seen['duplicate']);

$pdo->beginTransaction();
[$seen['acquired']] = ask('acquire', 'evt_2');
ask('effect', 'evt_2');
[$remembered] = ask('commit', 'evt_2', $cents);
$pdo->commit();
[$seen['effects']] = ask('effects', 'evt_2');
$seen['remembered_until'] = $remembered['remembered_until'];
$types['remembered_until'] = get_debug_type($remembered['remembered_until']);

[$seen['lease']] = ask('lease', 'evt_3');
[$seen['released']] = ask('release', 'evt_3', $seen['lease']['attempt'], 'timeout', '90 seconds');
$types['retry_after'] = get_debug_type($seen['released']['retry_after']);

$seen['verified'] = attempt('verify', bytes($body), $signature, $secret);
$seen['forged'] = attempt('verify', bytes($body . 'x'), $signature, $secret);
$seen['verified by headers'] = attempt('verify_headers', bytes($body), $headers, $secret);
$seen['held'] = attempt('held', 'evt_held');

$pdo->beginTransaction();
$seen['many'] = ask('many', $events);
ask('many_done', $events);
$pdo->commit();

$uncast = [
    'bytes' => attempt('uncast_bytes', bytes($body), $signature, $secret),
    'headers' => attempt('uncast_headers', bytes($body), $headers, $secret),
    'json' => attempt('uncast_json', 'evt_6', $cents),
];
echo json_encode(['seen' => $seen, 'types' => $types, 'uncast' => $uncast]), "\n";
