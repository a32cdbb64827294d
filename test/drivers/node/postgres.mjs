// Postgres.js.
import postgres from "postgres";
import { run } from "./scenario.mjs";

const sql = postgres();
const askBy = (connection) => async (statement, ...parameters) => [...(await connection.unsafe(statement, parameters))];

await run({
    ask: askBy(sql),
    transaction: (work) => sql.begin((connection) => work(askBy(connection))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.code,
    end: () => sql.end(),
});
