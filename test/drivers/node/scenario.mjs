// What every program of test/drivers/node runs, by a driver that has
//
//   ask(statement, ...parameters) → [{column: value}]   $1, $2, … are its parameters; it commits by itself
//   transaction(work)                                   runs work(ask) in a transaction
//   bytes, json, texts, interval                        a parameter of that type, in the form that docs/drivers.md tells
//   sqlstate(error)                                     of an error of the driver's
//   end()
//
// and prints what came back as a line of JSON, with the types of what one answer is made of.

import { readFileSync } from "node:fs";

const statements = Object.fromEntries(
    readFileSync(new URL("../statements", import.meta.url), "utf8").trim().split("\n").map((line) => line.split(/: (.*)/)));
const cents = { cents: 1000 };

const type = (value) => (value === null ? "null" : typeof value === "object" ? value.constructor.name : typeof value);
const plain = (value) => (value instanceof Date ? value.getTime() / 1000 : value);

export async function run(driver) {
    const [bodyFile, signature, secret] = process.argv.slice(2);
    const body = readFileSync(bodyFile);
    const headers = { "X-Hub-Signature-256": signature, "User-Agent": "张三" };
    const ask = (name, ...parameters) => driver.ask(statements[name], ...parameters);
    // The one value that came back, or the SQLSTATE.
    const attempt = (...call) => ask(...call).then(([row]) => Object.values(row)[0], driver.sqlstate);

    const seen = {};
    const fingerprints = { new: body, duplicate: body, conflict: Buffer.from("other") };
    for (const [what, fingerprint] of Object.entries(fingerprints))
        [seen[what]] = await ask("accept", "evt_1", driver.bytes(fingerprint), driver.json(cents));
    const types = Object.fromEntries(Object.entries(seen.duplicate).map(([column, value]) => [column, type(value)]));

    let remembered;
    await driver.transaction(async (askIn) => {
        [seen.acquired] = await askIn(statements.acquire, "evt_2");
        await askIn(statements.effect, "evt_2");
        [remembered] = await askIn(statements.commit, "evt_2", driver.json(cents));
    });
    [seen.effects] = await ask("effects", "evt_2");
    seen.remembered_until = plain(remembered.remembered_until);
    types.remembered_until = type(remembered.remembered_until);

    [seen.lease] = await ask("lease", "evt_3");
    [seen.released] = await ask("release", "evt_3", seen.lease.attempt, "timeout", driver.interval(90));
    types.retry_after = type(seen.released.retry_after);

    seen.verified = await attempt("verify", driver.bytes(body), signature, secret);
    seen.forged = await attempt("verify", driver.bytes(Buffer.concat([body, Buffer.from("x")])), signature, secret);
    seen["verified by headers"] = await attempt("verify_headers", driver.bytes(body), driver.json(headers), secret);
    seen.held = await attempt("held", "evt_held");

    await driver.transaction(async (askIn) => {
        seen.many = await askIn(statements.many, driver.texts(["evt_4", "evt_5"]));
        await askIn(statements.many_done, driver.texts(["evt_4", "evt_5"]));
    });

    const uncast = {
        bytes: await attempt("uncast_bytes", driver.bytes(body), signature, secret),
        headers: await attempt("uncast_headers", driver.bytes(body), driver.json(headers), secret),
        json: await attempt("uncast_json", "evt_6", driver.json(cents)),
    };
    await driver.end();
    console.log(JSON.stringify({ seen, types, uncast }));
}
