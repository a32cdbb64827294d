// pgx 4, by its own interface.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

type pgxDriver struct{ session *pgx.Conn }

var ctx = context.Background()

func (d pgxDriver) ask(statement string, parameters ...interface{}) ([]row, error) {
	rows, err := d.session.Query(ctx, statement, parameters...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		one := row{}
		for number, column := range rows.FieldDescriptions() {
			one[string(column.Name)] = values[number]
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func (d pgxDriver) begin() {
	_, err := d.session.Exec(ctx, "BEGIN")
	check(err)
}

func (d pgxDriver) commit() {
	_, err := d.session.Exec(ctx, "COMMIT")
	check(err)
}

func (d pgxDriver) bytes(value []byte) interface{}           { return value }
func (d pgxDriver) json(value interface{}) interface{}       { return value }
func (d pgxDriver) texts(values []string) interface{}        { return values }
func (d pgxDriver) interval(value time.Duration) interface{} { return value }

func (d pgxDriver) sqlstate(err error) string {
	var fault *pgconn.PgError
	if errors.As(err, &fault) {
		return fault.Code
	}
	return "not sent"
}

func main() {
	session, err := pgx.Connect(ctx, "")
	check(err)
	run(pgxDriver{session})
}
