// What the Go programs of test/drivers run, by a driver.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

type row = map[string]interface{}

type driver interface {
	// ask runs one statement, of which $1, $2, … are the parameters; outside begin and commit it commits by itself.
	ask(statement string, parameters ...interface{}) ([]row, error)
	begin()
	commit()
	bytes(value []byte) interface{}
	json(value interface{}) interface{}
	texts(values []string) interface{}
	interval(value time.Duration) interface{}
	sqlstate(err error) string
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func plain(value interface{}) interface{} {
	switch value := value.(type) {
	case time.Time:
		return float64(value.UnixNano()) / 1e9
	case []byte:
		return string(value)
	}
	return value
}

// run is started with the file of statements, the file of a webhook's body, its signature, and the secret.
func run(d driver) {
	file, err := os.ReadFile(os.Args[1])
	check(err)
	statements := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n") {
		parts := strings.SplitN(line, ": ", 2)
		statements[parts[0]] = parts[1]
	}
	body, err := os.ReadFile(os.Args[2])
	check(err)
	signature, secret := os.Args[3], os.Args[4]
	headers := map[string]interface{}{"X-Hub-Signature-256": signature, "User-Agent": "张三"}
	cents := map[string]interface{}{"cents": 1000}
	events := []string{"evt_4", "evt_5"}

	types := map[string]string{}
	noteType := func(column string, value interface{}) { types[column] = fmt.Sprintf("%T", value) }
	ask := func(name string, parameters ...interface{}) []row {
		rows, err := d.ask(statements[name], parameters...)
		check(err)
		for _, row := range rows {
			for column, value := range row {
				if value != nil {
					noteType(column, value)
				}
				row[column] = plain(value)
			}
		}
		return rows
	}
	// The one value that came back, or the SQLSTATE.
	attempt := func(name string, parameters ...interface{}) interface{} {
		rows, err := d.ask(statements[name], parameters...)
		if err != nil {
			return d.sqlstate(err)
		}
		for _, value := range rows[0] {
			return plain(value)
		}
		return nil
	}

	seen := row{}
	seen["new"] = ask("accept", "evt_1", d.bytes(body), d.json(cents))[0]
	seen["duplicate"] = ask("accept", "evt_1", d.bytes(body), d.json(cents))[0]
	seen["conflict"] = ask("accept", "evt_1", d.bytes([]byte("other")), d.json(cents))[0]

	d.begin()
	seen["acquired"] = ask("acquire", "evt_2")[0]
	ask("effect", "evt_2")
	seen["remembered_until"] = ask("commit", "evt_2", d.json(cents))[0]["remembered_until"]
	d.commit()
	seen["effects"] = ask("effects", "evt_2")[0]

	lease := ask("lease", "evt_3")[0]
	seen["lease"] = lease
	seen["released"] = ask("release", "evt_3", lease["attempt"], "timeout", d.interval(90*time.Second))[0]

	seen["verified"] = attempt("verify", d.bytes(body), signature, secret)
	seen["forged"] = attempt("verify", d.bytes(append(body[:len(body):len(body)], 'x')), signature, secret)
	seen["verified by headers"] = attempt("verify_headers", d.bytes(body), d.json(headers), secret)
	seen["held"] = attempt("held", "evt_held")

	d.begin()
	seen["many"] = ask("many", d.texts(events))
	ask("many_done", d.texts(events))
	d.commit()

	uncast := row{
		"bytes":   attempt("uncast_bytes", d.bytes(body), signature, secret),
		"headers": attempt("uncast_headers", d.bytes(body), d.json(headers), secret),
		"json":    attempt("uncast_json", "evt_6", d.json(cents)),
	}
	report, err := json.Marshal(row{"seen": seen, "types": types, "uncast": uncast})
	check(err)
	fmt.Println(string(report))
}
