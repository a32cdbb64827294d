// lib/pq, by database/sql.
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
)

type pqDriver struct{ database *sql.DB }

func (d pqDriver) ask(statement string, parameters ...interface{}) ([]row, error) {
	rows, err := d.database.Query(statement, parameters...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []row
	for rows.Next() {
		values := make([]interface{}, len(columns))
		places := make([]interface{}, len(columns))
		for number := range values {
			places[number] = &values[number]
		}
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		one := row{}
		for number, column := range columns {
			one[column] = values[number]
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func (d pqDriver) begin() {
	_, err := d.database.Exec("BEGIN")
	check(err)
}

func (d pqDriver) commit() {
	_, err := d.database.Exec("COMMIT")
	check(err)
}

func (d pqDriver) bytes(value []byte) interface{} { return value }

func (d pqDriver) json(value interface{}) interface{} {
	text, err := json.Marshal(value)
	check(err)
	return string(text)
}

func (d pqDriver) texts(values []string) interface{}        { return pq.Array(values) }
func (d pqDriver) interval(value time.Duration) interface{} { return fmt.Sprint(value.Seconds(), " seconds") }

func (d pqDriver) sqlstate(err error) string {
	var fault *pq.Error
	if errors.As(err, &fault) {
		return string(fault.Code)
	}
	return "not sent"
}

func main() {
	database, err := sql.Open("postgres", "sslmode=disable")
	check(err)
	// BEGIN and COMMIT must be said to the same session.
	database.SetMaxOpenConns(1)
	run(pqDriver{database})
}
