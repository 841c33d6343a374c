package peer;

import com.google.gson.Gson;
import com.xxl.job.core.openapi.admin.AdminJobBiz;
import com.xxl.job.core.openapi.admin.dto.JobAddRequest;
import com.xxl.job.core.openapi.admin.dto.JobOperateRequest;
import com.xxl.job.core.openapi.admin.dto.JobTriggerRequest;
import com.xxl.job.core.openapi.admin.dto.JobUpdateRequest;
import com.xxl.job.core.openapi.executor.ExecutorBiz;
import com.xxl.job.core.openapi.executor.dto.IdleBeatRequest;
import com.xxl.job.core.openapi.executor.dto.KillRequest;
import com.xxl.job.core.openapi.executor.dto.LogRequest;
import com.xxl.job.core.openapi.executor.dto.TriggerRequest;
import com.xxl.tool.http.HttpTool;

/** From 3.5.0 on. */
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

    /** A client of an executor or of an admin. */
    private static <T> T client(String address, String app, String token, Class<T> of) {
        return HttpTool.createClient()
                .url(address)
                .timeout(3000)
                .header("XXL-JOB-ACCESS-TOKEN", token)
                .header("XXL-JOB-APPNAME", app)
                .proxy(of);
    }

    @Override
    public String call(String address, String app, String token, String endpoint, String request) {
        Gson gson = new Gson();
        ExecutorBiz executor = client(address, app, token, ExecutorBiz.class);
        AdminJobBiz jobs = client(address, app, token, AdminJobBiz.class);
        switch (endpoint) {
            case "beat":
                return gson.toJson(executor.beat());
            case "idleBeat":
                return gson.toJson(executor.idleBeat(gson.fromJson(request, IdleBeatRequest.class)));
            case "run":
                return gson.toJson(executor.trigger(gson.fromJson(request, TriggerRequest.class)));
            case "kill":
                return gson.toJson(executor.kill(gson.fromJson(request, KillRequest.class)));
            case "log":
                return gson.toJson(executor.log(gson.fromJson(request, LogRequest.class)));
            case "addJob":
                return gson.toJson(jobs.addJob(gson.fromJson(request, JobAddRequest.class)));
            case "updateJob":
                return gson.toJson(jobs.updateJob(gson.fromJson(request, JobUpdateRequest.class)));
            case "removeJob":
                return gson.toJson(jobs.removeJob(gson.fromJson(request, JobOperateRequest.class)));
            case "startJob":
                return gson.toJson(jobs.startJob(gson.fromJson(request, JobOperateRequest.class)));
            case "stopJob":
                return gson.toJson(jobs.stopJob(gson.fromJson(request, JobOperateRequest.class)));
            case "triggerJob":
                return gson.toJson(jobs.triggerJob(gson.fromJson(request, JobTriggerRequest.class)));
            default:
                throw new IllegalArgumentException(endpoint);
        }
    }
}
