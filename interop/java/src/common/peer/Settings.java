package peer;

import java.util.HashMap;
import java.util.Map;

/** Command line flags: -name value, in pairs. */
final class Settings {
    private final Map<String, String> values = new HashMap<>();

    Settings(String[] args) {
        for (int i = 0; i + 1 < args.length; i += 2) {
            values.put(args[i], args[i + 1]);
        }
    }

    String get(String name) {
        String value = values.get("-" + name);
        if (value == null) {
            throw new IllegalArgumentException("flag -" + name + " is missing");
        }
        return value;
    }
}
