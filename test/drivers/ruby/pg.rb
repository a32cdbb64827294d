# Ruby's pg.
require "json"
require "pg"

body_file, signature, secret = ARGV
body = File.binread(body_file)
HEADERS = JSON.generate("X-Hub-Signature-256" => signature, "User-Agent" => "张三")
CENTS = JSON.generate("cents" => 1000)
EVENTS = PG::TextEncoder::Array.new.encode(%w[evt_4 evt_5])
STATEMENTS = File.readlines("#{__dir__}/../statements", chomp: true).to_h { |line| line.split(": ", 2) }
SESSION = PG.connect

def ask(name, *parameters)
  SESSION.exec_params(STATEMENTS[name], parameters).to_a
end

# The one value that came back, or the SQLSTATE.
def attempt(*call)
  ask(*call)[0].values[0]
rescue PG::Error => error
  error.result.error_field(PG::PG_DIAG_SQLSTATE)
end

def bytes(value)
  { value: value, format: 1 }
end

seen = {}
{ "new" => body, "duplicate" => body, "conflict" => "other" }.each do |what, fingerprint|
  seen[what], = ask("accept", "evt_1", bytes(fingerprint), CENTS)
end
types = seen["duplicate"].transform_values { |value| value.class.name }

SESSION.transaction do
  seen["acquired"], = ask("acquire", "evt_2")
  ask("effect", "evt_2")
  remembered, = ask("commit", "evt_2", CENTS)
  seen["remembered_until"] = remembered["remembered_until"]
  types["remembered_until"] = remembered["remembered_until"].class.name
end
seen["effects"], = ask("effects", "evt_2")

seen["lease"], = ask("lease", "evt_3")
seen["released"], = ask("release", "evt_3", seen["lease"]["attempt"], "timeout", "90 seconds")
types["retry_after"] = seen["released"]["retry_after"].class.name

seen["verified"] = attempt("verify", bytes(body), signature, secret)
seen["forged"] = attempt("verify", bytes("#{body}x"), signature, secret)
seen["verified by headers"] = attempt("verify_headers", bytes(body), HEADERS, secret)
seen["held"] = attempt("held", "evt_held")

SESSION.transaction do
  seen["many"] = ask("many", EVENTS)
  ask("many_done", EVENTS)
end

uncast = {
  "bytes" => attempt("uncast_bytes", bytes(body), signature, secret),
  "headers" => attempt("uncast_headers", bytes(body), HEADERS, secret),
  "json" => attempt("uncast_json", "evt_6", CENTS)
}
puts JSON.generate("seen" => seen, "types" => types, "uncast" => uncast)
