// Knex, on pg.
import Knex from "knex";
import { run } from "./scenario.mjs";

const knex = Knex({ client: "pg", connection: {} });
const askBy = (connection) => async (statement, ...parameters) => (await connection.raw(statement.replace(/\$\d/g, "?"), parameters)).rows;

await run({
    ask: askBy(knex),
    transaction: (work) => knex.transaction((connection) => work(askBy(connection))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.code,
    end: () => knex.destroy(),
});
