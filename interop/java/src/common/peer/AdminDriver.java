package peer;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Calls executors as an admin does. A line of standard input is an object with address, app, token, endpoint
 * and request; a line of standard output is the answer, or an object with the key "exception".
 */
public final class AdminDriver {
    public static void main(String[] args) throws Exception {
        Library library = new Version();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8.name());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject order = new JsonParser().parse(line).getAsJsonObject();
            try {
                out.println(library.call(
                        order.get("address").getAsString(),
                        order.get("app").getAsString(),
                        order.get("token").getAsString(),
                        order.get("endpoint").getAsString(),
                        order.get("request").toString()));
            } catch (Exception e) {
                JsonObject answer = new JsonObject();
                answer.addProperty("exception", e.toString());
                out.println(new Gson().toJson(answer));
            }
        }
        System.exit(0);
    }
}
