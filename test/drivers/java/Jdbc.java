// JDBC.
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

public class Jdbc {
    static final Map<String, String> statements = new LinkedHashMap<>();
    static final String cents = "{\"cents\": 1000}";
    static Connection connection;

    static List<Map<String, Object>> ask(String name, Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(statements.get(name).replaceAll("\\$\\d", "?"))) {
            for (int number = 1; number <= parameters.length; number++) {
                Object value = parameters[number - 1];
                if (value instanceof byte[])
                    statement.setBytes(number, (byte[]) value);
                else if (value instanceof Array)
                    statement.setArray(number, (Array) value);
                else if (value instanceof Integer)
                    statement.setInt(number, (Integer) value);
                else
                    statement.setString(number, (String) value);
            }
            List<Map<String, Object>> rows = new ArrayList<>();
            if (!statement.execute())
                return rows;
            ResultSet result = statement.getResultSet();
            ResultSetMetaData columns = result.getMetaData();
            while (result.next()) {
                Map<String, Object> row = new LinkedHashMap<>();
                for (int column = 1; column <= columns.getColumnCount(); column++)
                    row.put(columns.getColumnName(column), result.getObject(column));
                rows.add(row);
            }
            return rows;
        }
    }

    /** The one value that came back, or the SQLSTATE. */
    static Object attempt(String name, Object... parameters) {
        try {
            return ask(name, parameters).get(0).values().iterator().next();
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number)
            return String.valueOf(value);
        if (value instanceof Timestamp)
            return String.valueOf(((Timestamp) value).getTime() / 1000.0);
        List<String> parts = new ArrayList<>();
        if (value instanceof List) {
            for (Object one : (List<?>) value)
                parts.add(json(one));
            return "[" + String.join(",", parts) + "]";
        }
        if (value instanceof Map) {
            ((Map<?, ?>) value).forEach((key, one) -> parts.add(json(key) + ":" + json(one)));
            return "{" + String.join(",", parts) + "}";
        }
        return "\"" + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        for (String line : Files.readAllLines(folder.resolve("statements"))) {
            String[] parts = line.split(": ", 2);
            statements.put(parts[0], parts[1]);
        }
        byte[] body = Files.readAllBytes(Path.of(arguments[1]));
        byte[] forged = Arrays.copyOf(body, body.length + 1);
        String signature = arguments[2], secret = arguments[3];
        String headers = "{\"X-Hub-Signature-256\": \"" + signature + "\", \"User-Agent\": \"张三\"}";

        Map<String, String> environment = System.getenv();
        Properties login = new Properties();
        login.put("user", environment.get("PGUSER"));
        login.put("password", environment.get("PGPASSWORD"));
        connection = DriverManager.getConnection("jdbc:postgresql://" + environment.get("PGHOST") + ":" + environment.get("PGPORT")
            + "/" + environment.get("PGDATABASE"), login);

        Map<String, Object> seen = new LinkedHashMap<>(), types = new LinkedHashMap<>(), uncast = new LinkedHashMap<>();
        seen.put("new", ask("accept", "evt_1", body, cents).get(0));
        Map<String, Object> duplicate = ask("accept", "evt_1", body, cents).get(0);
        seen.put("duplicate", duplicate);
        seen.put("conflict", ask("accept", "evt_1", "other".getBytes(StandardCharsets.UTF_8), cents).get(0));
        duplicate.forEach((column, value) -> types.put(column, value == null ? "null" : value.getClass().getSimpleName()));

        connection.setAutoCommit(false);
        seen.put("acquired", ask("acquire", "evt_2").get(0));
        ask("effect", "evt_2");
        Object remembered = ask("commit", "evt_2", cents).get(0).get("remembered_until");
        connection.commit();
        connection.setAutoCommit(true);
        seen.put("effects", ask("effects", "evt_2").get(0));
        seen.put("remembered_until", remembered);
        types.put("remembered_until", remembered.getClass().getSimpleName());

        Map<String, Object> lease = ask("lease", "evt_3").get(0);
        seen.put("lease", lease);
        Map<String, Object> released = ask("release", "evt_3", lease.get("attempt"), "timeout", "90 seconds").get(0);
        seen.put("released", released);
        types.put("retry_after", released.get("retry_after").getClass().getSimpleName());

        seen.put("verified", attempt("verify", body, signature, secret));
        seen.put("forged", attempt("verify", forged, signature, secret));
        seen.put("verified by headers", attempt("verify_headers", body, headers, secret));
        seen.put("held", attempt("held", "evt_held"));

        Array events = connection.createArrayOf("text", new String[] {"evt_4", "evt_5"});
        connection.setAutoCommit(false);
        seen.put("many", ask("many", events));
        ask("many_done", events);
        connection.commit();
        connection.setAutoCommit(true);

        uncast.put("bytes", attempt("uncast_bytes", body, signature, secret));
        uncast.put("headers", attempt("uncast_headers", body, headers, secret));
        uncast.put("json", attempt("uncast_json", "evt_6", cents));

        Map<String, Object> report = new LinkedHashMap<>();
        report.put("seen", seen);
        report.put("types", types);
        report.put("uncast", uncast);
        System.out.println(json(report));
    }
}
