// An application's model, which knows nothing of idem.
import { integer, pgTable } from "drizzle-orm/pg-core";

export const wallet = pgTable("wallet", { id: integer("id").primaryKey(), balance: integer("balance") });
