// Kysely, on pg.
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { run } from "./scenario.mjs";

const database = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const askBy = (connection) => async (statement, ...parameters) =>
    (await connection.executeQuery(CompiledQuery.raw(statement, parameters))).rows;

await run({
    ask: askBy(database),
    transaction: (work) => database.transaction().execute((connection) => work(askBy(connection))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.code,
    end: () => database.destroy(),
});
