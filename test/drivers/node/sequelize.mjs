// Sequelize, on pg.
import { QueryTypes, Sequelize } from "sequelize";
import { run } from "./scenario.mjs";

const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env;
const sequelize = new Sequelize(PGDATABASE, PGUSER, PGPASSWORD, { host: PGHOST, port: PGPORT, dialect: "postgres", logging: false });
const askIn = (transaction) => (statement, ...bind) => sequelize.query(statement, { bind, transaction, type: QueryTypes.SELECT });

await run({
    ask: askIn(),
    transaction: (work) => sequelize.transaction((transaction) => work(askIn(transaction))),
    bytes: (buffer) => buffer,
    json: (object) => object,
    texts: (array) => array,
    interval: (seconds) => `${seconds} seconds`,
    sqlstate: (error) => error.parent.code,
    end: () => sequelize.close(),
});
