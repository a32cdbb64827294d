// node-postgres.
import pg from "pg";
import { run } from "./scenario.mjs";

const client = new pg.Client();
await client.connect();
const ask = async (statement, ...parameters) => (await client.query(statement, parameters)).rows;

await run({
    ask,
    transaction: async (work) => {
        await client.query("BEGIN");
        await work(ask);
        await client.query("COMMIT");
    },
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.code,
    end: () => client.end(),
});
