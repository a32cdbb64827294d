// TypeORM, on pg.
import { DataSource } from "typeorm";
import { run } from "./scenario.mjs";

const { PGHOST: host, PGPORT, PGUSER: username, PGPASSWORD: password, PGDATABASE: database } = process.env;
const source = await new DataSource({ type: "postgres", host, port: Number(PGPORT), username, password, database }).initialize();
const askBy = (manager) => (statement, ...parameters) => manager.query(statement, parameters);

await run({
    ask: askBy(source),
    transaction: (work) => source.transaction((manager) => work(askBy(manager))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.driverError.code,
    end: () => source.destroy(),
});
