// Drizzle, on pg.
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { run } from "./scenario.mjs";

const pool = new pg.Pool();
const database = drizzle(pool);
const askBy = (connection) => async (statement, ...parameters) => {
    const query = sql.join(statement.split(/\$\d/).flatMap((text, number) =>
        number ? [sql.param(parameters[number - 1]), sql.raw(text)] : [sql.raw(text)]));
    return (await connection.execute(query)).rows;
};

await run({
    ask: askBy(database),
    transaction: (work) => database.transaction((connection) => work(askBy(connection))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.cause.code,
    end: () => pool.end(),
});
