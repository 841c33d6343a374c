package peer;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/** An executor that runs until it is told to end. Flags: admin, token, app, ip, port, logs (a directory), journal (a file). */
public final class Peer {
    public static void main(String[] args) throws Exception {
        Settings settings = new Settings(args);
        Library library = new Version();
        library.start(settings, new Scenarios(new Journal(Path.of(settings.get("journal")))));
        Runtime.getRuntime().addShutdownHook(new Thread(library::stop));
        new CountDownLatch(1).await();
    }
}
