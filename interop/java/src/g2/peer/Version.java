package peer;

import com.google.gson.Gson;
import com.xxl.job.core.biz.ExecutorBiz;
import com.xxl.job.core.biz.client.ExecutorBizClient;
import com.xxl.job.core.biz.model.IdleBeatParam;
import com.xxl.job.core.biz.model.KillParam;
import com.xxl.job.core.biz.model.LogParam;
import com.xxl.job.core.biz.model.TriggerParam;

/** 2.3.0 to 3.2.0. */
final class Version implements Library {
    private final Frameless executor = new Frameless();

    @Override
    public void start(Settings settings, Scenarios scenarios) throws Exception {
        executor.start(settings, scenarios);
    }

    @Override
    public void stop() {
        executor.stop();
    }

    @Override
    public String call(String address, String app, String token, String endpoint, String request) throws Exception {
        Gson gson = new Gson();
        ExecutorBiz executor = client(address, token);
        switch (endpoint) {
            case "beat":
                return gson.toJson(executor.beat());
            case "idleBeat":
                return gson.toJson(executor.idleBeat(gson.fromJson(request, IdleBeatParam.class)));
            case "run":
                return gson.toJson(executor.run(gson.fromJson(request, TriggerParam.class)));
            case "kill":
                return gson.toJson(executor.kill(gson.fromJson(request, KillParam.class)));
            case "log":
                return gson.toJson(executor.log(gson.fromJson(request, LogParam.class)));
            default:
                throw new IllegalArgumentException(endpoint);
        }
    }

    /** From 2.5.0 on, the constructor takes a timeout too. */
    private static ExecutorBiz client(String address, String token) throws Exception {
        try {
            return ExecutorBizClient.class.getConstructor(String.class, String.class, int.class).newInstance(address, token, 3);
        } catch (NoSuchMethodException e) {
            return ExecutorBizClient.class.getConstructor(String.class, String.class).newInstance(address, token);
        }
    }
}
