package peer;

import com.google.gson.Gson;
import com.xxl.job.core.log.XxlJobFileAppender;
import com.xxl.job.core.openapi.ExecutorBiz;
import com.xxl.job.core.openapi.model.IdleBeatRequest;
import com.xxl.job.core.openapi.model.KillRequest;
import com.xxl.job.core.openapi.model.LogRequest;
import com.xxl.job.core.openapi.model.TriggerRequest;
import com.xxl.tool.http.HttpTool;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;

/** From 3.3.0 on. */
final class Version implements Library {
    private final Frameless executor = new Frameless();

    @Override
    public void start(Settings settings, Scenarios scenarios) throws Exception {
        keepResultsBelow(Path.of(settings.get("logs")));
        executor.start(settings, scenarios);
    }

    /**
     * Results that could not be reported are kept in /data/applogs, wherever the logs are, and reported by whichever
     * executor of the machine looks there first, to its own admin. As many run here at once, each gets a directory.
     */
    private static void keepResultsBelow(Path logs) throws Exception {
        Field path = XxlJobFileAppender.class.getDeclaredField("callbackLogPath");
        path.setAccessible(true);
        path.set(null, Files.createDirectories(logs.resolve("callbacklog")).toString());
    }

    @Override
    public void stop() {
        executor.stop();
    }

    @Override
    public String call(String address, String app, String token, String endpoint, String request) {
        Gson gson = new Gson();
        ExecutorBiz executor = HttpTool.createClient()
                .url(address)
                .timeout(3000)
                .header("XXL-JOB-ACCESS-TOKEN", token)
                .proxy(ExecutorBiz.class);
        switch (endpoint) {
            case "beat":
                return gson.toJson(executor.beat());
            case "idleBeat":
                return gson.toJson(executor.idleBeat(gson.fromJson(request, IdleBeatRequest.class)));
            case "run":
                return gson.toJson(executor.run(gson.fromJson(request, TriggerRequest.class)));
            case "kill":
                return gson.toJson(executor.kill(gson.fromJson(request, KillRequest.class)));
            case "log":
                return gson.toJson(executor.log(gson.fromJson(request, LogRequest.class)));
            default:
                throw new IllegalArgumentException(endpoint);
        }
    }
}
