package peer;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file with one line for each begin and end of a handler: run id, job id, handler, phase, time in ms. */
final class Journal {
    private final Path file;

    Journal(Path file) {
        this.file = file;
    }

    synchronized void add(Run run, String handler, String phase) {
        String line = run.runId() + " " + run.jobId() + " " + handler + " " + phase + " " + System.currentTimeMillis() + "\n";
        try {
            Files.write(file, line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
